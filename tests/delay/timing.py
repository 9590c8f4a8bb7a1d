"""A broker whose clock a test can move, and what the tests of timers ask it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from sprocket.broker.broker import Broker
from sprocket.message.recall import RecallHandle
from sprocket.protocol.command import Command
from sprocket.protocol.requests.send import RecallMessage, SendMessageV2
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from tests.broker.parts import CONFIG, ROOT, STORE, Asker

#: Small files of the timer log too.
TIMED = replace(STORE, timer_file_bytes=4096, timer_flush_interval_ms=1000)


@asynccontextmanager
async def timing(
    disk: MemoryDisk, clock: LoopClock | None = None, **store: object
) -> AsyncIterator[Asker]:
    """A broker, and a connection to it.

    Args:
        store: settings of the store that differ.
    """
    broker = Broker(
        CONFIG,
        store=replace(TIMED, **store),  # type: ignore[arg-type]
        root=ROOT,
        disk=disk,
        clock=clock or LoopClock(),
        entropy=SeededEntropy(1),
    )
    async with broker:
        asker = Asker(broker)
        async with asker.pool:
            yield asker


async def send_timed(asker: Asker, body: bytes, **properties: str) -> Command:
    """Sends to topic T, queue 0; the answer, whatever it is."""
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties.items())
    header = SendMessageV2(producer_group="p", topic="T", queue_id=0, properties=text)
    return await asker.call(header, body)


async def take_back(asker: Asker, handle: str, topic: str = "T") -> Command:
    """Asks for a recall."""
    return await asker.call(RecallMessage(producer_group="p", topic=topic, recall_handle=handle))


def handle_for(due_ms: int, unique_key: str, *, topic: str = "T", broker: str = "broker-a") -> str:
    """A handle that says so."""
    return RecallHandle(topic, broker, str(due_ms), unique_key).encode()
