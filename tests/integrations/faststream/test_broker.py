"""FastStream over a real broker: handlers, routers, replies, failures, groups."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.testing.node_thread import NodeThread
from tests.support import LONGEST, run

pytest.importorskip("faststream")

from faststream.exceptions import IncorrectState, SetupError
from faststream.specification import AsyncAPI
from pydantic import BaseModel

from sprocket import Sent
from sprocket.integrations.faststream import (
    AckPolicy,
    RocketMQBroker,
    RocketMQMessage,
    RocketMQResponse,
    RocketMQRoute,
    RocketMQRoutePublisher,
    RocketMQRouter,
)

pytestmark = pytest.mark.process


class Order(BaseModel):
    id: str
    amount: int


class Got:
    """What handlers got, and when there is enough of it."""

    def __init__(self) -> None:
        self.all: list[Any] = []
        self._came = asyncio.Event()

    def add(self, one: Any) -> None:
        self.all.append(one)
        self._came.set()

    async def until(self, count: int) -> list[Any]:
        while len(self.all) < count:
            self._came.clear()
            await asyncio.wait_for(self._came.wait(), LONGEST)
        return self.all


def test_what_a_handler_returns_is_published(own_rocketmq: NodeThread) -> None:
    orders, bills = own_rocketmq.topic("orders"), own_rocketmq.topic("bills")

    async def scenario() -> None:
        got = Got()
        broker = RocketMQBroker(own_rocketmq.nameservers, group="shop")

        @broker.subscriber(orders, start="first", tags="new")
        @broker.publisher(bills, tag="bill", headers={"by": "shop"})
        async def bill(order: Order) -> RocketMQResponse:
            return RocketMQResponse({"of": order.id}, keys=[order.id])

        @broker.subscriber(bills, "books", start="first")
        async def book(body: dict[str, str], message: RocketMQMessage) -> None:
            stored = message.raw_message.message
            got.add((body, stored.properties["TAGS"], message.headers, message.correlation_id))

        async with broker:
            await broker.start()
            assert await broker.ping()
            sent = await broker.publish(
                Order(id="o-1", amount=3), orders, tag="new", correlation_id="c-1"
            )
            assert isinstance(sent, Sent)
            await broker.publish({"id": "other", "amount": 1}, orders, tag="old")
            assert await got.until(1) == [({"of": "o-1"}, "bill", {"by": "shop"}, "c-1")]
        assert not await broker.ping()

    run(scenario())
    (stored,) = own_rocketmq.messages(bills)
    assert (stored.keys, stored.properties["contentType"]) == (["o-1"], "application/json")


def test_bodies_keep_their_kind_and_batches_their_order(own_rocketmq: NodeThread) -> None:
    topic = own_rocketmq.topic("kinds", queues=4)

    async def scenario() -> None:
        got = Got()
        broker = RocketMQBroker(own_rocketmq.nameservers)

        @broker.subscriber(topic, "kinds", start="first", ordered=True)
        async def handle(body: Any) -> None:
            got.add(body)

        async with broker:
            sent = await broker.publish_batch(*range(20), topic=topic, key="one")
            assert [each.queue_offset for each in sent] == list(range(20))
            assert await broker.publish_batch(topic=topic) == []
            for body in ("text", b"\xff", {"a": [1]}):
                await broker.publish(body, topic, key="one")
            await broker.start()
            assert await got.until(23) == [*range(20), "text", b"\xff", {"a": [1]}]

    run(scenario())


def test_requests_are_answered_and_reply_topics_get_replies(own_rocketmq: NodeThread) -> None:
    topic, replies = own_rocketmq.topic("asked"), own_rocketmq.topic("replies")

    async def scenario() -> None:
        broker = RocketMQBroker(own_rocketmq.nameservers, group="shop")
        publisher = broker.publisher(topic)

        @broker.subscriber(topic, start="first")
        async def answer(number: int) -> int:
            return number * 2

        async with broker:
            await broker.start()
            reply = await broker.request(21, topic, timeout=LONGEST, correlation_id="c-7")
            assert (await reply.decode(), reply.correlation_id) == (42, "c-7")
            assert await (await publisher.request(4, timeout=LONGEST)).decode() == 8
            await broker.publish(5, topic, reply_to=replies)
            (sent,) = await own_rocketmq.aio.messages(replies, 1, wait_s=LONGEST)
            assert sent.body == b"10"

    run(scenario())


@pytest.mark.parametrize(
    ("policy", "times"),
    [(None, 2), (AckPolicy.NACK_ON_ERROR, 2), (AckPolicy.ACK, 1), (AckPolicy.ACK_FIRST, 1)],
)
def test_what_becomes_of_a_message_whose_handler_fails(
    own_rocketmq: NodeThread, policy: AckPolicy | None, times: int
) -> None:
    topic = own_rocketmq.topic("failing")

    async def scenario() -> None:
        got = Got()
        broker = RocketMQBroker(own_rocketmq.nameservers)
        options = {} if policy is None else {"ack_policy": policy}

        # in order, a failed message comes again after a second, before those behind it
        @broker.subscriber(topic, "failing", start="first", ordered=True, **options)
        async def handle(body: str) -> None:
            got.add(body)
            if body == "bad" and got.all.count("bad") == 1:
                raise ValueError(body)

        async with broker:
            await broker.publish("bad", topic)
            await broker.publish("good", topic)
            await broker.start()
            assert await got.until(times + 1) == ["bad"] * times + ["good"]

    run(scenario())


def test_a_rejected_message_becomes_a_dead_letter_and_manual_means_manual(
    own_rocketmq: NodeThread,
) -> None:
    topic = own_rocketmq.topic("rejected")

    async def scenario() -> None:
        got = Got()
        broker = RocketMQBroker(own_rocketmq.nameservers)

        @broker.subscriber(topic, "judges", start="first", ack_policy=AckPolicy.MANUAL)
        async def judge(body: str, message: RocketMQMessage) -> None:
            got.add(body)
            if body == "bad":
                await message.reject()
            elif body == "late":
                await message.nack(delay_level=1)
                await message.ack()  # too late: the first word counts
            elif body == "good":
                await message.ack()

        async with broker:
            await broker.start()
            for body in ("bad", "late", "good"):
                await broker.publish(body, topic)
            await got.until(4)
        assert sorted(got.all) == ["bad", "good", "late", "late"]

    run(scenario())
    (dead,) = own_rocketmq.messages("%DLQ%judges", 1, wait_s=LONGEST)
    assert dead.body == b"bad"


def test_subscribers_of_one_group_are_one_member(own_rocketmq: NodeThread) -> None:
    first, second = own_rocketmq.topic("first"), own_rocketmq.topic("second")

    async def scenario() -> None:
        got = Got()
        broker = RocketMQBroker(own_rocketmq.nameservers, group="shop")
        router = RocketMQRouter()

        async def handle(body: str) -> None:
            got.add(body)

        broker.subscriber(first, start="first")(handle)
        router.subscriber(second, start="first")(handle)
        broker.include_router(router)
        async with broker:
            await broker.start()
            await broker.publish("one", first)
            await broker.publish("two", second)
            assert sorted(await got.until(2)) == ["one", "two"]

            added = broker.subscriber(first, "more", start="first")
            added(handle)
            await added.start()  # while the broker runs
            assert (await got.until(3))[2] == "one"
            await added.stop()
            for subscriber in broker.subscribers[:1]:
                await subscriber.stop()

    run(scenario())


def test_subscribers_of_one_group_with_other_options_are_refused(
    own_rocketmq: NodeThread,
) -> None:
    topic = own_rocketmq.topic("first")

    async def scenario(**options: Any) -> None:
        broker = RocketMQBroker(own_rocketmq.nameservers, group="shop")
        broker.subscriber("another")(lambda body: None)
        broker.subscriber(topic, **options)(lambda body: None)
        async with broker:
            await broker.start()

    with pytest.raises(SetupError, match="different options"):
        run(scenario(ordered=True))

    async def twice() -> None:
        broker = RocketMQBroker(own_rocketmq.nameservers, group="shop")
        for _ in range(2):
            broker.subscriber(topic)(lambda body: None)
        async with broker:
            await broker.start()

    with pytest.raises(SetupError, match="two subscribers of group shop"):
        run(twice())

    async def without_group() -> None:
        broker = RocketMQBroker(own_rocketmq.nameservers)
        broker.subscriber(topic)(lambda body: None)
        async with broker:
            await broker.start()

    with pytest.raises(SetupError, match="has no group"):
        run(without_group())


def test_a_broker_that_is_not_connected_says_so() -> None:
    broker = RocketMQBroker("127.0.0.1:1")
    with pytest.raises(IncorrectState, match="not connected"):
        run(broker.publish("x", "orders"))


def test_routers_have_prefixes_and_the_document_has_the_channels() -> None:
    broker = RocketMQBroker("127.0.0.1:9876", group="shop")

    async def bill(order: Order) -> None: ...

    route = RocketMQRoute(bill, "orders", publishers=[RocketMQRoutePublisher("bills")], tags="new")
    broker.include_router(RocketMQRouter("shop-", handlers=[route]))
    document = AsyncAPI(broker).to_specification().to_jsonable()
    assert sorted(channel["address"] for channel in document["channels"].values()) == [
        "shop-bills",
        "shop-orders",
    ]
    assert document["servers"]["development"]["protocol"] == "rocketmq"
    assert "Order" in document["components"]["schemas"]
