"""A node with something to operate on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from sprocket import Later, Message, Producer, PushConsumer, Standalone
from sprocket.admin import topic_changes
from sprocket.admin.caller import Caller
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.remoting.pool import Pool


class Shop:
    """A node and an operator; group `g` has consumed all that `sell` sent.

    Attributes:
        seen: what the consumer got.
        fails: bodies at which it raises, and gives up at once.
    """

    def __init__(self, node: Standalone, caller: Caller) -> None:
        self.node = node
        self.caller = caller
        self.seen: list[StoredMessage] = []
        self.fails: set[bytes] = set()

    async def sell(self, *bodies: bytes, topic: str = "orders") -> list[str]:
        """Sends to one queue; returns offset ids."""
        queue = QueueId(topic, "broker-a", 0)
        async with Producer("shop", nameservers=self.node.nameserver_address) as producer:
            return [
                (
                    await producer.send(
                        Message(topic, body, tag="t", keys=["k"], properties={"shop": "7"}),
                        queue=queue,
                    )
                ).offset_id
                for body in bodies
            ]

    def consumer(self, *, ordered: bool = False) -> PushConsumer:
        """A member of `g`, not yet started."""
        names = self.node.nameserver_address
        consumer = PushConsumer("g", nameservers=names, start="first", ordered=ordered)

        @consumer.on("orders")
        async def listen(message: StoredMessage) -> Later | None:
            self.seen.append(message)
            return Later(-1) if message.body in self.fails else None

        return consumer


async def make_topic(caller: Caller, topic: str, queues: int | None = None) -> None:
    """Creates a topic."""
    await topic_changes.create(caller, topic, wanted=topic_changes.TopicSettings(queues, queues))


@asynccontextmanager
async def shop() -> AsyncIterator[Shop]:
    async with Standalone() as node, Pool() as pool:
        caller = Caller(pool, [node.nameserver_address])
        await make_topic(caller, "orders", 1)
        yield Shop(node, caller)


async def until(condition: Callable[[], bool | Awaitable[bool]], seconds: float = 120.0) -> None:
    for _ in range(int(seconds * 50)):
        so = condition()
        if so if isinstance(so, bool) else await so:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"still not so after {seconds} s")
