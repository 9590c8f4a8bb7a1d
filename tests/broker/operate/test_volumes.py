"""Operators and volumes."""

from __future__ import annotations

import asyncio

from sprocket.protocol.bodies import BrokerStatsBody, StatsItem, TopicStatsTable
from sprocket.protocol.requests.admin import BrokerStats
from sprocket.protocol.requests.group import DeleteGroup
from sprocket.protocol.requests.send import SendBack
from sprocket.protocol.requests.topic import TopicStats
from tests.broker.parts import SUCCESS, Asker, play


async def shown(asker: Asker, name: str, key: str) -> BrokerStatsBody | None:
    reply = await asker.call(BrokerStats(stats_name=name, stats_key=key))
    return BrokerStatsBody.decode(reply.body) if reply.code == SUCCESS else None


async def minute(asker: Asker, name: str, key: str) -> StatsItem:
    found = await shown(asker, name, key)
    assert found is not None
    assert found.stats_minute is not None
    return found.stats_minute


def test_what_came_in_and_went_out_is_told_by_topic_and_group() -> None:
    async def test(asker: Asker) -> None:
        for _ in range(6):
            await asker.send("T", b"12345")
        await asker.pull("T")
        put = await minute(asker, "TOPIC_PUT_NUMS", "T")
        assert (put.sum, put.avgpt, put.tps) == (6, 1.0, 0.6)
        assert (await minute(asker, "TOPIC_PUT_SIZE", "T")).sum > 6 * 91
        got = await minute(asker, "GROUP_GET_NUMS", "T@g")
        assert (got.sum, got.avgpt) == (6, 6.0)
        assert (await minute(asker, "BROKER_PUT_NUMS", "DefaultCluster")).sum == 6
        assert (await minute(asker, "BROKER_GET_NUMS", "DefaultCluster")).sum == 6
        reply = await asker.call(TopicStats(topic="T"))
        assert TopicStatsTable.decode(reply.body).topic_put_tps == 0.6
        await asyncio.sleep(600)
        assert (await minute(asker, "TOPIC_PUT_NUMS", "T")).sum == 0
        found = await shown(asker, "TOPIC_PUT_NUMS", "T")
        assert found is not None
        assert found.stats_hour is not None
        assert found.stats_hour.sum == 6

    play(test)


def test_what_a_group_gave_back_is_told_until_the_group_is_deleted() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        await asker.beat("g", topics={"T": "*"})
        (message,) = (await asker.pull("T")).messages
        header = SendBack(offset=message.log_offset, group="g", delay_level=0)
        assert await asker.code(header) == SUCCESS
        assert (await minute(asker, "SNDBCK_PUT_NUMS", "T@g")).sum == 1
        assert await asker.code(DeleteGroup(group_name="g")) == SUCCESS
        assert await shown(asker, "SNDBCK_PUT_NUMS", "T@g") is None

    play(test)


def test_what_is_not_counted_is_an_error() -> None:
    async def test(asker: Asker) -> None:
        for name, key in (
            ("TOPIC_PUT_NUMS", "nothing"),
            ("GROUP_GET_NUMS", "no-at"),
            ("BROKER_PUT_NUMS", "other"),
            ("WHAT", "T"),
        ):
            assert await shown(asker, name, key) is None

    play(test)
