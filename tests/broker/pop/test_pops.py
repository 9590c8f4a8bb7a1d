"""Pops: who gets what, when it comes again, and what survives a crash."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.protocol.bodies import AckBatchBody, GroupConfig
from sprocket.protocol.requests.group import CreateGroup
from sprocket.protocol.requests.pop import AckMessages, PopRollback
from sprocket.testing.loop import simulate
from tests.broker.parts import Asker, another, new_disk, play, serving
from tests.broker.pop.popping import (
    FOUND,
    GONE,
    POLLING_FULL,
    POLLING_TIMEOUT,
    ack,
    hide,
    items_of,
    pop,
)


async def filled(asker: Asker, count: int = 3, queues: int = 1) -> None:
    await asker.create("t", queues)
    for number in range(count):
        await asker.send("t", b"%d" % number, queue=number % queues)


def crashing(
    before: Callable[[Asker], Awaitable[None]], after: Callable[[Asker], Awaitable[None]]
) -> None:
    """Plays a part, kills the broker at its end, and plays another with its next life."""

    async def main() -> None:
        disk = new_disk()
        async with serving(disk) as asker:
            await before(asker)
            killed = disk.after_kill()
        async with serving(killed) as asker:
            await after(asker)

    simulate(lambda network: main())


def test_each_message_is_given_to_one_pop() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 5)
        assert (await pop(asker, count=2)).bodies == [b"0", b"1"]
        assert (await pop(asker, count=32)).bodies == [b"2", b"3", b"4"]
        assert (await pop(asker)).code == POLLING_TIMEOUT
        assert (await pop(asker, group="h")).bodies == [b"0", b"1", b"2", b"3", b"4"]

    play(test)


def test_what_is_not_acknowledged_comes_again_after_its_time_and_no_sooner() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        first = await pop(asker)
        assert await ack(asker, first, 1) == [0]
        await asyncio.sleep(9.5)
        assert (await pop(asker)).code == POLLING_TIMEOUT
        await asyncio.sleep(4)
        again = await pop(asker)
        assert again.bodies == [b"0", b"2"]
        assert [each.topic for each in again.messages] == ["t", "t"]
        assert [each.reconsume_times for each in again.messages] == [1, 1]
        assert {each.kind for each in again.handles} == {"1"}
        assert int(again.messages[0].properties["1ST_POP_TIME"]) == first.handles[0].pop_ms
        assert await ack(asker, again) == [0, 0]
        await asyncio.sleep(30)
        assert (await pop(asker)).code == POLLING_TIMEOUT

    play(test)


@pytest.mark.parametrize(("is_v2", "kind"), [(False, "1"), (True, "2")])
def test_both_kinds_of_retry_topics(is_v2: bool, kind: str) -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 1)
        await pop(asker)
        await asyncio.sleep(13)
        again = await pop(asker)
        assert again.handles[0].kind == kind
        await asyncio.sleep(13)
        third = await pop(asker)
        assert third.handles[0].kind == kind
        assert third.messages[0].reconsume_times == 2

    play(test, pop_retry_v2=is_v2)


def test_after_its_last_retry_a_message_is_a_dead_letter() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 1)
        config = GroupConfig(group_name="g", retry_max_times=1)
        assert await asker.code(CreateGroup(), config.encode()) == 0
        await pop(asker)
        await asyncio.sleep(13)
        assert (await pop(asker)).bodies == [b"0"]
        await asyncio.sleep(13)
        assert (await pop(asker)).code == POLLING_TIMEOUT
        (dead,) = (await asker.pull("%DLQ%g")).messages
        assert dead.body == b"0"
        assert dead.properties["RETRY_TOPIC"] == "t"

    play(test)


def test_a_changed_invisible_time_counts_from_the_change() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 2)
        first = await pop(asker)
        await asyncio.sleep(8)
        await hide(asker, first, 0, hidden_ms=20_000)
        assert first.code == FOUND
        await asyncio.sleep(8)
        assert (await pop(asker)).bodies == [b"1"]
        await asyncio.sleep(15)
        again = await pop(asker)
        assert b"0" in again.bodies
        assert await ack(asker, first, 0) == [0]  # late: it is given out again already

    play(test)


@pytest.mark.parametrize("uses", [1, 2, 3])
def test_a_handle_that_is_used_again_stands_for_the_newest_one(uses: int) -> None:
    """Its reply may have been lost; each use would otherwise make the message come once more."""

    async def test(asker: Asker) -> None:
        await filled(asker, 2)
        found = await pop(asker, count=2)
        first = list(found.handles)
        for number in range(uses):
            found.handles[:] = first
            await hide(asker, found, hidden_ms=4_000 + 1_000 * number)
            assert found.code == FOUND
        found.handles[:] = first
        assert await ack(asker, found, 1) == [0]
        again = await pop(asker, count=9, hold_ms=30_000)
        assert again.bodies == [b"0"]
        await asyncio.sleep(1)
        assert (await pop(asker, count=9, hold_ms=8_000)).bodies == []

    play(test)


@pytest.mark.parametrize("in_batch", [False, True])
def test_an_acknowledgement_with_the_handle_before_a_change_counts(in_batch: bool) -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 2)
        found = await pop(asker, count=2)
        first = list(found.handles)
        await hide(asker, found, hidden_ms=4_000)
        found.handles[:] = first
        if in_batch:
            body = AckBatchBody(broker_name="broker-a", acks=[items_of(found, 0, 1)]).encode()
            assert await asker.code(AckMessages(), body) == 0
        else:
            assert await ack(asker, found) == [0, 0]
        assert (await pop(asker, count=9, hold_ms=30_000)).bodies == []

    play(test)


def test_there_is_nothing_to_move_from_rocksdb() -> None:
    async def test(asker: Asker) -> None:
        assert await asker.code(PopRollback()) == 0

    play(test)


def test_a_held_pop_gets_what_arrives() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 4)
        waiting = [asyncio.create_task(pop(asker, hold_ms=15_000)) for _ in range(3)]
        await asyncio.sleep(1)
        await asker.send("t", b"x", queue=2)
        done, _ = await asyncio.wait(waiting, timeout=1)
        assert [task.result().bodies for task in done] == [[b"x"]]
        await asker.send("t", b"y", queue=3)
        await asker.send("t", b"z", queue=0)
        found = await asyncio.gather(*waiting)
        assert sorted(body for each in found for body in each.bodies) == [b"x", b"y", b"z"]

    play(test)


def test_a_held_pop_ends_at_its_time_and_gets_what_comes_again() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 1)
        await pop(asker)
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert (await pop(asker, hold_ms=5_000)).code == POLLING_TIMEOUT
        assert 5 <= loop.time() - began < 5.1
        assert (await pop(asker, hold_ms=15_000)).bodies == [b"0"]
        assert 10 < loop.time() - began < 13

    play(test)


def test_the_number_of_held_pops_is_bounded() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1)
        waiting = [asyncio.create_task(pop(asker, hold_ms=5_000)) for _ in range(2)]
        await asyncio.sleep(0.1)
        assert (await pop(asker, hold_ms=5_000)).code == POLLING_FULL
        assert (await pop(asker)).code == POLLING_TIMEOUT
        async with another(asker) as other:
            assert (await pop(other, queue=0, hold_ms=100)).code == POLLING_TIMEOUT
        assert {(await task).code for task in waiting} == {POLLING_TIMEOUT}

    play(test, held_pops_queue_max=2)


def test_tags_and_sql_choose() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("t", 1)
        for number in range(6):
            await asker.send("t", b"%d" % number, TAGS="ab"[number % 2], n=str(number))
        assert (await pop(asker, exp="b", exp_type="TAG")).bodies == [b"1", b"3", b"5"]
        found = await pop(asker, group="h", exp="n BETWEEN 2 AND 3", exp_type="SQL92")
        assert found.bodies == [b"2", b"3"]
        assert (await pop(asker, group="i", exp="n >", exp_type="SQL92")).code == 23

    play(test)


def test_a_crash_gives_nothing_out_before_its_time_and_loses_nothing() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 6)
        await asyncio.sleep(7)  # the offsets are saved
        first = await pop(asker, count=4)
        assert await ack(asker, first, 0, 3) == [0, 0]

    async def after(asker: Asker) -> None:
        assert (await pop(asker)).bodies == [b"4", b"5"]
        await asyncio.sleep(13)
        assert sorted((await pop(asker)).bodies) == [b"1", b"2", b"4", b"5"]

    crashing(before, after)


def test_what_came_again_before_a_crash_does_not_come_twice() -> None:
    async def before(asker: Asker) -> None:
        await filled(asker, 2)
        await pop(asker)
        await asyncio.sleep(11.6)
        (again,) = (await asker.pull("%RETRY%g_t")).messages[:1]
        assert again.body == b"0"

    async def after(asker: Asker) -> None:
        await asyncio.sleep(20)
        assert sorted(await asker.bodies("%RETRY%g_t")) == [b"0", b"1"]

    crashing(before, after)


def test_handles_that_name_nothing_are_refused() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker, 1)
        found = await pop(asker)
        good = found.handles[0]
        for bad in (good._replace(offset=9), good._replace(revive_queue=77)):
            found.handles[0] = bad
            assert await ack(asker, found) in ([GONE], [29])
        found.handles[0] = good._replace(queue_number=5)
        assert await ack(asker, found) == [13]
        found.handles[0] = good
        assert await ack(asker, found) == [0]
        for wrong in ({"count": 33}, {"count": 0}, {"hidden_ms": 0}, {"hidden_ms": 1 << 40}):
            assert (await pop(asker, **wrong)).code == 29  # type: ignore[arg-type]
        assert (await pop(asker, "unknown")).code == 17
        assert (await pop(asker, queue=1)).code == 29

    play(test)
