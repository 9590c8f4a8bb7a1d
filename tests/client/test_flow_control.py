"""Push consumers that are paused, limited by topic, watched, and whose listeners take too long."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.client.config import ConsumerConfig
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import StoredMessage
from sprocket.message.opening import OPENED_AT_ONCE_BYTES
from sprocket.protocol.requests.pull import PullMessage
from sprocket.protocol.requests.send import SendBack, SendMessageV2
from tests.client.fakes import FakeBroker, play, until, world

RETRY = "%RETRY%readers"


def consumer_of(broker: FakeBroker, **settings: Any) -> PushConsumer:
    return PushConsumer(
        "readers",
        nameservers=broker.address,
        start="first",
        config=ConsumerConfig(**settings),
        world=world("c1"),
    )


def committed(broker: FakeBroker, topic: str = "orders", number: int = 0) -> int | None:
    return broker.committed.get(("readers", topic, number))


def test_a_paused_topic_waits_at_the_broker_and_others_go_on() -> None:
    async def main() -> None:
        topics = {"orders": 1, "news": 1}
        async with FakeBroker(topics) as broker, consumer_of(broker) as consumer:
            got: list[str] = []

            async def keep(message: StoredMessage) -> None:
                got.append(message.topic)

            consumer.subscribe("orders", listener=keep)
            consumer.subscribe("news", listener=keep)
            await until(lambda: len(consumer.queues) == 3)
            await asyncio.sleep(1)
            consumer.pause("orders")
            broker.put("orders")
            broker.put("news")
            await asyncio.sleep(60)
            assert got == ["news"]
            assert committed(broker) == 0
            assert len(consumer.queues) == 3
            consumer.resume("orders")
            await until(lambda: got == ["news", "orders"], seconds=1)

    play(main)


def test_what_failed_of_a_paused_topic_waits_too_and_others_come_again() -> None:
    async def main() -> None:
        topics = {"orders": 1, "news": 1, RETRY: 1}
        broker = FakeBroker(topics)
        async with broker, consumer_of(broker, reoffer_ms=1_000) as consumer:
            got: list[str] = []

            async def keep(message: StoredMessage) -> None:
                got.append(message.topic)

            consumer.subscribe("orders", listener=keep)
            consumer.subscribe("news", listener=keep)
            await until(lambda: len(consumer.queues) == 3)
            consumer.pause("orders")
            broker.put(RETRY, RETRY_TOPIC="orders")
            broker.put(RETRY, RETRY_TOPIC="news")
            await asyncio.sleep(60)
            assert got == ["news"]
            assert committed(broker, RETRY) == 0
            consumer.resume("orders")
            await until(lambda: got == ["news", "orders"], seconds=2)

    play(main)


def test_a_paused_consumer_fetches_nothing() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:
            got: list[StoredMessage] = []

            @consumer.on("orders")
            async def keep(message: StoredMessage) -> None:
                got.append(message)

            consumer.pause()
            broker.put("orders")
            await asyncio.sleep(60)
            assert not broker.count(PullMessage)
            consumer.resume()
            await until(lambda: got, seconds=1)

    play(main)


@pytest.mark.parametrize("limit", ["topic_count_max", "topic_bytes_max"])
def test_the_queues_of_a_topic_share_its_limit(limit: str) -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 4}) as broker:
            for number in range(4):
                for _ in range(100):
                    broker.put("orders", number)
            go_on = asyncio.Event()
            settings = {limit: 40, "pull_batch": 10, "concurrency": 1}
            async with consumer_of(broker, **settings) as consumer:

                @consumer.on("orders")
                async def wait(message: StoredMessage) -> None:
                    await go_on.wait()

                await asyncio.sleep(30)
                news = consumer.statistics().topics["orders"]
                assert (news.waiting, news.in_flight, news.waiting_bytes) == (39, 1, 40)
                go_on.set()
                await until(lambda: consumer.statistics().topics["orders"].consumed == 400)

    play(main)


def test_statistics_tell_rates_failures_and_what_waits() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker, consumer_of(broker) as consumer:

            @consumer.on("orders")
            async def slow(message: StoredMessage) -> None:
                await asyncio.sleep(0.25)
                if message.body == b"bad" and not message.reconsume_times:
                    raise ValueError

            for body in ("good", "good", "good", "bad"):
                broker.put("orders", body=body)
            await until(lambda: committed(broker, RETRY) == 1)
            told = consumer.statistics()
            orders = told.topics["orders"]
            assert (told.group, told.queues) == ("readers", 2)
            assert (orders.pulled, orders.consumed, orders.failed) == (4, 4, 1)
            assert (told.topics[RETRY].pulled, told.topics[RETRY].consumed) == (1, 0)
            assert abs(orders.listener_ms - 250) < 1
            assert orders.consumed_per_second > 0

    play(main)


@pytest.mark.parametrize(
    ("limit", "settings"),
    [
        ("count", {"window_count_max": 10}),
        ("bytes", {"window_bytes_max": 10}),
        ("span", {"window_span_max": 10}),
    ],
)
def test_statistics_tell_which_limit_keeps_a_queue_from_being_fetched(
    limit: str, settings: dict[str, int]
) -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            consumer_of(broker, pull_batch=4, concurrency=1, **settings) as consumer,
        ):
            go_on = asyncio.Event()

            @consumer.on("orders")
            async def wait(message: StoredMessage) -> None:
                await go_on.wait()

            for _ in range(40):
                broker.put("orders")
            await asyncio.sleep(5)
            told = consumer.statistics()
            (window,) = [each for each in told.windows if each.queue.topic == "orders"]
            assert window.full_by == limit
            assert (window.position, window.in_flight, window.waiting) == (0, 1, 11)
            assert (window.next_offset, window.size, window.span) == (12, 12, 11)
            assert told.topics["orders"].throttled == {limit: 1}
            go_on.set()
            await until(lambda: committed(broker) == 40)
            (window,) = [e for e in consumer.statistics().windows if e.queue.topic == "orders"]
            assert (window.position, window.full_by, window.size, window.span) == (40, None, 0, 0)

    play(main)


def test_a_message_whose_listener_hangs_is_given_back_and_frees_the_position() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            for body in ("hangs", "fine"):
                broker.put("orders", body=body)
            async with consumer_of(broker, consume_timeout_ms=60_000, drain_ms=0) as consumer:
                came: list[tuple[bytes, int]] = []

                @consumer.on("orders")
                async def hang(message: StoredMessage) -> None:
                    came.append((message.body, message.reconsume_times))
                    if message.body == b"hangs" and not message.reconsume_times:
                        await asyncio.Event().wait()

                await asyncio.sleep(50)
                assert not broker.count(SendBack)
                assert committed(broker) == 0
                await asyncio.sleep(60)
                assert committed(broker) == 2
                assert broker.last(SendBack).read(SendBack).delay_level == 3
                assert came == [(b"hangs", 0), (b"fine", 0), (b"hangs", 1)]
                assert consumer.statistics().topics["orders"].expired == 1

    play(main)


def test_a_late_end_of_a_listener_that_took_too_long_counts_no_more() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            broker.put("orders")
            async with consumer_of(broker, consume_timeout_ms=10_000) as consumer:

                @consumer.on("orders")
                async def late(message: StoredMessage) -> None:
                    if not message.reconsume_times:
                        await asyncio.sleep(100)
                        raise ValueError("too late to count")

                await asyncio.sleep(150)
                assert broker.count(SendBack) == 1
                assert committed(broker) == 1

    play(main)


def test_a_message_that_took_too_long_is_never_lost_while_brokers_refuse_it() -> None:
    async def main() -> None:
        async with FakeBroker({"orders": 1}) as broker:
            broker.put("orders")
            refused = (SendBack.code, SendMessageV2.code)
            broker.refuse = lambda command, peer: 1 if command.code in refused else None
            async with consumer_of(broker, consume_timeout_ms=10_000) as consumer:
                calls: list[int] = []

                @consumer.on("orders")
                async def late(message: StoredMessage) -> None:
                    calls.append(message.reconsume_times)
                    if len(calls) == 1:
                        await asyncio.sleep(100)
                        raise ValueError

                await asyncio.sleep(90)
                assert committed(broker) == 0
                assert calls == [0]
                await asyncio.sleep(60)
                assert calls == [0, 0]
                assert committed(broker) == 1

    play(main)


def test_bodies_that_open_to_much_are_fetched_in_bounded_parts_and_all_come_once() -> None:
    async def main() -> None:
        async with (
            FakeBroker({"orders": 1}) as broker,
            consumer_of(broker, concurrency=1, window_bytes_max=OPENED_AT_ONCE_BYTES) as consumer,
        ):
            came: list[int] = []
            most = 0

            @consumer.on("orders")
            async def seen(message: StoredMessage) -> None:
                nonlocal most
                orders = consumer.statistics().topics["orders"]
                most = max(most, orders.waiting_bytes)
                came.append(message.queue_offset)

            for _ in range(6):
                broker.put_compressed("orders", OPENED_AT_ONCE_BYTES // 2)
            await until(lambda: committed(broker) == 6)
            assert came == [*range(6)]
            # What waits is counted in opened bytes.
            assert OPENED_AT_ONCE_BYTES // 2 <= most <= 2 * OPENED_AT_ONCE_BYTES

    play(main)
