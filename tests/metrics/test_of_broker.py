"""What the metrics of a broker say about messages, groups and the store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.config import check
from sprocket.broker.broker import Broker
from sprocket.client.producer import Producer
from sprocket.client.push_consumer import PushConsumer
from sprocket.message.message import Message
from sprocket.metrics import names
from sprocket.metrics.config import PROM, MetricsConfig
from sprocket.metrics.model import Metric
from sprocket.metrics.of_broker import BrokerMetrics
from sprocket.metrics.pages import exposition
from sprocket.metrics.reading import MetricsReader
from sprocket.standalone import Standalone
from tests.client.fakes import until

Points = dict[tuple[str, ...], float]


def broker_of(node: Standalone) -> Broker:
    broker = node._broker
    assert broker is not None
    return broker


async def points(node: Standalone, *, by_queue: bool = True) -> dict[Metric, Points]:
    """The values of all metrics of a node's broker."""
    metrics = BrokerMetrics(broker_of(node), by_queue=by_queue)
    return {family.metric: family.points async for family in metrics.families()}


def with_node(test: Callable[[Standalone], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Standalone(store=None) as node:
            await test(node)

    asyncio.run(main())


async def send(node: Standalone, topic: str, count: int, size: int = 100) -> None:
    async with Producer("shop", nameservers=node.nameserver_address) as producer:
        for number in range(count):
            await producer.send(Message(topic, b"x" * size, keys=[str(number)]))


def test_messages_are_counted_by_topic_on_their_way_in_and_out() -> None:
    async def test(node: Standalone) -> None:
        await send(node, "orders", 5)
        got = []
        consumer = PushConsumer("billing", nameservers=node.nameserver_address, start="first")
        consumer.on("orders")(got.append)
        async with consumer, asyncio.timeout(20):
            await until(lambda: len(got) == 5)
            found = await points(node)
        assert found[names.MESSAGES_IN]["orders", "normal", "false"] == 5
        assert found[names.BYTES_IN]["orders", "normal", "false"] > 500
        assert found[names.MESSAGES_OUT]["orders", "billing", "false", "false"] == 5
        assert found[names.CONSUMERS] == {
            ("billing", "python", "v5_3_3", "push", "remoting", "false"): 1
        }
        inside = broker_of(node).inside
        assert inside is not None
        assert found[names.TOPICS][()] == len(inside.parts.tables.topics.by_name)

    with_node(test)


def test_a_group_lags_also_while_nobody_of_it_runs() -> None:
    async def test(node: Standalone) -> None:
        consumer = PushConsumer("billing", nameservers=node.nameserver_address, start="first")
        seen = asyncio.Event()
        consumer.on("orders")(lambda message: seen.set())
        async with consumer:
            await send(node, "orders", 1)
            await asyncio.wait_for(seen.wait(), 20)
        before = await points(node)
        labels = ("billing", "orders", "false", "false")
        assert before[names.LAG][labels] == 0
        assert before[names.LAG_MS][labels] == 0
        await send(node, "orders", 6)
        await asyncio.sleep(0.01)
        after = await points(node)
        assert after[names.LAG][labels] == after[names.READY][labels] == 6
        assert after[names.IN_FLIGHT][labels] == 0
        assert after[names.LAG_MS][labels] > 0
        by_queue = {
            key: value for key, value in after[names.QUEUE_LAG].items() if key[1] == "orders"
        }
        assert sum(by_queue.values()) == 6
        assert names.QUEUE_LAG not in await points(node, by_queue=False)

    with_node(test)


def test_what_is_delayed_or_undecided_or_failed_shows() -> None:
    async def test(node: Standalone) -> None:
        async with Producer("shop", nameservers=node.nameserver_address) as producer:
            await producer.send(Message("orders", b"later", delay=3600))
        found = await points(node)
        waiting = found[names.TIMING]
        assert waiting == {("local", "disk", "orders"): 1}
        requests = found[names.REQUESTS]
        assert all(value > 0 for value in requests.values())
        assert found[names.UNFLUSHED]["local", "disk"] >= 0
        assert 0 <= found[names.DISK_USAGE][()] <= 1

    with_node(test)


def test_every_metric_of_a_broker_is_in_the_list_and_has_its_labels() -> None:
    async def test(node: Standalone) -> None:
        await send(node, "orders", 1)
        for metric, values in (await points(node)).items():
            assert metric in names.BROKER
            assert all(len(labels) == len(metric.labels) for labels in values), metric.name

    with_node(test)


def test_too_many_values_are_cut_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def test(node: Standalone) -> None:
        config = MetricsConfig(exporter=PROM, series_max=3, labels="zone:a")
        check(config)
        for number in range(6):
            await send(node, f"topic-{number}", 1)
        text = await exposition(MetricsReader([BrokerMetrics(broker_of(node))], config))
        lines = [line for line in text.splitlines() if line.startswith(names.MESSAGES_IN.name)]
        assert len(lines) == 3
        assert all('zone="a"' in line for line in lines)
        assert "metrics.series_max" in caplog.text

    with_node(test)
