"""What an operator does about topics, against a node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sprocket import Message, Producer, Standalone
from sprocket.admin import topic_changes, topics
from sprocket.admin.caller import Caller
from sprocket.admin.topic_changes import TopicSettings
from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.remoting.pool import Pool
from tests.support import run


@asynccontextmanager
async def operating(store: str | None = None) -> AsyncIterator[tuple[Standalone, Caller]]:
    async with Standalone(store=store) as node, Pool() as pool:
        yield node, Caller(pool, [node.nameserver_address])


def test_a_topic_is_made_shown_changed_and_deleted() -> None:
    async def story() -> None:
        async with operating() as (node, caller):
            (made,) = await topic_changes.create(caller, "orders", wanted=TopicSettings(4, 4))
            assert (made.broker, made.before) == ("broker-a", None)
            assert "orders" in await topics.names(caller)
            (part,) = await topics.route(caller, "orders")
            assert (part.cluster, part.broker) == ("DefaultCluster", "broker-a")
            assert part.addresses == {0: node.broker_address}
            assert (part.read_queues, part.write_queues, part.permission) == (4, 4, 6)
            await topic_changes.update(caller, "orders", wanted=TopicSettings(6, 6, 4))
            (part,) = await topics.route(caller, "orders")
            assert (part.read_queues, part.permission) == (6, 4)
            await topics.delete(caller, "orders")
            await topics.delete(caller, "orders")
            assert "orders" not in await topics.names(caller)
            with pytest.raises(TopicNotFound):
                await topics.route(caller, "orders")

    run(story())


def test_internal_topics_are_listed_only_if_asked_for() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            await topic_changes.create(caller, "orders")
            await topic_changes.create(caller, "%RETRY%group")
            assert await topics.names(caller) == ["orders"]
            every = await topics.names(caller, with_internal=True)
            assert {"orders", "%RETRY%group", "TBW102", "broker-a", "DefaultCluster"} <= set(every)
            assert every == sorted(every)

    run(story())


def test_the_status_of_a_topic_is_its_queues() -> None:
    async def story() -> None:
        async with operating() as (node, caller):
            await topic_changes.create(caller, "orders", wanted=TopicSettings(2, 2))
            async with Producer("app", nameservers=node.nameserver_address) as producer:
                queue = (await producer.queues("orders"))[1]
                for _ in range(3):
                    await producer.send(Message("orders", b"x"), queue=queue)
            first, second = await topics.status(caller, "orders")
            assert (first.number, first.min_offset, first.max_offset) == (0, 0, 0)
            assert (second.number, second.min_offset, second.max_offset) == (1, 0, 3)
            assert second.updated_ms > 0

    run(story())


def test_what_cannot_be_is_refused() -> None:
    async def story() -> None:
        async with operating() as (_, caller):
            with pytest.raises(UsageError, match="illegal characters"):
                await topic_changes.create(caller, "a.b")
            with pytest.raises(UsageError, match="no cluster nowhere is registered"):
                await topic_changes.create(caller, "orders", cluster="nowhere")
            with pytest.raises(UsageError, match="no broker b is registered"):
                await topic_changes.create(caller, "orders", broker="b")

    run(story())
