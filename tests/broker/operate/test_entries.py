"""Operators and the entries of queues."""

from __future__ import annotations

from sprocket.message.hashing import tag_code
from sprocket.protocol.bodies import ConsumeQueueBody
from sprocket.protocol.requests.query import QueryConsumeQueue
from tests.broker.parts import SUCCESS, Asker, play


async def shown(asker: Asker, index: int, count: int, group: str | None = None) -> ConsumeQueueBody:
    header = QueryConsumeQueue(
        topic="T", queue_id=0, index=index, count=count, consumer_group=group
    )
    reply = await asker.call(header)
    assert reply.code == SUCCESS, reply.remark
    return ConsumeQueueBody.decode(reply.body)


def test_entries_tell_where_records_are() -> None:
    async def test(asker: Asker) -> None:
        sent = [await asker.send("T", TAGS=tag) for tag in "abc"]
        told = await shown(asker, 1, 5)
        assert (told.min_queue_index, told.max_queue_index) == (0, 3)
        assert [each.tags_code for each in told.queue_data] == [tag_code("b"), tag_code("c")]
        places = [int(each["msgId"][16:], 16) for each in sent]
        assert [each.physic_offset for each in told.queue_data] == places[1:]
        assert told.queue_data[0].physic_size == places[2] - places[1]
        assert len((await shown(asker, 0, 2)).queue_data) == 2
        assert (await shown(asker, 7, 2)).queue_data == []

    play(test)


def test_what_a_group_subscribes_is_told_too() -> None:
    async def test(asker: Asker) -> None:
        await asker.send("T")
        assert (await shown(asker, 0, 1, "g")).filter_data == "g@T is not online!"
        await asker.beat("g", topics={"T": "a"})
        told = await shown(asker, 0, 1, "g")
        assert told.subscription_data is not None
        assert told.subscription_data.sub_string == "a"
        assert await asker.code(QueryConsumeQueue(topic="T", queue_id=7)) == 1
        assert await asker.code(QueryConsumeQueue(topic="nothing", queue_id=0)) == 1

    play(test)
