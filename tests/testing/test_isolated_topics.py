"""Topics of a test's own."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import ReplyError, TopicNotFound, UsageError
from sprocket.testing.isolated_topics import IsolatedTopics
from sprocket.testing.virtual_time import VirtualTopics, virtual_time


@virtual_time
async def test_names_differ_and_what_was_sent_is_read_in_order(rocketmq: VirtualTopics) -> None:
    first, second = await rocketmq.topic("orders"), await rocketmq.topic("orders", queues=3)
    assert len({first, second, rocketmq.group(), rocketmq.group()}) == 4
    for number in range(40):
        await rocketmq.send(second, f"{number}", tag="new", properties={"n": f"{number}"})
    await rocketmq.send(first, b"\xff")
    assert [m.body for m in await rocketmq.messages(first)] == [b"\xff"]
    found = await rocketmq.messages(second)
    assert [m.body.decode() for m in found] == [str(number) for number in range(40)]
    assert {m.queue.number for m in found} == {0, 1, 2}
    assert (found[7].tag, found[7].properties["n"]) == ("new", "7")


@virtual_time
async def test_reading_waits_for_as_many_as_are_expected(rocketmq: VirtualTopics) -> None:
    topic = await rocketmq.topic()
    reading = asyncio.create_task(rocketmq.messages(topic, 2))
    await rocketmq.send(topic, b"one")
    await asyncio.sleep(5)
    assert not reading.done()
    await rocketmq.send(topic, b"two")
    assert [m.body for m in await reading] == [b"one", b"two"]
    with pytest.raises(AssertionError, match=r"2 of 3 messages after 10 s: \[b'one', b'two'\]"):
        await rocketmq.messages(topic, 3)


@virtual_time
async def test_a_topic_that_is_missing_may_come_and_a_broker_may_be_away(
    rocketmq: VirtualTopics,
) -> None:
    with pytest.raises(TopicNotFound):
        await rocketmq.messages("shipments")
    reading = asyncio.create_task(rocketmq.messages("shipments", 1))
    await asyncio.sleep(1)
    await rocketmq.send("shipments", b"made by the first send")
    assert len(await reading) == 1
    (broker,) = rocketmq.cluster.brokers
    broker.kill()
    reading = asyncio.create_task(rocketmq.messages("shipments", 1, wait_s=120))
    await asyncio.sleep(10)
    assert not reading.done()
    await broker.start()
    assert len(await reading) == 1


@virtual_time
async def test_a_topic_of_no_known_type_is_refused(rocketmq: VirtualTopics) -> None:
    topic = await rocketmq.topic("steps", type="FIFO")
    assert await rocketmq.messages(topic) == []
    with pytest.raises(ReplyError, match="not in set"):
        await rocketmq.topic("steps", type="NO SUCH TYPE")


def test_without_a_broker_it_says_so() -> None:
    async def main() -> None:
        topics = IsolatedTopics("127.0.0.1:9")
        with pytest.raises(UsageError, match="does not run"):
            await topics.send("orders", b"")
        with pytest.raises(UsageError, match="does not run"):
            await topics.messages("orders")

    asyncio.run(main())
