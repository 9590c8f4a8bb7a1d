"""Pops in order: one in flight a queue, attempts, and what survives a crash."""

from __future__ import annotations

import asyncio

from tests.broker.parts import Asker, play
from tests.broker.pop.popping import FOUND, GONE, POLLING_TIMEOUT, Popped, ack, hide, lag, pop
from tests.broker.pop.test_pops import crashing, filled


async def popped(
    asker: Asker, *, count: int = 2, hold_ms: int = 0, attempt: str | None = None
) -> Popped:
    return await pop(asker, count=count, hold_ms=hold_ms, order=True, attempt_id=attempt)


def test_a_queue_gives_nothing_until_all_of_it_is_done() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 4)
        first = await popped(asker)
        assert first.bodies == [b"0", b"1"]
        assert first.fields["orderCountInfo"] == "0 0 0"
        assert (await popped(asker)).code == POLLING_TIMEOUT
        assert await ack(asker, first, 1) == [0]
        assert (await popped(asker)).code == POLLING_TIMEOUT
        assert await lag(asker) == 4
        assert await ack(asker, first, 0) == [0]
        assert await lag(asker) == 2
        assert (await popped(asker)).bodies == [b"2", b"3"]

    play(test)


def test_queues_are_independent() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 4, queues=2)
        both = await popped(asker, count=32)
        assert sorted(both.bodies) == [b"0", b"1", b"2", b"3"]
        for place, message in enumerate(both.messages):
            if message.queue.number == 1:
                assert await ack(asker, both, place) == [0]
        await asker.send("t", b"4", queue=0)
        await asker.send("t", b"5", queue=1)
        assert (await popped(asker)).bodies == [b"5"]

    play(test)


def test_after_its_time_the_rest_comes_again_and_what_is_done_does_not() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 4)
        first = await popped(asker, count=3)
        assert await ack(asker, first, 1) == [0]
        waiting = asyncio.create_task(popped(asker, count=32, hold_ms=15_000))
        await asyncio.sleep(9.9)
        assert not waiting.done()
        again = await waiting
        assert again.bodies == [b"0", b"2", b"3"]
        assert again.fields["orderCountInfo"] == "0 qo0%0 1;0 qo0%2 1;0 0 0"
        assert await ack(asker, first, 0) == [GONE]
        assert await ack(asker, again) == [0, 0, 0]
        assert await ack(asker, again, 0) == [0]  # repeated
        assert (await popped(asker)).code == POLLING_TIMEOUT
        assert await lag(asker) == 0

    play(test)


def test_an_attempt_that_is_repeated_gets_the_same() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 4)
        assert (await popped(asker, attempt="a")).bodies == [b"0", b"1"]
        assert (await popped(asker, attempt="b")).code == POLLING_TIMEOUT
        again = await popped(asker, attempt="a")
        assert again.bodies == [b"0", b"1"]
        assert again.fields["orderCountInfo"] == "0 0 0"
        assert await ack(asker, again) == [0, 0]

    play(test)


def test_an_acknowledgement_lets_a_held_pop_go_on() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 3)
        first = await popped(asker)
        waiting = asyncio.create_task(popped(asker, hold_ms=9_000))
        await asyncio.sleep(1)
        assert await ack(asker, first) == [0, 0]
        async with asyncio.timeout(1):
            assert (await waiting).bodies == [b"2"]

    play(test)


def test_a_changed_invisible_time_moves_the_end_of_the_lock() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 1)
        first = await popped(asker)
        await hide(asker, first, hidden_ms=1_000)
        assert first.code == FOUND
        assert (await popped(asker)).code == POLLING_TIMEOUT
        await asyncio.sleep(1.1)
        assert (await popped(asker)).bodies == [b"0"]

    play(test)


def test_a_crash_keeps_the_lock_and_what_is_done() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 5)
        first = await popped(asker)
        assert await ack(asker, first) == [0, 0]
        second = await popped(asker)
        assert second.bodies == [b"2", b"3"]
        assert await ack(asker, second, 1) == [0]

    async def after(asker: Asker) -> None:
        assert (await popped(asker)).code == POLLING_TIMEOUT
        await asyncio.sleep(11)
        assert (await popped(asker)).bodies == [b"2", b"4"]

    crashing(before, after)
