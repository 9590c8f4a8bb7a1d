"""What waits is counted and recalled; what nobody ends is listed and checked again."""

from __future__ import annotations

import asyncio

import pytest

from sprocket import Message, Producer
from sprocket.base.errors import QueryNotFound, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.testing.cluster import Cluster
from tests.console.parts import Operating, operated


def test_delayed_messages_are_counted_and_recalled() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await do("topics.create", topic="orders")
        _, world = cluster.client("app")
        async with Producer(
            "app", nameservers=cluster.nameserver_addresses, world=world
        ) as producer:
            sent = await producer.send(Message("orders", b"x", delay=600))
        (found,) = (await do("delayed.waiting")).brokers
        assert (found.total, found.topics) == (1, {"orders": 1})
        await do("delayed.recall", handle=sent.recall_handle, dry_run=True)
        report = await do("delayed.recall", handle=sent.recall_handle)
        assert report.changes[0].what == f"message {sent.message_id} of orders"
        with pytest.raises(UsageError):
            await do("delayed.recall", handle="nonsense")

    operated(test)


def test_a_transaction_that_nobody_ends_is_listed_until_it_is_ended() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await do("topics.create", topic="orders")
        assert (await do("transactions.pending")).transactions == []
        assert (await do("transactions.parked")).messages == []
        _, world = cluster.client("app")
        producer = TransactionalProducer(
            "app", check=lambda message: None, nameservers=cluster.nameserver_addresses,
            world=world,
        )  # fmt: skip
        async with producer:
            async with producer.transaction(Message("orders", b"open", keys=["a"])):
                async with producer.transaction(Message("orders", b"done")):
                    pass
                await asyncio.sleep(10)
                (found,) = (await do("transactions.pending")).transactions
                assert (found.topic, found.producer_group, found.message.body) == (
                    "orders", "app", "open",
                )  # fmt: skip
            await asyncio.sleep(10)
            assert (await do("transactions.pending")).transactions == []

    operated(test)


def test_only_a_transaction_that_is_given_up_is_checked_again() -> None:
    async def test(do: Operating, cluster: Cluster) -> None:
        await do("topics.create", topic="orders")
        report = await do("messages.send", topic="orders", body="x")
        place = report.changes[0].after["offset_id"]
        with pytest.raises(QueryNotFound, match="given up"):
            await do("transactions.check", id=place)

    operated(test, broker=BrokerConfig())
