"""Our clients at a topic that keeps each batch as one record."""

from __future__ import annotations

import asyncio

from sprocket import Message, Producer, PullConsumer, PushConsumer, Standalone
from sprocket.admin import topic_changes
from sprocket.admin.caller import Caller
from sprocket.admin.topic_changes import TopicSettings
from sprocket.client.base.subscription import Later
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from sprocket.remoting.pool import Pool


async def made(node: Standalone) -> None:
    async with Pool() as pool:
        caller = Caller(pool, [node.nameserver_address], timeout_ms=5000)
        wanted = TopicSettings(1, 1, attributes={"queue.type": "BatchCQ"})
        await topic_changes.create(caller, "packs", wanted=wanted)


def messages(first: int, count: int) -> list[Message]:
    return [
        Message("packs", b"%d" % number, tag="even" if number % 2 == 0 else "odd")
        for number in range(first, first + count)
    ]


def test_batches_are_sent_pulled_and_consumed_message_by_message() -> None:
    async def story() -> None:
        async with Standalone(store=None) as node:
            await made(node)
            address = node.nameserver_address
            async with Producer("p", nameservers=address) as producer:
                sent = await producer.send_batch(messages(0, 5))
                assert [each.queue_offset for each in sent] == [0, 1, 2, 3, 4]
                await producer.send(messages(5, 1)[0])
                await producer.send_batch(messages(6, 4))
            queue = QueueId("packs", "broker-a", 0)
            async with PullConsumer("g", nameservers=address) as consumer:
                pulled = await consumer.pull(queue, 3)
                assert [each.body for each in pulled.messages] == [b"%d" % n for n in range(3, 10)]
                assert pulled.next_offset == 10
                even = await consumer.pull(queue, 0, tags="even")
                assert [each.body for each in even.messages] == [b"0", b"2", b"4", b"6", b"8"]
                assert len({each.message_id for each in pulled.messages}) == 7

    asyncio.run(story())


def test_one_failed_message_of_a_batch_is_retried_alone_and_offsets_inside_it_count() -> None:
    async def story() -> None:
        async with Standalone(store=None) as node:
            await made(node)
            address = node.nameserver_address
            async with Producer("p", nameservers=address) as producer:
                await producer.send_batch(messages(0, 4))
            seen: list[bytes] = []

            async def listen(message: StoredMessage) -> Later | None:
                seen.append(message.body)
                return Later(1) if seen.count(b"2") == 1 and message.body == b"2" else None

            async with PushConsumer("g", nameservers=address, start="first") as consumer:
                consumer.subscribe("packs", listener=listen)
                async with asyncio.timeout(30):
                    while len(seen) < 5:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
            assert sorted(seen) == [b"0", b"1", b"2", b"2", b"3"]
            async with PullConsumer("h", nameservers=address) as puller:
                queue = QueueId("packs", "broker-a", 0)
                await puller.pull(queue, 0)
                await puller.commit(queue, 3)
            late: list[bytes] = []
            async with PushConsumer("h", nameservers=address) as consumer:
                consumer.subscribe("packs", listener=lambda message: late.append(message.body))
                async with asyncio.timeout(30):
                    while not late:  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
                await asyncio.sleep(0.2)
            assert late == [b"3"]

    asyncio.run(story())
