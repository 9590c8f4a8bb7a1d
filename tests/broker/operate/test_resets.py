"""Operators who move groups."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.protocol.bodies import (
    ConsumerData,
    HeartbeatBody,
    Queue,
    ResetOffsetBody,
    ResetOffsetList,
    SubscriptionData,
)
from sprocket.protocol.command import Command
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode
from sprocket.protocol.requests.client import Heartbeat
from sprocket.protocol.requests.offset import CloneOffset, ResetClientOffset, ResetOffset
from tests.broker.parts import MOVED, SUCCESS, Asker, another, play, settle


async def filled(asker: Asker) -> None:
    await asker.create("T", 2)
    for queue in (0, 0, 0, 1):
        await asker.send("T", queue=queue)
    await asker.beat("g", topics={"T": "*"})
    await asker.commit("g", "T", 2)


async def reset(asker: Asker, **more: int) -> dict[int, int]:
    reply = await asker.call(ResetOffset(topic="T", group="g", **more))  # type: ignore[arg-type]
    assert reply.code == SUCCESS, reply.remark
    table = ResetOffsetBody.decode(reply.body).offset_table
    for each, offset in table.items():
        assert await asker.committed("g", "T", each.queue_id) == offset
    return {each.queue_id: offset for each, offset in table.items()}


def test_a_group_is_reset_to_a_time_an_offset_or_the_end() -> None:
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
            (ResetOffset(topic="T", group="g", queue_id=7, timestamp=0), 1),
        ):
            assert await asker.code(wrong) == code

    play(test)


def test_a_busy_consumer_with_a_pull_out_goes_on_where_it_was_sent_and_commits_nothing_else() -> (
    None
):
    async def test(asker: Asker) -> None:
        await filled(asker)
        waiting = asyncio.create_task(asker.pull("T", 3, hold_ms=15_000))
        await settle()
        assert await reset(asker, queue_id=0, offset=1) == {0: 1}
        moved = await waiting
        assert (moved.code, moved.next_offset) == (MOVED, 1)
        await asker.commit("g", "T", 3)  # was under way when it was told
        assert await asker.committed("g", "T") == 1
        assert [each.queue_offset for each in (await asker.pull("T", 1)).messages] == [1, 2]
        await asker.commit("g", "T", 3)
        assert await asker.committed("g", "T") == 3

    play(test)


def body_of_beat() -> bytes:
    subscription = SubscriptionData(topic="T", sub_string="*", sub_version=1)
    consumer = ConsumerData(group_name="g", subscriptions=[subscription])
    return HeartbeatBody(client_id="java", consumers=[consumer]).encode()


def test_the_older_way_tells_each_member_in_the_form_that_it_reads() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        host, port = asker.broker.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        beat = Command(Heartbeat.code, 1, language="JAVA")
        writer.writelines(encode(beat, body_of_beat()))
        await settle()
        table = await reset(asker, timestamp=0, is_force=True)
        await settle()
        (ours,) = (each for each in asker.told if each.code == ResetClientOffset.code)
        received = Connection().receive(await reader.read(1 << 16))
        (theirs,) = (each for each in received if each.code == ResetClientOffset.code)
        writer.close()
        assert ours.is_oneway
        assert theirs.is_oneway
        items = ResetOffsetList.decode(ours.body).offset_table
        assert {item.queue_id: item.offset for item in items} == table
        by_queue = ResetOffsetBody.decode(theirs.body).offset_table
        assert by_queue[Queue(broker_name="broker-a", queue_id=0, topic="T")] == 0
        assert await asker.commit("g", "T", 3) == SUCCESS
        assert await asker.committed("g", "T") == 0

    play(test, server_side_reset=False)


def test_the_older_way_goes_back_only_unless_forced_and_needs_members() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        assert await reset(asker, timestamp=-1) == {0: 2, 1: 1}
        assert await reset(asker, timestamp=-1, is_force=True) == {0: 3, 1: 1}
        async with another(asker) as other:
            await other.beat("h", client_id="c2", topics={"T": "*"})
        await settle()
        offline = ResetOffset(topic="T", group="h", timestamp=0)
        assert await asker.code(offline) == 206

    play(test, server_side_reset=False)


@pytest.mark.parametrize("topic", ["T", None])
def test_a_group_takes_over_the_offsets_of_another(topic: str | None) -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        clone = CloneOffset(src_group="g", dest_group="h", topic=topic)
        assert await asker.code(clone) == SUCCESS
        assert await asker.committed("h", "T") == 2
        async with another(asker) as other:
            await other.beat("i", client_id="c2", topics={"T": "*"})
            await other.commit("i", "T", 0)
            assert await asker.code(CloneOffset(src_group="g", dest_group="i")) == SUCCESS
            await other.commit("i", "T", 1)  # was under way
            assert await asker.committed("i", "T") == 2

    play(test)


def test_topics_that_are_not_subscribed_any_more_are_cloned_only_if_all_are_wanted() -> None:
    async def test(asker: Asker) -> None:
        await filled(asker)
        await asker.beat("g", topics={"U": "*"})
        assert await asker.code(CloneOffset(src_group="g", dest_group="h")) == SUCCESS
        assert await asker.committed("h", "T") is None
        clone = CloneOffset(src_group="g", dest_group="h", offline=True)
        assert await asker.code(clone) == SUCCESS
        assert await asker.committed("h", "T") == 2

    play(test)
