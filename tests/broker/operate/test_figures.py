"""Operators and figures."""

from __future__ import annotations

import asyncio

from sprocket.protocol.bodies import ConsumeTimeSpans, KvTable, TopicStatsTable
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.group import ConsumeTimeSpan
from sprocket.protocol.requests.topic import TopicStats
from tests.broker.parts import SUCCESS, Asker, play


def test_a_topics_queues_are_shown_with_their_ends() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", 2)
        await asker.send("T")
        await asker.send("T")
        reply = await asker.call(TopicStats(topic="T"))
        assert reply.code == SUCCESS
        table = TopicStatsTable.decode(reply.body).offset_table
        ends = {queue.queue_id: (r.min_offset, r.max_offset) for queue, r in table.items()}
        assert ends == {0: (0, 2), 1: (0, 0)}
        assert await asker.code(TopicStats(topic="nothing")) == 17
        await asker.create("empty", 0)
        assert await asker.code(TopicStats(topic="empty")) == SUCCESS

    play(test)


def test_the_times_of_queues_and_how_late_a_group_is() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        for _ in range(3):
            await asker.send("T")
            await asyncio.sleep(2)
        await asker.beat("g", topics={"T": "*"})
        await asker.commit("g", "T", 2)
        reply = await asker.call(ConsumeTimeSpan(topic="T", group="g"))
        (span,) = ConsumeTimeSpans.decode(reply.body).consume_time_span_set
        times = [message.stored_ms for message in (await asker.pull("T")).messages]
        assert [span.min_time_stamp, span.consume_time_stamp, span.max_time_stamp] == times
        assert 2000 <= span.delay_time < 2200
        assert (span.min_time_stamp_str or "").startswith("2024-01-01#00:00:0")
        assert await asker.code(ConsumeTimeSpan(topic="nothing", group="g")) == 17

    play(test)


def test_the_state_of_the_broker_has_what_rocketmqs_tools_read() -> None:
    async def test(asker: Asker) -> None:
        for _ in range(20):
            await asker.send("T")
            await asyncio.sleep(1)
        pulled = await asker.pull("T")
        table = KvTable.decode((await asker.call(BrokerState())).body).table
        assert table["brokerVersionDesc"] == "V5_3_3"
        assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("20", "20")
        assert [round(float(rate)) for rate in table["putTps"].split()] == [1, 1, 1]
        assert table["commitLogMinOffset"] == "0"
        assert table["earliestMessageTimeStamp"] == str(pulled.messages[0].stored_ms)
        assert 0 <= float(table["commitLogDiskRatio"]) < 1
        for name in ("sendThreadPoolQueueSize", "commitLogDiskRatio", "timerDequeueTps"):
            float(table[name])

    play(test)
