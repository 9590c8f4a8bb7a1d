"""Misuse is refused, or reported, at the door, in words that name what is right."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from sprocket import (
    ConsumerConfig,
    LitePullConsumer,
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    UsageError,
)
from sprocket.message.message import StoredMessage
from tests.client.fakes import FakeBroker, play, queue_of, until, world
from tests.support import run

SERVERS = "127.0.0.1:9876"


async def poll(consumer: LitePullConsumer) -> None:
    await consumer.poll(100)


async def iterate(consumer: PushConsumer) -> None:
    async for _ in consumer:
        pass


async def subscribe(consumer: PushConsumer) -> None:
    consumer.subscribe("others")


USES: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "send": (Producer, lambda client: client.send(Message("orders", b"x"))),
    "queues": (Producer, lambda client: client.queues("orders")),
    "close": (Producer, lambda client: client.close()),
    "start": (Producer, lambda client: client.start()),
    "pull": (PullConsumer, lambda client: client.pull(queue_of("orders"), 0)),
    "close pull": (PullConsumer, lambda client: client.close()),
    "poll": (LitePullConsumer, poll),
    "close lite": (LitePullConsumer, lambda client: client.close()),
    "iterate": (PushConsumer, iterate),
    "subscribe": (PushConsumer, subscribe),
    "close push": (PushConsumer, lambda client: client.close()),
}


@pytest.mark.parametrize("use", USES)
def test_a_client_refuses_another_thread_and_works_on_in_its_own(use: str) -> None:
    kind, function = USES[use]

    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            client = kind("g", nameservers=broker.address)
            if kind is not PullConsumer and kind is not Producer:
                client.subscribe("orders")
            await client.start()
            errors: list[BaseException] = []

            def elsewhere() -> None:
                try:
                    asyncio.run(function(client))
                except BaseException as error:
                    errors.append(error)

            thread = threading.Thread(target=elsewhere, daemon=True)
            thread.start()
            await asyncio.to_thread(thread.join)
            (error,) = errors
            assert isinstance(error, UsageError)
            assert "sprocket.client.blocking" in str(error)
            if kind is Producer:
                await client.send(Message("orders", b"x"))
            await client.close()

    run(main())


def test_a_decorator_without_parentheses_is_refused() -> None:
    consumer = PushConsumer("g", nameservers=SERVERS)
    with pytest.raises(UsageError, match=r'@consumer.on\("orders"\)'):

        @consumer.on  # type: ignore[call-overload]
        def take(message: StoredMessage) -> None:
            pass


@pytest.mark.parametrize("subscribes", ["nothing", "late", "pattern"])
def test_a_consumer_without_any_subscription_is_reported(
    subscribes: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            PushConsumer("g", nameservers=broker.address, world=world()) as consumer,
        ):
            await asyncio.sleep(1)
            if subscribes == "late":
                consumer.subscribe("orders")
            elif subscribes == "pattern":
                consumer.subscribe(re.compile("o.*"))
            await asyncio.sleep(30)

    play(main)
    reports = [each for each in caplog.records if "no topic is subscribed" in each.message]
    assert len(reports) == (subscribes == "nothing")


@pytest.mark.parametrize("tags", ["new | paid", "new,paid", "new paid", "new|paid"])
def test_tags_with_another_separator_are_reported(
    tags: str, caplog: pytest.LogCaptureFixture
) -> None:
    PushConsumer("g", nameservers=SERVERS).subscribe("orders", tags=tags)
    (report,) = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert "'new || paid'" in report


def test_right_tags_are_not(caplog: pytest.LogCaptureFixture) -> None:
    PushConsumer("g", nameservers=SERVERS).subscribe("orders", tags="new || paid||a-b")
    assert not caplog.records


SECONDS = 1_790_000_000


@pytest.mark.parametrize("wrong", [SECONDS, datetime(2026, 1, 1)])
@pytest.mark.parametrize("kind", [PushConsumer, LitePullConsumer])
def test_a_start_in_seconds_or_without_a_zone_is_refused(kind: Any, wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"looks like seconds|time zone"):
        kind("g", nameservers=SERVERS, start=wrong)


@pytest.mark.parametrize("wrong", [SECONDS, datetime(2026, 1, 1)])
def test_other_times_in_seconds_or_without_a_zone_are_refused(wrong: Any) -> None:
    async def main() -> None:
        address = None
        async with FakeBroker({"orders": 1}) as broker:
            address = broker.address
            async with Producer("p", nameservers=address, world=world()) as producer:
                with pytest.raises(UsageError, match=r"looks like seconds|time zone"):
                    await producer.send(Message("orders", b"x", deliver_at=wrong))
            async with PullConsumer("g", nameservers=address, world=world()) as consumer:
                with pytest.raises(UsageError, match=r"looks like seconds|time zone"):
                    await consumer.offset_at(queue_of("orders"), wrong)

    play(main)


@pytest.mark.parametrize("tag", ["a || b", "*", " ", " a", "a "])
def test_a_tag_that_no_subscription_can_name_is_refused(tag: str) -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            Producer("p", nameservers=broker.address, world=world()) as producer,
        ):
            with pytest.raises(UsageError, match="no subscription can name"):
                await producer.send(Message("orders", b"x", tag=tag))

    play(main)


def test_a_setting_as_a_parameter_names_the_configuration() -> None:
    unchecked: Any = PushConsumer
    with pytest.raises(UsageError, match=r"config=ConsumerConfig\(concurrency=5\)"):
        unchecked("g", nameservers=SERVERS, concurrency=5)
    assert PushConsumer("g", nameservers=SERVERS, config=ConsumerConfig(concurrency=5))


def test_one_queue_can_be_paused_as_it_is() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 2}) as broker,
            LitePullConsumer("g", nameservers=broker.address, world=world()) as consumer,
        ):
            consumer.subscribe("orders")
            await until(lambda: consumer.assignment)
            consumer.pause(queue_of("orders", 0))
            broker.put("orders", 0)
            broker.put("orders", 1)
            assert [each.queue.number for each in await consumer.poll(3_000)] == [1]
            assert await consumer.poll(1_000) == []
            consumer.resume(queue_of("orders", 0))
            assert len(await consumer.poll(30_000)) == 1

    play(main)
