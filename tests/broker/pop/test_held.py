"""Waiting pops: who is woken, that no wake is lost, and that no task is left."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.testing.loop import simulate
from tests.broker.parts import Asker, another, play, serving
from tests.broker.pop.popping import POLLING_TIMEOUT, pop


def test_one_message_ends_one_pop_of_each_group() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 2)
        waiting = [
            asyncio.create_task(pop(asker, group=group, queue=queue, hold_ms=5_000))
            for group in ("g", "h")
            for queue in (0, -1, -1)
        ]
        await asyncio.sleep(0.1)
        await asker.send("t", b"x", queue=0)
        await asyncio.sleep(0.1)
        assert [each.done() for each in waiting] == [False, True, False] * 2
        await asker.send("t", b"y", queue=1)
        await asyncio.sleep(0.1)
        assert [each.done() for each in waiting] == [False, True, True] * 2
        await asker.send("t", b"z", queue=0)
        await asyncio.sleep(0.1)
        assert all(each.done() for each in waiting)

    play(test)


def test_a_pop_that_hangs_up_takes_no_message_along() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1)
        async with another(asker) as other:
            gone = asyncio.create_task(pop(other, hold_ms=60_000))
            await asyncio.sleep(0.1)
            waiting = asyncio.create_task(pop(asker, hold_ms=5_000))
            await asyncio.sleep(0.1)
            gone.cancel()
        await asyncio.sleep(0.1)
        await asker.send("t", b"x")
        assert (await waiting).bodies == [b"x"]

    play(test)


def test_a_topic_of_many_queues_wakes_too() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 300)
        waiting = asyncio.create_task(pop(asker, hold_ms=5_000))
        await asyncio.sleep(1)
        await asker.send("t", b"x", queue=299)
        async with asyncio.timeout(0.5):
            assert (await waiting).bodies == [b"x"]

    play(test)


@pytest.mark.parametrize(("before", "after"), [(1, 4), (100, 300), (300, 400)])
def test_pops_that_wait_see_the_queues_that_a_topic_gets_meanwhile(before: int, after: int) -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", before)
        others = [asyncio.create_task(pop(asker, hold_ms=60_000, group="h")) for _ in range(2)]
        waiting = asyncio.create_task(pop(asker, hold_ms=60_000))
        await asyncio.sleep(1)
        await asker.create("t", after)
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await asker.send("t", b"x", queue=after - 1)
        async with asyncio.timeout(0.5):
            assert (await waiting).bodies == [b"x"]
        for each in others:
            each.cancel()

    play(test)


def test_a_broker_that_stops_answers_those_that_wait() -> None:
    async def main() -> None:
        async with serving() as asker:
            await asker.create("t", 2)
            waiting = [asyncio.create_task(pop(asker, hold_ms=60_000)) for _ in range(3)]
            await asyncio.sleep(0.1)
            stopping = asyncio.create_task(asker.broker.__aexit__(None, None, None))
            assert {(await each).code for each in waiting} == {POLLING_TIMEOUT}
            await stopping
            names = [str(task.get_coro()) for task in asyncio.all_tasks()]
            assert not any("_arrivals" in name for name in names)

    simulate(lambda network: main())


def test_a_topic_made_again_wakes_too() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1)
        first = asyncio.create_task(pop(asker, hold_ms=20_000))
        second = asyncio.create_task(pop(asker, hold_ms=20_000))
        for number in range(2):
            await asyncio.sleep(2)
            await asker.send("t", b"%d" % number)
        found = await asyncio.gather(first, second)
        assert sorted(body for each in found for body in each.bodies) == [b"0", b"1"]

    play(test)
