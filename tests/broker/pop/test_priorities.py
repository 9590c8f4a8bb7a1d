"""Pops that go over the queues of a topic by priority."""

from __future__ import annotations

import asyncio

from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.requests.group import CreateGroup
from tests.broker.parts import SUCCESS, Asker, play
from tests.broker.pop.popping import ack, pop

PRIORITIES = (1, 3, 0, 2, 3, 0)


async def filled(asker: Asker, kind: str = "PRIORITY") -> None:
    await asker.create("t", 4, attributes=f"+message.type={kind}")
    for number, priority in enumerate(PRIORITIES):
        await asker.send("t", b"%d.%d" % (priority, number), _SYS_MSG_PRIORITY_=str(priority))


async def each(asker: Asker, **more: object) -> list[bytes]:
    """What single pops get, one after the other."""
    found: list[bytes] = []
    while (popped := await pop(asker, count=1, **more)).bodies:  # type: ignore[arg-type]
        found += popped.bodies
    return found


def test_messages_of_a_higher_priority_come_first_and_equal_ones_in_their_order() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        assert (await pop(asker)).bodies == [b"3.1", b"3.4", b"2.3", b"1.0", b"0.2", b"0.5"]
        assert await each(asker, group="h") == [b"3.1", b"3.4", b"2.3", b"1.0", b"0.2", b"0.5"]

    play(test)


def test_0_is_the_highest_priority_if_that_is_set() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        assert (await pop(asker)).bodies == [b"0.2", b"0.5", b"1.0", b"2.3", b"3.1", b"3.4"]

    play(test, priority_ascending=False)


async def first_queues(asker: Asker, kind: str = "PRIORITY", factor: str | None = None) -> set[str]:
    """With which priority the first of many pops, each of a new group, begin."""
    await filled(asker, kind)
    begun = set()
    for number in range(60):
        group = f"g{number}"
        if factor is not None:
            body = GroupConfig(group_name=group, attributes={"+priority.factor": factor})
            assert await asker.code(CreateGroup(), body.encode()) == SUCCESS
        begun.add((await pop(asker, group=group, count=1)).bodies[0].decode()[0])
    return begun


def test_only_topics_for_priorities_are_popped_by_priority() -> None:
    assert play(first_queues) == {"3"}
    assert play(lambda asker: first_queues(asker, "NORMAL")) == {"0", "1", "2", "3"}


def test_a_group_may_have_a_part_of_its_pops_begin_anywhere() -> None:
    assert play(lambda asker: first_queues(asker, factor="0")) == {"0", "1", "2", "3"}
    assert play(lambda asker: first_queues(asker, factor="100")) == {"3"}


def test_what_comes_again_waits_until_there_is_nothing_new_unless_set_otherwise() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        first = await pop(asker, count=1, hidden_ms=1_000)
        assert first.bodies == [b"3.1"]
        await asyncio.sleep(10)
        left = await pop(asker, count=32)
        assert left.bodies[-1] == b"3.1"
        assert set(await ack(asker, left)) == {0}

    play(test)

    async def other(asker: Asker) -> None:
        await filled(asker)
        await pop(asker, count=1, hidden_ms=1_000)
        await asyncio.sleep(10)
        assert (await pop(asker, count=1)).bodies == [b"3.1"]

    play(other, pop_priority_retry_percent=100)
