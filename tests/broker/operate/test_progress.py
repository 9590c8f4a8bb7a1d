"""Operators and how far consumers are."""

from __future__ import annotations

import asyncio

from sprocket.protocol.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    OffsetTable,
    Progress,
    Queue,
    ResetOffsetBody,
)
from sprocket.protocol.requests.group import AllConsumeStats, ConsumeStatsOf
from sprocket.protocol.requests.offset import AllOffsets, CloneOffset, ResetOffset
from tests.broker.parts import SUCCESS, Asker, play


async def filled(asker: Asker) -> None:
    await asker.create("T", 2)
    for queue in (0, 0, 0, 1):
        await asker.send("T", queue=queue)
    await asker.beat("g", topics={"T": "*"})
    await asker.commit("g", "T", 2)


def queue(number: int) -> Queue:
    return Queue(broker_name="broker-a", queue_id=number, topic="T")


async def stats(asker: Asker, **more: str) -> dict[Queue, Progress]:
    reply = await asker.call(ConsumeStatsOf(consumer_group="g", **more))
    assert reply.code == SUCCESS
    return ConsumeStats.decode(reply.body).offset_table


def test_progress_is_shown_by_queue() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        shown = await stats(asker)
        assert shown.keys() == {queue(0), queue(1)}
        assert (shown[queue(0)].broker_offset, shown[queue(0)].consumer_offset) == (3, 2)
        assert (shown[queue(1)].broker_offset, shown[queue(1)].consumer_offset) == (1, 0)
        assert shown[queue(0)].last_timestamp > 0
        assert await stats(asker, topic="T") == shown
        assert await stats(asker, topic_list="T;U") == shown
        assert await stats(asker, topic="nothing") == {}
        reply = await asker.call(AllConsumeStats(is_order=False))
        assert ConsumeStatsList.decode(reply.body).total_diff == 2

    play(test)


def test_topics_that_a_group_no_longer_subscribes_are_left_out() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        await asker.beat("g", topics={"U": "*"})
        assert await stats(asker) == {}

    play(test)


def test_a_group_is_reset_to_a_time_an_offset_or_the_end() -> None:
    async def reset(asker: Asker, **more: int) -> dict[int, int]:
        reply = await asker.call(ResetOffset(topic="T", group="g", **more))  # type: ignore[arg-type]
        assert reply.code == SUCCESS, reply.remark
        table = ResetOffsetBody.decode(reply.body).offset_table
        for each, offset in table.items():
            assert await asker.committed("g", "T", each.queue_id) == offset
        return {each.queue_id: offset for each, offset in table.items()}

    async def test(asker: Asker) -> None:
        await filled(asker)
        assert await reset(asker, timestamp=0) == {0: 0, 1: 0}
        assert await reset(asker, timestamp=-1) == {0: 3, 1: 1}
        assert await reset(asker, queue_id=0, offset=1) == {0: 1}
        assert await reset(asker, queue_id=0, timestamp=0) == {0: 0}
        assert await reset(asker, timestamp=1 << 60) == {0: 3, 1: 1}
        for wrong, code in (
            (ResetOffset(topic="nothing", group="g"), 17),
            (ResetOffset(topic="T", group="nobody"), 26),
            (ResetOffset(topic="T", group="g", queue_id=0, offset=4), 1),
        ):
            assert await asker.code(wrong) == code

    play(test)


def test_offsets_are_copied_and_listed() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        assert await asker.code(CloneOffset(src_group="g", dest_group="h", topic="T")) == SUCCESS
        assert await asker.committed("h", "T") == 2
        reply = await asker.call(AllOffsets())
        table = OffsetTable.decode(reply.body).offset_table
        assert table == {"T@g": {0: 2}, "T@h": {0: 2}}
        await asyncio.sleep(0)

    play(test)
