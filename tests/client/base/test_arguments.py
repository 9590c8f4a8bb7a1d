"""What is wrong with an argument is told where it comes in, in words that name it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.client.base import arguments
from sprocket.client.config import ConsumerConfig, LitePullConfig, ProducerConfig
from sprocket.client.lite_pull_consumer import LitePullConsumer
from sprocket.client.producer import Producer
from sprocket.client.pull_consumer import PullConsumer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message
from sprocket.message.queue import QueueId
from sprocket.message.record import decode
from tests.client.fakes import FakeBroker, play, queue_of, world

SERVER = "127.0.0.1:9"
NAN = float("nan")
QUEUES: list[Any] = [None, "orders", ("orders", "broker-a", 0), QueueId("orders", "broker-a", "0")]
OFFSETS: list[Any] = [None, "1", -1, 1.0, True, NAN, 2**63]
MESSAGE = Message("orders", b"x")


def push() -> PushConsumer:
    return PushConsumer("g", nameservers=SERVER)


def refused(words: str, call: Callable[..., Any], *given: Any, **named: Any) -> None:
    with pytest.raises(UsageError, match=words):
        call(*given, **named)


async def refused_later(words: str, call: Callable[..., Any], *given: Any, **named: Any) -> None:
    with pytest.raises(UsageError, match=words):
        await call(*given, **named)


@pytest.mark.parametrize(
    "listener",
    [lambda: None, lambda a, b: None, lambda m, *, must: None, "text", 5],
)
def test_a_listener_takes_its_message(listener: Any) -> None:
    refused("a listener is", push().subscribe, "orders", listener=listener)
    refused("a listener is", push().on("orders"), listener)
    refused(r"\(messages\)", push().on("orders", batch=5), listener)


@pytest.mark.parametrize("listener", [print, lambda *m: None, lambda m, more=1: None, len, int])
def test_what_can_take_one_argument_is_a_listener(listener: Any) -> None:
    push().subscribe("orders", listener=listener)


def test_a_subscription_may_be_of_batches() -> None:
    push().subscribe("orders", listener=print, batch=3)
    refused("batch goes with a listener", push().subscribe, "orders", batch=3)
    for wrong in (0, -1, "3", 1.5, True):
        refused("batch is a whole", push().subscribe, "orders", listener=print, batch=wrong)
    refused("there is no bacth", push().subscribe, "orders", bacth=3)


def test_a_configuration_is_of_its_client() -> None:
    wrong: Any = ProducerConfig()
    refused("config is a ConsumerCon", PushConsumer, "g", nameservers=SERVER, config=wrong)
    refused("LitePullConfig", LitePullConsumer, "g", nameservers=SERVER, config=wrong)
    refused("ProducerConfig", Producer, "g", nameservers=SERVER, config=LitePullConfig())
    assert arguments.settings(None, ConsumerConfig) == ConsumerConfig()


@pytest.mark.parametrize("nameservers", [5, b"host:1", [5], [None]])
def test_name_servers_are_texts(nameservers: Any) -> None:
    refused("name servers are host:port", Producer, "g", nameservers=nameservers)
    Producer("g", nameservers=iter([SERVER]))


def test_topics_are_texts_also_where_they_are_only_left_alone() -> None:
    consumer = push()
    for call in (consumer.unsubscribe, consumer.pause, consumer.resume):
        refused("a topic is a text", call, 5)


def test_a_pull_consumer_checks_what_it_is_asked() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            PullConsumer("g", nameservers=broker.address, world=world()) as consumer,
        ):
            for topic in (None, 5, b"orders", ["orders"], ""):
                await refused_later("topic", consumer.queues, topic)
            calls: list[Callable[[Any], Any]] = [
                lambda queue: consumer.pull(queue, 0), consumer.committed, consumer.min_offset,
                consumer.max_offset, lambda queue: consumer.commit(queue, 0),
                lambda queue: consumer.offset_at(queue, 0),
            ]  # fmt: skip
            for wrong in QUEUES:
                for call in calls:
                    await refused_later("a queue is a QueueId", call, wrong)
            queue = queue_of("orders")
            for wrong in OFFSETS:
                await refused_later("an offset is", consumer.pull, queue, wrong)
                await refused_later("an offset is", consumer.commit, queue, wrong)
            for wrong in (0, "1", 1.5, None):
                await refused_later("count is", consumer.pull, queue, 0, count=wrong)
            for wrong in (-1, "1", NAN):
                await refused_later("wait_ms", consumer.pull_blocking, queue, 0, wait_ms=wrong)
            await refused_later("a time is", consumer.offset_at, queue, "now")
            await refused_later("there is no tag", consumer.pull, queue, 0, tag="x")
            assert await consumer.offset_at(queue, datetime.now(UTC)) == 0

    play(main)


def test_a_lite_pull_consumer_checks_what_it_is_asked() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            LitePullConsumer("g", nameservers=broker.address, world=world()) as consumer,
        ):
            queue: Any = queue_of("orders")
            for wrong in (None, "orders", [None], ["orders"]):
                for several in (consumer.assign, consumer.pause, consumer.resume):
                    refused("queue", several, wrong)
            refused("queue", consumer.assign, queue)
            consumer.pause(queue)  # these two take one, or a list
            consumer.resume(queue)
            refused("for assignments", consumer.on_assignment, lambda: None)
            consumer.assign([queue])
            for wrong in QUEUES:
                for one in (consumer.committed, consumer.position, consumer.seek_to_end):
                    await refused_later("a queue is", one, wrong)
                await refused_later("a queue is", consumer.commit, {wrong: 0})
            for wrong in OFFSETS:
                await refused_later("an offset is", consumer.seek, queue, wrong)
                await refused_later("an offset is", consumer.commit, {queue: wrong})
            await refused_later("a mapping", consumer.commit, [queue])
            await refused_later("a time is", consumer.seek_to_time, queue, "now")
            for wrong in (None, "1", -1, NAN, True):
                await refused_later("timeout_ms is", consumer.poll, wrong)

    play(main)


def test_a_producer_checks_what_it_is_asked() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            Producer("g", nameservers=broker.address, world=world()) as producer,
        ):
            send: Any = producer.send
            for wrong in ("1", -1, NAN, b"x", []):
                await refused_later("timeout_ms", send, MESSAGE, timeout_ms=wrong)
            for wrong in (1.5, b"x", []):
                await refused_later("a key is", send, MESSAGE, key=wrong)
            for wrong in ("x", lambda: None, lambda a, b, c: None):
                await refused_later("a queue_selector is", send, MESSAGE, queue_selector=wrong)

            def fails(queues: object, message: object) -> QueueId:
                raise TypeError("the selector's own")

            with pytest.raises(TypeError, match="own"):
                await send(MESSAGE, queue_selector=fails)
            await refused_later("a topic is", producer.queues, None)
            await refused_later("handle", producer.recall, "orders", 5)
            await refused_later("a consumed message", producer.reply, "x", b"")
            await refused_later("timeout", producer.request, MESSAGE, timeout_ms=None)

    play(main)


def test_a_key_is_one_word() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            Producer("g", nameservers=broker.address, world=world()) as producer,
        ):
            for key in ("a b", "a\tb"):
                message = Message("orders", b"x", keys=["o-1", key])
                await refused_later("a key is one word", producer.send, message)
            await producer.send(Message("orders", b"x", keys=("a", "b")))
            (record,) = broker.queue("orders").records
            assert decode(record).keys == ["a", "b"]

    play(main)


def test_only_a_message_under_way_can_be_marked() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            PushConsumer("g", nameservers=broker.address, start="first", world=world()) as consumer,
        ):
            broker.put("orders", body="a")
            broker.put("orders", body="b")
            consumer.subscribe("orders")
            seen = []
            async for message in consumer:
                if seen:
                    refused("before the next one", consumer.later, seen[0])
                    break
                seen.append(message)
                refused("a delay level", consumer.later, message, "x")

    play(main)
