"""One process of a soak: a name server, a broker, a consumer or a producer.

What consumers and producers see goes into a file, a line a time, written at once: a process that is
killed loses none of it. Times are of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from sprocket.base.errors import SprocketError
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import Later, PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.nameserver import NameServer
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.runtime.entropy import SystemEntropy
from sprocket.store.config import StoreConfig

#: Topic and group of those that share queues in any order, and of those that keep the order.
ANY, ORDERED = ("soak-any", "soak-workers"), ("soak-ordered", "soak-line")
#: Seconds between two words of a consumer on which queues it has.
WORD_SECONDS = 0.25
#: One of so many messages is given back once.
_GIVEN_BACK = 51


class Log:
    """Lines of one process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, kind: str, *words: object) -> None:
        """A line: what happened, when, and what to."""
        text = " ".join([kind, f"{time.monotonic():.6f}", *map(str, words)])
        os.write(self._file, f"{text}\n".encode())


async def nameserver(port: str) -> None:
    """Serves routes."""
    async with NameServer(NameServerConfig(port=int(port)), disk=SystemDisk()):
        await _end()


async def broker(name: str, port: str, nameservers: str, root: str, flush: str) -> None:
    """Serves messages."""
    config = BrokerConfig(name=name, port=int(port), nameservers=(nameservers,))
    world = {"disk": SystemDisk(), "clock": SystemClock(), "entropy": SystemEntropy()}
    store = StoreConfig(path=root, flush=flush)
    async with Broker(config, store=store, root=root, **world):  # type: ignore[arg-type]
        await _end()


async def consumer(name: str, nameservers: str, path: str) -> None:
    """Is a member of both groups."""
    log = Log(path)

    def listener(kind: str) -> Callable[[StoredMessage], Coroutine[Any, Any, Later | None]]:
        async def consume(message: StoredMessage) -> Later | None:
            place = f"{message.queue.broker}:{message.queue.number} {message.queue_offset}"
            words = (kind, name, place, message.keys[0], message.reconsume_times)
            log.write("begin", *words)
            await asyncio.sleep(0.002)
            number = int(message.keys[0].rpartition("-")[2])
            if kind == "any" and number % _GIVEN_BACK == 0 and not message.reconsume_times:
                return Later(1)
            log.write("end", *words)
            return None

        return consume

    members = {
        "any": PushConsumer(ANY[1], nameservers=nameservers, start="first"),
        "ordered": PushConsumer(ORDERED[1], nameservers=nameservers, start="first", ordered=True),
    }
    members["any"].on(ANY[0])(listener("any"))
    members["ordered"].on(ORDERED[0])(listener("ordered"))
    async with members["any"], members["ordered"]:
        telling = asyncio.ensure_future(_tell(log, name, members))
        await _end()
        telling.cancel()
    log.write("left", name)


async def _tell(log: Log, name: str, members: dict[str, PushConsumer]) -> None:
    while True:
        for kind, member in members.items():
            queues = [
                f"{queue.broker}:{queue.number}"
                for queue in member.queues
                if not queue.topic.startswith("%")
            ]
            log.write("has", kind, name, ",".join(queues) or "-")
        await asyncio.sleep(WORD_SECONDS)


async def producer(name: str, nameservers: str, path: str, per_second: str) -> None:
    """Sends at a rate to both topics, whatever becomes of it, until it is told to end."""
    log, pause = Log(path), 1 / float(per_second)
    ended, sending = asyncio.ensure_future(_end()), set()

    async def send(topic: str, kind: str, key: str) -> None:
        log.write("send", kind, key)
        try:
            sent = await client.send(Message(topic, key.encode() * 10, keys=[key]))
        except SprocketError:
            log.write("fail", kind, key)
        else:
            log.write("ack", kind, key, f"{sent.queue.broker}:{sent.queue.number}")

    async with Producer(name, nameservers=nameservers) as client:
        number = 0
        while not ended.done():
            topic, kind = (ANY[0], "any") if number % 2 else (ORDERED[0], "ordered")
            task = asyncio.ensure_future(send(topic, kind, f"{name}-{number}"))
            sending.add(task)
            task.add_done_callback(sending.discard)
            number += 1
            await asyncio.sleep(pause)
        await asyncio.gather(*sending)
    log.write("left", name)


async def _end() -> None:
    """Returns when somebody asks the process to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()


ROLES: dict[str, Callable[..., Coroutine[Any, Any, None]]] = {
    "nameserver": nameserver, "broker": broker, "consumer": consumer, "producer": producer
}  # fmt: skip

if __name__ == "__main__":
    if len(sys.argv) > 2 and Path(sys.argv[-1]).parent.is_dir():
        sys.stderr.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(ROLES[sys.argv[1]](*sys.argv[2:]))
