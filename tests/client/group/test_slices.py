"""Work on many queues leaves the loop its turns: by count, in virtual time."""

from __future__ import annotations

import asyncio
from collections import Counter

from sprocket.client.group.slices import SLICE, SLICE_SECONDS, InSlices, cancel_all
from sprocket.testing.loop import simulate


def test_a_few_begin_at_once_and_many_in_slices_whoever_adds_them() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        begun: list[tuple[float, int]] = []
        slices = InSlices[int](lambda work: begun.append((loop.time(), work)))
        slices.add([0, 1])
        assert [work for _, work in begun] == [0, 1]
        start = loop.time()
        for topic in range(50):  # each of them alone would be small enough
            slices.add(range(topic * 100, topic * 100 + 100))
        await asyncio.sleep(5000 / SLICE * SLICE_SECONDS + 1)
        assert [work for _, work in begun[2:]] == list(range(5000))
        assert max(Counter(at for at, _ in begun).values()) <= SLICE
        assert begun[-1][0] - start <= 5000 / SLICE * SLICE_SECONDS + 0.1

    simulate(lambda network: main())


def test_what_a_work_adds_comes_behind_those_that_wait() -> None:
    async def main() -> None:
        begun: list[int] = []

        def begin(work: int) -> None:
            begun.append(work)
            if work < SLICE:
                slices.add([work + 10 * SLICE])

        slices = InSlices[int](begin)
        slices.add(range(2 * SLICE))
        await asyncio.sleep(1)
        assert begun == [*range(2 * SLICE), *range(10 * SLICE, 11 * SLICE)]

    simulate(lambda network: main())


def test_none_begins_after_a_stop() -> None:
    async def main() -> None:
        begun: list[int] = []
        slices = InSlices[int](begun.append)
        slices.add(range(3 * SLICE))
        slices.stop()
        await asyncio.sleep(1)
        assert len(begun) == SLICE

    simulate(lambda network: main())


def test_thousands_of_tasks_are_cancelled_a_slice_at_a_time() -> None:
    async def main() -> None:
        ended = 0

        async def waits() -> None:
            nonlocal ended
            try:
                await asyncio.sleep(1e6)
            finally:
                ended += 1

        tasks = [asyncio.create_task(waits()) for _ in range(1000)]
        await asyncio.sleep(0)
        ending = asyncio.create_task(cancel_all(tasks))
        most, before = 0, 0
        while not ending.done():
            await asyncio.sleep(0)
            most, before = max(most, ended - before), ended
        assert ended == 1000
        assert most <= SLICE

    simulate(lambda network: main())


def test_the_next_slice_waits_while_the_last_is_under_way_but_not_for_ever() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        begun: list[float] = []
        ended = 0
        slices = InSlices[int](lambda _: begun.append(loop.time()), lambda: len(begun) - ended)
        slices.add(range(4 * SLICE))
        await asyncio.sleep(2.5 * SLICE_SECONDS)
        assert len(begun) == SLICE
        ended = SLICE
        await asyncio.sleep(SLICE_SECONDS)
        assert len(begun) == 2 * SLICE
        await asyncio.sleep(4 * SLICE_SECONDS)
        assert len(begun) == 2 * SLICE
        await asyncio.sleep(8 * SLICE_SECONDS)  # nothing ends any more
        assert len(begun) == 4 * SLICE

    simulate(lambda network: main())
