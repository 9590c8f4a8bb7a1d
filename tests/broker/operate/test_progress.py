"""Operators and how far consumers are."""

from __future__ import annotations

from sprocket.protocol.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    CorrectionOffsets,
    OffsetTable,
    Queue,
    QueueProgress,
)
from sprocket.protocol.requests.group import AllConsumeStats, ConsumeStatsOf
from sprocket.protocol.requests.offset import AllOffsets, QueryCorrectionOffset
from tests.broker.parts import SUCCESS, Asker, play, pull_of


async def filled(asker: Asker) -> None:
    await asker.create("T", 2)
    for queue in (0, 0, 0, 1):
        await asker.send("T", queue=queue)
    await asker.beat("g", topics={"T": "*"})
    await asker.commit("g", "T", 2)


def queue(number: int) -> Queue:
    return Queue(broker_name="broker-a", queue_id=number, topic="T")


async def stats(asker: Asker, **more: str) -> dict[Queue, QueueProgress]:
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
        pull = pull_of("T", 0)
        await asker.call(pull)
        reply = await asker.call(ConsumeStatsOf(consumer_group="g"))
        assert ConsumeStats.decode(reply.body).consume_tps == 0.3
        reply = await asker.call(AllConsumeStats(is_order=False))
        assert ConsumeStatsList.decode(reply.body).total_diff == 2

    play(test)


def test_topics_that_a_group_no_longer_subscribes_are_left_out() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        await asker.beat("g", topics={"U": "*"})
        assert await stats(asker) == {}

    play(test)


def test_all_offsets_are_listed_and_groups_are_compared() -> None:
    async def compare(asker: Asker, **more: str) -> dict[int, int]:
        reply = await asker.call(QueryCorrectionOffset(topic="T", **more))
        return CorrectionOffsets.decode(reply.body).correction_offsets

    async def test(asker: Asker) -> None:
        await filled(asker)
        await asker.beat("h", client_id="c2", topics={"T": "*"})
        await asker.commit("h", "T", 1)
        reply = await asker.call(AllOffsets())
        table = OffsetTable.decode(reply.body).offset_table
        assert table == {"T@g": {0: 2}, "T@h": {0: 1}}
        assert await compare(asker) == {0: 1}
        assert await compare(asker, filter_groups="h,x") == {0: 2}
        assert await compare(asker, filter_groups="h", compare_group="h") == {0: 2**63 - 1}

    play(test)
