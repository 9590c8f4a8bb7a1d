"""The line before a meter: one at a time, the takers in turn."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.quotas.buckets import TokenBucket
from sprocket.quotas.lines import MeterLine
from sprocket.testing.loop import simulate


async def served(
    takers: list[str], *, rate: float = 10.0, until: float = 1e6
) -> list[tuple[str, float]]:
    """Lets takers wait for an empty bucket, in this order; who came when."""
    loop = asyncio.get_running_loop()
    bucket = TokenBucket(rate, 1, loop.time())
    bucket.spend(1, loop.time())
    line = MeterLine(lambda: bucket.wait_seconds(1, loop.time()))
    came: list[tuple[str, float]] = []

    async def one(taker: str) -> None:
        if await line.turn(taker, until):
            bucket.spend(1, loop.time())
            came.append((taker, loop.time()))

    await asyncio.gather(*map(one, takers))
    assert line.is_empty
    return came


def test_they_come_at_the_rate_and_in_their_order() -> None:
    came = simulate(lambda network: served(["a"] * 20))
    assert [time for _, time in came] == pytest.approx(
        [0.1 * (number + 1) for number in range(20)], abs=0.05
    )


def test_one_with_many_waits_as_long_for_each_as_one_with_few() -> None:
    came = simulate(lambda network: served([*["many"] * 20, "few", "few"]))
    assert [taker for taker, _ in came[:5]] == ["many", "few", "many", "few", "many"]


def test_those_whose_time_is_over_leave_and_the_others_come() -> None:
    came = simulate(lambda network: served(["a"] * 50, until=2.05))
    assert len(came) == 20


def test_one_that_is_cancelled_holds_nobody_up() -> None:
    async def main() -> list[str]:
        loop, came = asyncio.get_running_loop(), list[str]()
        opens = loop.time() + 1.0
        line = MeterLine(lambda: max(0.0, opens - loop.time()))

        async def one(taker: str) -> None:
            if await line.turn(taker, 1e6):
                came.append(taker)

        tasks = [asyncio.create_task(one(taker)) for taker in "abc"]
        await asyncio.sleep(0.5)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return came

    assert simulate(lambda network: main()) == ["b", "c"]
