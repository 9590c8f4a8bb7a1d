"""A client of a simulated world that sends messages and transactions, one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.base.errors import SprocketError
from sprocket.client.config import ProducerConfig
from sprocket.client.transactional_producer import Outcome, TransactionalProducer
from sprocket.message.message import StoredMessage
from sprocket.testing.cluster import Cluster
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.journal import Journal

#: Sends the message of a key.
SendOne = Callable[[TransactionalProducer, str, SeededEntropy], Awaitable[None]]
#: Says how the transaction of a message ended.
CheckOne = Callable[[StoredMessage], Awaitable[Outcome]]


async def send_one_by_one(
    cluster: Cluster,
    name: str,
    leaving: asyncio.Event,
    *,
    count: int,
    pause_max: float,
    entropy: SeededEntropy,
    journal: Journal,
    check: CheckOne,
    send: SendOne,
) -> None:
    """Sends messages with pauses, notes what fails, and stays until it is to leave.

    Args:
        name: of the client's machine; its messages have the keys `name-0`, `name-1`, and so on.
        count: how many messages.
        pause_max: the longest pause before a message, s.
    """
    process, world = cluster.client(name)
    producer = TransactionalProducer(
        "shop",
        nameservers=cluster.nameserver_addresses,
        config=ProducerConfig(retries=0, route_refresh_ms=1_000),
        world=world,
        check=check,
    )

    async def main() -> None:
        async with producer:
            for number in range(count):
                await asyncio.sleep(entropy.between(0.0, pause_max))
                key = f"{name}-{number}"
                try:
                    await send(producer, key, entropy)
                except SprocketError as error:
                    journal.note(name, f"fails: {type(error).__name__}", key)
            await leaving.wait()

    await process.start(main())
