"""Subscriptions by pattern at a real cluster, in virtual time."""

from __future__ import annotations

import asyncio
import re

import pytest

from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message, StoredMessage
from sprocket.testing.cluster import Cluster
from tests.client.fakes import until
from tests.client.group.test_membership import producer_in, with_cluster


def test_topics_that_match_are_consumed_from_their_first_message_also_new_ones() -> None:
    async def main(cluster: Cluster) -> None:
        got: list[tuple[str, bytes]] = []
        _, world = cluster.client("c1")
        consumer = PushConsumer("readers", nameservers=cluster.nameserver_addresses, world=world)

        @consumer.on(re.compile("orders-.*"))
        async def take(message: StoredMessage) -> None:
            got.append((message.topic, message.body))

        async with producer_in(cluster) as producer:
            await producer.send(Message("orders-old", b"before"))
            await asyncio.sleep(40)
            async with consumer:
                await until(lambda: any(q.topic == "orders-old" for q in consumer.queues))
                await producer.send(Message("orders-old", b"1"))
                await producer.send(Message("orders-new", b"2"))
                await producer.send(Message("news", b"3"))
                await until(lambda: len(got) == 2, seconds=70)
                assert sorted(got) == [("orders-new", b"2"), ("orders-old", b"1")]
                consumer.unsubscribe(re.compile("orders-.*"))
                await until(lambda: {q.topic for q in consumer.queues} == {"%RETRY%readers"})

    with_cluster(main)


def test_what_servers_keep_for_themselves_matches_nothing() -> None:
    async def main(cluster: Cluster) -> None:
        _, world = cluster.client("c1")
        consumer = PushConsumer("readers", nameservers=cluster.nameserver_addresses, world=world)

        @consumer.on(re.compile(".*"))
        async def take(message: StoredMessage) -> None:
            pass

        async with producer_in(cluster) as producer:
            await producer.send(Message("orders", b"1"))
            await asyncio.sleep(35)
            async with consumer:
                await until(lambda: any(q.topic == "orders" for q in consumer.queues))
                await asyncio.sleep(60)
                assert {q.topic for q in consumer.queues} == {"orders", "%RETRY%readers"}

    with_cluster(main)


def test_a_pattern_may_come_while_the_consumer_runs_and_members_share_what_it_finds() -> None:
    async def main(cluster: Cluster) -> None:
        consumers = []
        for name in ("c1", "c2"):
            _, world = cluster.client(name)
            consumers.append(
                PushConsumer("readers", nameservers=cluster.nameserver_addresses, world=world)
            )
        async with producer_in(cluster) as producer, consumers[0], consumers[1]:
            await producer.send(Message("orders-1", b"1"))
            await asyncio.sleep(35)

            async def take(message: StoredMessage) -> None:
                pass

            for consumer in consumers:
                consumer.subscribe(re.compile("orders-[0-9]"), listener=take)

            def shares() -> list[int]:
                return [sum(q.topic == "orders-1" for q in c.queues) for c in consumers]

            await until(lambda: shares() == [2, 2], seconds=30)

    with_cluster(main)


@pytest.mark.parametrize("nameserver_is_away", [False, True])
def test_a_lite_pull_consumer_finds_them_too(nameserver_is_away: bool) -> None:
    async def main(cluster: Cluster) -> None:
        _, world = cluster.client("c1")
        async with producer_in(cluster) as producer:
            await producer.send(Message("orders-1", b"1"))
            await asyncio.sleep(35)
            consumer = LitePullConsumer(
                "readers", nameservers=cluster.nameserver_addresses, start="first", world=world
            )
            async with consumer:
                consumer.subscribe(re.compile("orders-.*"))
                assert [m.body for m in await consumer.poll(20_000)] == [b"1"]
                if nameserver_is_away:
                    cluster.nameservers[0].kill()
                    await asyncio.sleep(100)
                    await producer.send(Message("orders-1", b"2"))
                    assert [m.body for m in await consumer.poll(20_000)] == [b"2"]

    with_cluster(main)
