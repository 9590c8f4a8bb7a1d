"""Metrics that are sent to a collector, or written into the log."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as otlp
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)

from sprocket.base.errors import ConfigError
from sprocket.metrics.config import LOG, OTLP, MetricsConfig
from sprocket.metrics.exporting import Exporting
from sprocket.metrics.health import serving
from sprocket.metrics.model import Family, Kind, Metric
from sprocket.metrics.pushing import Totals
from sprocket.metrics.reading import Reading
from tests.client.fakes import until

TOTAL = Metric("sprocket_things_total", Kind.COUNTER, "Things.", ("name",), "bytes")
LEVEL = Metric("sprocket_level", Kind.GAUGE, "A level.")


class Rising:
    """A total that rises by 3 each time, beside a level."""

    labels: ClassVar = {"node_id": "a"}

    def __init__(self) -> None:
        self.count = 0

    async def families(self) -> AsyncIterator[Family]:
        self.count += 3
        yield Family(TOTAL, {("x",): self.count})
        yield Family.single(LEVEL, 7)


class Collector(MetricsServiceServicer):
    """A collector of OpenTelemetry.

    Attributes:
        got: what was sent.
        headers: of the last sending.
    """

    def __init__(self) -> None:
        self.got: list[otlp.ExportMetricsServiceRequest] = []
        self.headers: dict[str, str] = {}

    def Export(self, request, context):  # type: ignore[no-untyped-def]
        self.got.append(request)
        self.headers = dict(context.invocation_metadata())
        return otlp.ExportMetricsServiceResponse()


async def sent(collector: Collector, *, in_delta: bool) -> list[tuple[str, int, str]]:
    """Name, value and unit of what two sendings bring."""
    server = grpc.server(ThreadPoolExecutor(2))
    add_MetricsServiceServicer_to_server(collector, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    config = MetricsConfig(
        exporter=OTLP, target=f"http://127.0.0.1:{port}", headers="Token:abc", interval_ms=100,
        in_delta=in_delta, labels="zone:b",
    )  # fmt: skip
    try:
        async with Exporting(config) as exporting, asyncio.timeout(30):
            exporting.add("rising", Rising(), serving)
            await until(lambda: len(collector.got) >= 2)
    finally:
        server.stop(None)
    found = []
    for request in collector.got[:2]:
        for metric in request.resource_metrics[0].scope_metrics[0].metrics:
            data = metric.sum if metric.HasField("sum") else metric.gauge
            found.append((metric.name, data.data_points[0].as_int, metric.unit))
    return found


@pytest.mark.parametrize(("in_delta", "second"), [(False, 6), (True, 3)])
def test_a_collector_gets_all_values(in_delta: bool, second: int) -> None:
    collector = Collector()
    values = asyncio.run(sent(collector, in_delta=in_delta))
    assert values == [
        ("sprocket_things_total", 3, "bytes"), ("sprocket_level", 7, ""),
        ("sprocket_things_total", second, "bytes"), ("sprocket_level", 7, ""),
    ]  # fmt: skip
    assert collector.headers["token"] == "abc"
    metric = collector.got[0].resource_metrics[0].scope_metrics[0].metrics[0]
    attributes = {
        each.key: each.value.string_value for each in metric.sum.data_points[0].attributes
    }
    expected = {"node_id": "a", "zone": "b", "name": "x"}
    assert attributes == (expected | {"aggregation": "delta"} if in_delta else expected)
    assert metric.sum.is_monotonic
    assert metric.sum.aggregation_temporality == (1 if in_delta else 2)


def test_the_log_gets_json(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sprocket.metrics")

    async def main() -> None:
        async with (
            Exporting(MetricsConfig(exporter=LOG, log_interval_ms=100)) as exporting,
            asyncio.timeout(20),
        ):
            exporting.add("rising", Rising(), serving)
            await until(lambda: len(caplog.records) >= 2)

    asyncio.run(main())
    first = json.loads(caplog.records[0].getMessage())
    assert first["metric"] == "sprocket_things_total"
    assert first["points"] == [{"labels": {"node_id": "a", "name": "x"}, "value": 3}]


def test_a_collector_that_is_missing_is_asked_for_by_name() -> None:
    async def main() -> None:
        with pytest.raises(ConfigError, match="metricsGrpcExporterTarget"):
            await Exporting(MetricsConfig(exporter=OTLP)).__aenter__()

    asyncio.run(main())


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=6))
def test_what_came_since_the_last_time_adds_up_to_the_total(moments: list[list[int]]) -> None:
    totals, sums, deltas = Totals(in_delta=True), [0] * 4, [0.0] * 4
    for added in moments:
        for at, count in enumerate(added):
            sums[at] += count
        family = Family(TOTAL, {(str(at),): float(sums[at]) for at in range(4)})
        totals.take([Reading({}, family)])
        for at in range(4):
            deltas[at] += family.points[str(at),]
    assert deltas == sums


def test_a_total_that_began_anew_counts_from_there() -> None:
    totals = Totals(in_delta=True)
    found = []
    for value in (5.0, 2.0, 4.0):
        family = Family(TOTAL, {("x",): value})
        totals.take([Reading({}, family)])
        found.append(family.points["x",])
    assert found == [5, 2, 2]
