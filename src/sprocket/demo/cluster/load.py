"""The load on the cluster, and what becomes of each message: sent, acknowledged, consumed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

from sprocket.base.errors import SprocketError
from sprocket.client.config import ProducerConfig
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.clientcore.replies import SendStatus
from sprocket.message.message import Message, StoredMessage

TOPIC, GROUP = "payments", "ledger"
#: Pause of a sender after a failed send, s.
_AFTER_FAILURE = 0.01
_AGAIN_SECONDS = 0.05


class ClusterLoad:
    """What was sent, acknowledged and consumed. Times are of the monotonic clock, in s.

    Attributes:
        acknowledged: the numbers of acknowledged messages with the time of their acknowledgement,
            in the order of time.
        failed: how many sends failed.
        consumed: how often each message was consumed, by its number.
    """

    def __init__(self) -> None:
        self.acknowledged: list[tuple[float, int]] = []
        self.failed = 0
        self.consumed: Counter[int] = Counter()
        self._next = 0

    @contextlib.asynccontextmanager
    async def running(self, nameservers: str, *, senders: int) -> AsyncIterator[ClusterLoad]:
        """Inside, so many senders send one message after the other, and a group consumes all."""
        config = ProducerConfig(send_timeout_ms=10_000)
        async with (
            Producer("tellers", nameservers=nameservers, config=config) as producer,
            PushConsumer(GROUP, nameservers=nameservers, start="first") as consumer,
        ):
            await self._first(producer)
            consumer.on(TOPIC)(self._consume)
            tasks = [asyncio.create_task(self._send_on(producer)) for _ in range(senders)]
            try:
                yield self
                await _cancelled(tasks)
                await self.all_consumed()
            finally:
                await _cancelled(tasks)

    async def accepted_after(self, moment: float, seconds: float) -> bool:
        """Waits for a send that is acknowledged after a moment; False if there is none in time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not self.acknowledged or self.acknowledged[-1][0] <= moment:  # noqa: ASYNC110
                    await asyncio.sleep(_AGAIN_SECONDS)
                return True
        return False

    async def all_consumed(self, seconds: float = 60.0) -> list[int]:
        """Waits until what is acknowledged now is consumed.

        Returns:
            The numbers of those messages that were not consumed in time: the lost ones.
        """
        missing = {number for _, number in self.acknowledged} - self.consumed.keys()
        give_up = time.monotonic() + seconds
        while missing and time.monotonic() < give_up:
            await asyncio.sleep(_AGAIN_SECONDS)
            missing -= self.consumed.keys()
        return sorted(missing)

    def longest_pause(self, begin: float, end: float) -> float:
        """The longest time between two acknowledgements, of those between two moments, in s."""
        times = [at for at, _ in self.acknowledged if begin <= at <= end]
        return max(after - before for before, after in pairwise([begin, *times, end]))

    def count_between(self, begin: float, end: float) -> list[int]:
        """The numbers of the messages that were acknowledged between two moments."""
        return [number for at, number in self.acknowledged if begin <= at <= end]

    async def _first(self, producer: Producer) -> None:
        """Sends the first message, which creates the topic."""
        while not await self._send(producer):  # noqa: ASYNC110
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _send_on(self, producer: Producer) -> None:
        while True:
            if not await self._send(producer):
                await asyncio.sleep(_AFTER_FAILURE)

    async def _send(self, producer: Producer) -> bool:
        number = self._next = self._next + 1
        try:
            sent = await producer.send(Message(TOPIC, b"%d" % number, keys=[str(number)]))
        except SprocketError:
            self.failed += 1
            return False
        if sent.status is not SendStatus.OK:
            self.failed += 1
            return False
        self.acknowledged.append((time.monotonic(), number))
        return True

    async def _consume(self, message: StoredMessage) -> None:
        self.consumed[int(message.body)] += 1


async def _cancelled(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
