"""Questions about offsets through the door."""

from __future__ import annotations

import asyncio

from sprocket.protocol.requests.offset import (
    EarliestTime,
    MaxOffset,
    MinOffset,
    QueryOffset,
    SearchOffset,
    UpdateOffset,
)
from sprocket.protocol.requests.topic import DeleteTopic
from tests.broker.parts import SUCCESS, Asker, play, settle

QUERY_NOT_FOUND, TOPIC_NOT_FOUND, GROUP_NOT_FOUND, INVALID = 22, 17, 26, 29


def query(topic: str = "T", zero: bool | None = None) -> QueryOffset:
    return QueryOffset(consumer_group="g", topic=topic, queue_id=0, set_zero_if_not_found=zero)


def update(group: str = "g", topic: str = "T", offset: int | None = 3) -> UpdateOffset:
    return UpdateOffset(consumer_group=group, topic=topic, queue_id=0, commit_offset=offset)


async def offset_of(asker: Asker, header: object) -> int:
    reply = await asker.call(header)  # type: ignore[arg-type]
    assert reply.code == SUCCESS
    return int(reply.fields["offset"])


def test_a_new_group_gets_zero_only_where_it_does_not_ask_to_know() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        assert await offset_of(asker, query()) == 0
        assert await offset_of(asker, query(zero=True)) == 0
        assert await asker.code(query(zero=False)) == QUERY_NOT_FOUND

    play(test)


def test_a_queue_without_messages_has_no_zero_to_give() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        assert await asker.code(query()) == QUERY_NOT_FOUND
        assert await asker.code(query("nothing")) == QUERY_NOT_FOUND

    play(test)


def test_a_committed_offset_is_given_back_backwards_and_beyond_the_end_too() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        await offset_of(asker, query())
        for offset in (3, 1, 99_999):
            assert await asker.code(update(offset=offset)) == SUCCESS
            assert await offset_of(asker, query(zero=False)) == offset

    play(test)


def test_a_commit_that_cannot_be_is_refused_with_its_reason() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T")
        assert await asker.code(update(topic="nothing")) == TOPIC_NOT_FOUND
        assert await asker.code(update(group="bad name!")) == GROUP_NOT_FOUND
        assert await asker.code(update(offset=None)) == INVALID
        assert await asker.code(update(offset=-5)) == INVALID

    play(test)


def test_a_commit_to_a_queue_that_does_not_exist_is_refused_and_not_kept() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", queues=4)
        for queue in (4, 99, 2**31 - 1):
            reply = await asker.call(
                UpdateOffset(consumer_group="g", topic="T", queue_id=queue, commit_offset=3)
            )
            assert reply.code == INVALID
            assert f"queue {queue} of topic T does not exist" in (reply.remark or "")
            assert await asker.committed("g", "T", queue) is None
        assert await asker.commit("g", "T", 3, queue=3) == SUCCESS

    play(test)


def test_a_queue_that_still_has_messages_takes_commits_after_the_number_was_lowered() -> None:
    async def test(asker: Asker) -> None:
        await asker.create("T", queues=4)
        await asker.send("T", queue=3)
        await asker.create("T", queues=2)
        assert await asker.commit("g", "T", 1, queue=3) == SUCCESS
        assert await asker.commit("g", "T", 1, queue=2) == INVALID

    play(test)


def test_a_deleted_topic_takes_no_commits_of_those_who_still_consume_it() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        assert await asker.commit("g", "T", 1) == SUCCESS
        deletion = asyncio.create_task(asker.code(DeleteTopic(topic="T")))
        await settle(1)
        assert await asker.commit("g", "T", 1) == TOPIC_NOT_FOUND
        assert await deletion == SUCCESS
        await asker.create("T")
        assert await asker.committed("g", "T") is None

    play(test)


def test_the_ends_of_a_queue_and_of_none() -> None:
    async def test(asker: Asker) -> None:
        for _ in range(3):
            await asker.send("T")
        assert await offset_of(asker, MaxOffset(topic="T", queue_id=0)) == 3
        assert await offset_of(asker, MinOffset(topic="T", queue_id=0)) == 0
        assert await offset_of(asker, MaxOffset(topic="T", queue_id=77)) == 0
        assert await offset_of(asker, MaxOffset(topic="nothing", queue_id=0)) == 0
        reply = await asker.call(EarliestTime(topic="nothing", queue_id=0))
        assert reply.fields["timestamp"] == "-1"

    play(test)


def test_the_offset_at_a_time_is_the_first_message_stored_then_or_later() -> None:
    async def test(asker: Asker) -> None:
        for _ in range(3):
            await asker.send("T")
            await asyncio.sleep(1)
        stored = [message.stored_ms for message in (await asker.pull("T")).messages]
        expected = {stored[0] - 50: 0, stored[0]: 0, stored[0] + 50: 1, stored[1]: 1}
        expected |= {stored[2]: 2, stored[2] + 1: 3, 2**63 - 1: 3, 0: 0, -1: 0}
        for time_ms, offset in expected.items():
            header = SearchOffset(topic="T", queue_id=0, timestamp=time_ms)
            assert await offset_of(asker, header) == offset
            header.boundary_type = "LOWER"
            assert await offset_of(asker, header) == offset
        header = SearchOffset(
            topic="T", queue_id=0, timestamp=stored[0] + 50, boundary_type="UPPER"
        )
        assert await offset_of(asker, header) == 0
        assert await offset_of(asker, SearchOffset(topic="no", queue_id=0, timestamp=0)) == 0
        reply = await asker.call(EarliestTime(topic="T", queue_id=0))
        assert reply.fields["timestamp"] == str(stored[0])

    play(test)
