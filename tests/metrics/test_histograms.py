"""The histograms of a broker appear where metrics are read, and cost nothing where they are not."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable

import pytest

from sprocket.base.histogram import Histogram
from sprocket.client.producer import Producer
from sprocket.client.transactional_producer import TransactionalProducer
from sprocket.message.message import Message
from sprocket.metrics import names
from sprocket.metrics.config import PROM, MetricsConfig
from sprocket.metrics.model import Family, Metric
from sprocket.metrics.of_broker import BrokerMetrics
from sprocket.metrics.pages import exposition
from sprocket.metrics.pushing import Totals, _collected, to_log
from sprocket.metrics.reading import MetricsReader, Reading
from sprocket.standalone import Standalone
from tests.client.fakes import until
from tests.metrics.test_of_broker import broker_of

ON = MetricsConfig(exporter=PROM, port=0)


def with_node(test: Callable[[Standalone], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Standalone(store=None, configs=[ON]) as node:
            await test(node)

    asyncio.run(main())


async def found(node: Standalone) -> dict[Metric, dict[tuple[str, ...], Histogram]]:
    metrics = BrokerMetrics(broker_of(node))
    return {each.metric: each.histograms async for each in metrics.families()}


def test_sizes_calls_creations_commits_and_delays_are_measured() -> None:
    async def test(node: Standalone) -> None:
        nameservers = node.nameserver_address
        async with Producer("shop", nameservers=nameservers) as producer:
            for size in (10, 2_000, 100_000):
                await producer.send(Message("orders", os.urandom(size)))
            await producer.send(Message("orders", b"x", delay=120))
        async with (
            TransactionalProducer("shop", nameservers=nameservers) as producer,
            producer.transaction(Message("orders", b"x")),
        ):
            pass
        measures = broker_of(node).measures
        assert measures is not None
        async with asyncio.timeout(20):
            await until(lambda: bool(measures.commits))
        of = await found(node)
        sizes = of[names.SIZES]["orders", "normal", "false"]
        assert sizes.counts[:3] == [2, 1, 1]
        send = ("remoting", "send_message_v2", "success", "false", "success")
        assert of[names.RPC_MS][send].count >= 5
        assert of[names.COMMIT_S]["orders",].count == 1
        assert of[names.DELAY_S]["local", "disk", "orders"].counts[1] == 1

    with_node(test)


def test_they_are_text_for_prometheus() -> None:
    async def test(node: Standalone) -> None:
        async with Producer("shop", nameservers=node.nameserver_address) as producer:
            await producer.send(Message("orders", b"x"))
        reader = MetricsReader([BrokerMetrics(broker_of(node))], ON)
        lines = (await exposition(reader)).splitlines()
        assert "# TYPE rocketmq_message_size histogram" in lines
        mine = [each for each in lines if each.startswith("rocketmq_message_size_")]
        mine = [each for each in mine if 'topic="orders"' in each]
        assert [each.partition("{")[0].rpartition("_")[2] for each in mine] == [
            *["bucket"] * 7, "sum", "count",
        ]  # fmt: skip
        assert 'le="1024"' in mine[0]
        assert 'le="+Inf"' in mine[6]
        assert [each.rpartition(" ")[2] for each in mine[:7]] == ["1"] * 7

    with_node(test)


def test_without_metrics_nothing_is_measured() -> None:
    async def main() -> None:
        async with Standalone(store=None) as node:
            assert broker_of(node).measures is None
            async with Producer("shop", nameservers=node.nameserver_address) as producer:
                await producer.send(Message("orders", b"x"))
            assert not any((await found(node)).values())

    asyncio.run(main())


def reading(*values: int) -> Reading:
    histogram = Histogram([1, 5])
    for value in values:
        histogram.observe(value)
    labels = ("a", "normal", "false")
    return Reading({"node_id": "n"}, Family(names.SIZES, histograms={labels: histogram}))


def test_in_delta_only_what_is_new_is_sent() -> None:
    totals = Totals(in_delta=True)
    seen = []
    for values in ((1, 7), (1, 7, 3), (1, 7, 3), (2,)):
        one = reading(*values)
        totals.take([one])
        (histogram,) = one.family.histograms.values()
        seen.append((histogram.counts, histogram.total))
    assert seen == [([1, 0, 1], 8), ([0, 1, 0], 3), ([0, 0, 0], 0), ([0, 1, 0], 2)]


def test_they_are_histograms_for_a_collector_and_lines_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="it is in the extra otlp")
    data = _collected([reading(1, 7, 7)], 1, 2, in_delta=False)
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    (point,) = metric.data.data_points
    assert (point.count, point.sum, list(point.bucket_counts)) == (3, 15, [1, 0, 2])
    assert list(point.explicit_bounds) == [1, 5]
    assert point.attributes["topic"] == "a"
    with caplog.at_level(logging.INFO):
        asyncio.run(to_log([reading(1, 7)]))
    assert '"counts": [1, 0, 1]' in caplog.text


def test_more_histograms_than_may_be_are_left_out() -> None:
    one = reading(1)
    for number in range(5):
        one.family.histograms[str(number), "normal", "false"] = Histogram([1])
    reader = MetricsReader([], MetricsConfig(series_max=3))
    reader._bound(one.family)
    assert len(one.family.histograms) == 3
