"""Groups whose members want different messages."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.testing.cluster import Cluster
from tests.client.fakes import until
from tests.client.group.test_membership import producer_in, with_cluster


async def take(message: StoredMessage) -> None:
    pass


def member(cluster: Cluster, name: str, *, tags: str, alike_only: bool) -> PushConsumer:
    _, world = cluster.client(name)
    consumer = PushConsumer(
        "readers",
        nameservers=cluster.nameserver_addresses,
        config=ConsumerConfig(alike_only=alike_only),
        world=world,
    )
    consumer.subscribe("orders", tags=tags, listener=take)
    return consumer


def test_a_member_refuses_to_join_others_that_want_something_else() -> None:
    async def main(cluster: Cluster) -> None:
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"1"))
            async with member(cluster, "c1", tags="a", alike_only=True) as first:
                await until(lambda: len(first.queues) == 5)
                odd = member(cluster, "c2", tags="*", alike_only=True)
                with pytest.raises(UsageError, match=r"orders by 'a', not '\*'"):
                    await odd.start()
                assert odd.client_id is None
                async with member(cluster, "c3", tags="a", alike_only=True) as third:
                    await until(lambda: any(q.topic == "orders" for q in third.queues))
                more = member(cluster, "c4", tags="a", alike_only=True)
                more.subscribe("others", listener=take)
                with pytest.raises(UsageError, match="others by nothing"):
                    await more.start()
            async with odd:  # nobody is there any more
                await until(lambda: len(odd.queues) == 5)

    with_cluster(main)


def test_unless_it_is_asked_for_members_join_and_the_broker_logs_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(cluster: Cluster) -> None:
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"1"))
        async with (
            member(cluster, "c1", tags="a", alike_only=False),
            member(cluster, "c2", tags="*", alike_only=False),
        ):
            await asyncio.sleep(1)

    with caplog.at_level(logging.WARNING):
        with_cluster(main)
    assert "orders" in caplog.text


def test_servers_that_are_away_do_not_keep_a_member_from_starting() -> None:
    async def main(cluster: Cluster) -> None:
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"1"))
        cluster.brokers[0].kill()
        cluster.nameservers[0].kill()
        async with member(cluster, "c1", tags="a", alike_only=True) as alone:
            await cluster.start()
            await until(lambda: len(alone.queues) == 5)

    with_cluster(main)
