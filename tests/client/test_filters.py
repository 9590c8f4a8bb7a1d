"""Choosing messages by SQL92, from our client to our broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sprocket import LitePullConsumer, Message, Producer, PullConsumer, PushConsumer, Standalone
from sprocket.base.errors import ReplyError, SubscriptionInvalid, UsageError
from sprocket.broker.config import BrokerConfig
from sprocket.client.base.subscription import Later
from sprocket.clientcore.replies import PullStatus
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId
from tests.support import run

SQL = "amount > 5 AND region = 'eu'"


def with_orders(test: Callable[[Standalone, QueueId], Coroutine[Any, Any, None]]) -> None:
    """Runs a test against a node with ten messages in one queue, of which two match."""

    async def whole() -> None:
        async with Standalone() as node:
            async with Producer("shop", nameservers=node.nameserver_address) as producer:
                (queue, *_) = await producer.queues("orders")
                for n in range(10):
                    region = "eu" if n % 2 else "us"
                    message = Message("orders", b"%d" % n, tag="t")
                    message.properties = {"amount": str(n), "region": region}
                    await producer.send(message, queue=queue)
            await test(node, queue)

    run(whole())


def test_a_pull_consumer_gets_what_matches_and_goes_on_behind_the_rest() -> None:
    async def test(node: Standalone, queue: QueueId) -> None:
        async with PullConsumer("audit", nameservers=node.nameserver_address) as consumer:
            found = await consumer.pull(queue, 0, sql=SQL)
            assert [message.body for message in found.messages] == [b"7", b"9"]
            assert found.next_offset == 10
            none = await consumer.pull(queue, 0, sql="amount > 50")
            assert (none.status, none.next_offset) == (PullStatus.NO_MATCHED, 10)
            waited = await consumer.pull_blocking(queue, 10, sql=SQL, wait_ms=200)
            assert waited.status is PullStatus.NO_NEW
            with pytest.raises(SubscriptionInvalid, match="column 9"):
                await consumer.pull(queue, 0, sql="amount >")
            with pytest.raises(UsageError, match="one of them"):
                await consumer.pull(queue, 0, tags="t", sql=SQL)

    with_orders(test)


def test_a_push_consumer_gets_what_matches_and_what_it_gave_back() -> None:
    async def test(node: Standalone, queue: QueueId) -> None:
        got: list[tuple[bytes, int]] = []
        done = asyncio.Event()
        consumer = PushConsumer("billing", nameservers=node.nameserver_address, start="first")

        @consumer.on("orders", sql=SQL)
        async def bill(message: StoredMessage) -> Later | None:
            got.append((message.body, message.reconsume_times))
            if len(got) == 3:
                done.set()
            return Later(1) if message.body == b"7" and not message.reconsume_times else None

        async with consumer:
            await asyncio.wait_for(done.wait(), 30)
        assert sorted(got) == [(b"7", 0), (b"7", 1), (b"9", 0)]
        with pytest.raises(SubscriptionInvalid, match="column 12"):
            consumer.subscribe("orders", sql="amount > 5 &&", listener=bill)

    with_orders(test)


def test_a_lite_pull_consumer_gets_what_matches() -> None:
    async def test(node: Standalone, queue: QueueId) -> None:
        names = node.nameserver_address
        async with LitePullConsumer("reports", nameservers=names, start="first") as consumer:
            consumer.subscribe("orders", sql=SQL)
            got: list[bytes] = []
            while len(got) < 2:
                got += [message.body for message in await consumer.poll(timeout_ms=10_000)]
            assert got == [b"7", b"9"]

    with_orders(test)


def test_a_broker_with_the_filters_off_says_so() -> None:
    async def whole() -> None:
        config = BrokerConfig(port=0, sql_filters=False)
        async with Standalone(configs=[config]) as node:
            names = node.nameserver_address
            async with Producer("shop", nameservers=names) as producer:
                sent = await producer.send(Message("orders", b"x"))
            async with PullConsumer("audit", nameservers=names) as consumer:
                with pytest.raises(ReplyError, match="enablePropertyFilter"):
                    await consumer.pull(sent.queue, 0, sql=SQL)

    run(whole())
