"""Histories by seed: a sender, clients that acknowledge, give back or forget, and kills of the
broker. Nothing is lost, nothing that was acknowledged comes again, and each lite topic keeps its
order."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

import pytest

from sprocket.base.errors import SprocketError
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from tests.broker.lite.lites import ack, begin, change, hide, pop, send
from tests.broker.parts import SUCCESS, Asker, new_disk, serving

LITES = "abcd"
CLIENTS = ("c1", "c2", "c3")


class LiteHistory:
    """What was sent, seen and acknowledged.

    Attributes:
        sent: the bodies of each lite topic, in order; the last one may not be stored.
        unsure: bodies of sends and acknowledgements whose reply did not come.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sent: dict[str, list[bytes]] = defaultdict(list)
        self.first_seen: dict[str, list[bytes]] = defaultdict(list)
        self.done: set[bytes] = set()
        self.unsure: set[bytes] = set()
        self.number = 0

    @property
    def left(self) -> set[bytes]:
        return {body for bodies in self.sent.values() for body in bodies} - self.done - self.unsure

    async def send_some(self, asker: Asker) -> None:
        while True:
            await asyncio.sleep(self.random.expovariate(8))
            self.number += 1
            lite, body = self.random.choice(LITES), b"%d" % self.number
            self.sent[lite].append(body)
            self.unsure.add(body)
            await send(asker, lite, body)
            self.unsure.discard(body)

    async def consume(self, asker: Asker, client: str, *, is_last: bool) -> None:
        """Pops as one client, until it is cancelled."""
        while True:
            assert await change(asker, "COMPLETE_ADD", *LITES, client=client) == SUCCESS
            count, hidden_ms = self.random.randint(1, 5), 4_000
            found = await pop(asker, client=client, count=count, hold_ms=2_000, hidden_ms=hidden_ms)
            for place, message in enumerate(found.messages):
                self.see(message.properties["__LITE_TOPIC"], message.body)
                what = 0.0 if is_last else self.random.random()
                if what < 0.7:
                    self.unsure.add(message.body)
                    (code,) = await ack(asker, found, place)
                    assert code == SUCCESS
                    self.unsure.discard(message.body)
                    self.done.add(message.body)
                elif what < 0.85:
                    await hide(asker, found, place, self.random.randint(1, 3_000))

    def see(self, lite: str, body: bytes) -> None:
        assert body not in self.done, (lite, body)
        if body not in self.first_seen[lite]:
            self.first_seen[lite].append(body)

    def check_order(self) -> None:
        for lite, seen in self.first_seen.items():
            assert seen == sorted(seen, key=self.sent[lite].index)


async def live(
    history: LiteHistory, disk: MemoryDisk, seconds: float, *, is_last: bool
) -> MemoryDisk:
    """One life of the broker; the disk as a kill leaves it."""
    async with serving(disk) as asker:
        if not history.number:
            await begin(asker)
        works = [history.consume(asker, each, is_last=is_last) for each in CLIENTS]
        if not is_last:
            works.append(history.send_some(asker))
        tasks = [asyncio.ensure_future(work) for work in works]
        if is_last:
            for _ in range(240):
                if history.left:
                    await asyncio.sleep(0.5)
            assert not history.left
        await asyncio.sleep(seconds)
        killed = disk.after_kill()
        for task in tasks:
            task.cancel()
        for found in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(found, asyncio.CancelledError | SprocketError), found
        return killed


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_lost_and_nothing_done_comes_again(seed: int) -> None:
    async def main() -> None:
        history, disk = LiteHistory(seed), new_disk()
        for _ in range(3):
            seconds = history.random.uniform(3, 12)
            disk = await live(history, disk, seconds, is_last=False)
        await live(history, disk, 10, is_last=True)
        history.check_order()
        assert history.number > 30

    simulate(lambda network: main(), seed=seed)
