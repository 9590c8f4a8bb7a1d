"""Virtual time, and the same history for the same seed."""

from __future__ import annotations

import asyncio
import time

import pytest

from sprocket.testing.clock import EPOCH_MS, LoopClock
from sprocket.testing.loop import Stuck, simulate
from sprocket.testing.network import Network


def test_a_day_passes_at_once() -> None:
    async def main(network: Network) -> int:
        await asyncio.sleep(86_400)
        return LoopClock().now_ms() - EPOCH_MS

    before = time.perf_counter()
    assert simulate(main) == 86_400_000
    assert time.perf_counter() - before < 600


def test_timers_fire_in_the_order_of_their_times() -> None:
    async def main(network: Network) -> list[float]:
        loop = asyncio.get_running_loop()
        fired: list[float] = []
        for wait in (3.0, 1.0, 2.0):
            loop.call_later(wait, lambda: fired.append(loop.time()))
        await asyncio.sleep(5)
        return fired

    assert simulate(main) == [1.0, 2.0, 3.0]


def test_time_outs_work() -> None:
    async def main(network: Network) -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(7):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert simulate(main) == pytest.approx(7)


def test_waiting_for_nothing_is_an_error_and_not_for_ever() -> None:
    async def main(network: Network) -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck, match="all tasks wait"):
        simulate(main)


def test_turning_without_time_going_on_is_an_error() -> None:
    async def main(network: Network) -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_soon(again)

        again()
        await asyncio.sleep(1)

    with pytest.raises(Stuck, match="time stands still"):
        simulate(main)


def test_what_blocks_runs_at_once() -> None:
    async def main(network: Network) -> list[int]:
        loop = asyncio.get_running_loop()
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(None, divmod, 1, 0)
        return [await asyncio.to_thread(max, 1, 2), await loop.run_in_executor(None, max, 3, 4)]

    assert simulate(main) == [2, 4]


def test_an_error_that_nobody_looked_at_fails_the_simulation() -> None:
    async def main(network: Network) -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    with pytest.raises(AssertionError, match="nobody retrieved"):
        simulate(main)


def test_tasks_that_are_left_are_cancelled() -> None:
    ended: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("yes")

    async def main(network: Network) -> None:
        main.task = asyncio.ensure_future(waits())  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    simulate(main)
    assert ended == ["yes"]


def test_sets_of_tasks_are_iterated_alike_in_every_run() -> None:
    async def main(network: Network) -> list[str]:
        async def named() -> None:
            await asyncio.sleep(1)

        padding = [object() for _ in range(main.padding)]  # type: ignore[attr-defined]
        tasks = {asyncio.create_task(named(), name=str(number)) for number in range(50)}
        del padding
        order = [task.get_name() for task in tasks]
        await asyncio.wait(tasks)
        return order

    orders = []
    for padding in (0, 100, 7777):
        main.padding = padding  # type: ignore[attr-defined]
        orders.append(simulate(main))
    assert orders[0] == orders[1] == orders[2]
