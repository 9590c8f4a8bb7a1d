"""Changes of topics: only what is named, and nothing that hides messages, against a node."""

from __future__ import annotations

import pytest

from sprocket import Message, Producer
from sprocket.admin import topic_changes, topics
from sprocket.admin.caller import Caller
from sprocket.admin.topic_changes import TopicSettings, UnreadQueues
from sprocket.base.errors import TopicNotFound
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import TopicConfig
from sprocket.protocol.requests.offset import UpdateOffset
from sprocket.protocol.requests.topic import CreateTopic, TopicConfigOf
from tests.admin.test_topics import operating
from tests.support import run


async def config_of(caller: Caller, topic: str) -> TopicConfig:
    address = (await caller.masters())["broker-a"]
    return TopicConfig.decode((await caller.ask(address, TopicConfigOf(topic=topic))).body)


def test_what_is_not_named_of_a_topic_stays() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            await caller.ask(
                (await caller.masters())["broker-a"],
                CreateTopic(
                    topic="orders", default_topic="TBW102", read_queue_nums=16,
                    write_queue_nums=12, perm=6, topic_filter_type="MULTI_TAG", order=True,
                    topic_sys_flag=1, attributes="+message.type=FIFO",
                ),
            )  # fmt: skip
            before = await config_of(caller, "orders")
            for change in (topic_changes.create, topic_changes.update):
                (done,) = await change(caller, "orders", wanted=TopicSettings(permission=4))
                before.perm = 4
                assert await config_of(caller, "orders") == before == done.after
            await topic_changes.create(caller, "orders")
            assert await config_of(caller, "orders") == before
            with pytest.raises(TopicNotFound, match="create it first"):
                await topic_changes.update(caller, "absent", wanted=TopicSettings(permission=4))

    run(story())


def test_queues_with_unread_messages_are_kept_unless_they_may_be_hidden() -> None:
    async def story() -> None:
        async with operating() as (node, caller):
            await topic_changes.create(caller, "orders", wanted=TopicSettings(4, 4))
            async with Producer("app", nameservers=node.nameserver_address) as producer:
                for _ in range(2):
                    queue = QueueId("orders", "broker-a", 3)
                    await producer.send(Message("orders", b"x"), queue=queue)
            few = TopicSettings(2, 2)
            with pytest.raises(UnreadQueues, match="queues 3 hold 2 messages"):
                await topic_changes.update(caller, "orders", wanted=few)
            await topic_changes.update(caller, "orders", wanted=TopicSettings(write_queues=2))
            (part,) = await topics.route(caller, "orders")
            assert (part.read_queues, part.write_queues) == (4, 2)
            for done in (1, 2):
                with pytest.raises(UnreadQueues):
                    await topic_changes.update(caller, "orders", wanted=few)
                await caller.ask(
                    node.broker_address,
                    UpdateOffset(
                        consumer_group="g", topic="orders", queue_id=3, commit_offset=done
                    ),
                )
            await topic_changes.update(caller, "orders", wanted=few)
            with pytest.raises(UnreadQueues, match="3 write queues and 2 read queues"):
                await topic_changes.update(caller, "orders", wanted=TopicSettings(write_queues=3))
            await topic_changes.update(
                caller, "orders", wanted=TopicSettings(write_queues=3), may_hide=True
            )

    run(story())
