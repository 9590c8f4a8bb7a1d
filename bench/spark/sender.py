"""`python -m bench.spark.sender KIND ADDRESS TOPIC PER_SECOND SECONDS`: messages at a steady rate.

A process of its own, so that its processor time is nobody else's. It prints how many it sent.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator

from bench.spark.arrivals import STAMP

_BODY_BYTES = 100
_TICK_SECONDS = 0.01


def body() -> bytes:
    return STAMP.pack(time.time_ns()).ljust(_BODY_BYTES, b".")


async def paced(per_second: int, seconds: float) -> AsyncIterator[None]:
    """Yields so often that the rate is kept, catching up after a pause."""
    began = time.monotonic()
    given = 0
    while given < per_second * seconds:
        due = min(per_second * (time.monotonic() - began), per_second * seconds)
        while given < int(due):
            given += 1
            yield
        await asyncio.sleep(_TICK_SECONDS)


async def to_sprocket(address: str, topic: str, per_second: int, seconds: float) -> int:
    from sprocket import Message, Producer

    async with Producer("bench", nameservers=address) as producer:
        sends = []
        async for _ in paced(per_second, seconds):
            sends.append(asyncio.ensure_future(producer.send(Message(topic, body()))))
        await asyncio.gather(*sends)
    return len(sends)


async def to_kafka(address: str, topic: str, per_second: int, seconds: float) -> int:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    count = 0
    async for _ in paced(per_second, seconds):
        producer.produce(topic, body())
        producer.poll(0)
        count += 1
    if producer.flush(30):
        raise RuntimeError("not all messages were acknowledged")
    return count


def main() -> None:
    kind, address, topic, per_second, seconds = sys.argv[1:]
    send = {"sprocket": to_sprocket, "kafka": to_kafka}[kind]
    print(asyncio.run(send(address, topic, int(per_second), float(seconds))))  # noqa: T201


if __name__ == "__main__":
    main()
