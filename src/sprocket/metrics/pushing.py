"""Sends metrics to a collector of OpenTelemetry, or writes them into the log, at intervals."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sprocket.base.errors import ConfigError, UsageError
from sprocket.base.histogram import Histogram
from sprocket.base.troubles import Troubles
from sprocket.metrics.config import MetricsConfig
from sprocket.metrics.model import Family, Kind
from sprocket.metrics.reading import MetricsReader, Reading, labels_of, pairs

logger = logging.getLogger(__name__)

#: Takes the values of one moment somewhere.
Push = Callable[[list[Reading]], Awaitable[None]]
_SCOPE = "sprocket"


class Totals:
    """Makes totals into what came since the last time, if that is wanted. Pure."""

    def __init__(self, *, in_delta: bool) -> None:
        self._in_delta = in_delta
        self._before: dict[tuple[Any, ...], float] = {}
        self._histograms: dict[tuple[Any, ...], Histogram] = {}

    def take(self, readings: list[Reading]) -> None:
        """Replaces the totals in `readings`. One that is less than before began anew."""
        if not self._in_delta:
            return
        now: dict[tuple[Any, ...], float] = {}
        histograms: dict[tuple[Any, ...], Histogram] = {}
        for labels, family in readings:
            self._take_histograms(labels, family, histograms)
            if family.metric.kind is not Kind.COUNTER:
                continue
            common = tuple(labels.items())
            for values, value in family.points.items():
                key = (family.metric.name, common, values)
                now[key] = value
                before = self._before.get(key, 0)
                family.points[values] = value - before if value >= before else value
        self._before, self._histograms = now, histograms

    def _take_histograms(
        self, labels: Mapping[str, str], family: Family, taken: dict[tuple[Any, ...], Histogram]
    ) -> None:
        common = tuple(labels.items())
        for values, histogram in family.histograms.items():
            key = (family.metric.name, common, values)
            before, now = self._histograms.get(key), histogram.copy()
            taken[key] = now
            if before is not None and before.count <= now.count:
                family.histograms[values] = now.since(before)


async def push_always(
    reader: MetricsReader, push: Push, *, interval_ms: int, in_delta: bool
) -> None:
    """Pushes all metrics at intervals, until cancelled. A push that fails is reported."""
    totals = Totals(in_delta=in_delta)
    troubles = Troubles(asyncio.get_running_loop().time, logger)
    while True:
        await asyncio.sleep(interval_ms / 1000)
        readings = [each async for each in reader.readings()]
        totals.take(readings)
        try:
            await push(readings)
        except Exception as error:  # whatever it is, the next time may succeed
            troubles.failed("metrics", "metrics are not sent", error)
        else:
            troubles.ended("metrics", "metrics are sent again")


async def to_log(readings: list[Reading]) -> None:
    """Writes all values into the log, an entry of JSON for each metric."""
    for labels, family in readings:
        points = [
            {"labels": labels_of(family.metric, values, labels), "value": value}
            for values, value in family.points.items()
        ]
        points += [
            {"labels": labels_of(family.metric, values, labels), **_in_log(each)}
            for values, each in family.histograms.items()
        ]
        if points:
            logger.info("%s", json.dumps({"metric": family.metric.name, "points": points}))
        await asyncio.sleep(0)


def _in_log(histogram: Histogram) -> dict[str, Any]:
    return {
        "count": histogram.count,
        "sum": histogram.total,
        "bounds": list(histogram.bounds),
        "counts": histogram.counts,
    }


def to_collector(config: MetricsConfig) -> Push:
    """Sends values to the collector that is set, by OpenTelemetry's own exporter.

    Raises:
        ConfigError: no collector is set.
        UsageError: the library is not installed.
    """
    if not config.target:
        raise ConfigError(
            "metrics.exporter (metricsExporterType) OTLP_GRPC needs metrics.target "
            "(metricsGrpcExporterTarget), host:4317"
        )
    headers = pairs(config.headers, "metrics.headers (metricsGrpcExporterHeader)")
    try:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics.export import MetricExportResult
    except ImportError:
        raise UsageError(
            "sending metrics needs OpenTelemetry's exporter: pip install 'sprocketmq[otlp]'"
        ) from None
    target = config.target if config.target.startswith("http") else f"https://{config.target}"
    exporter = OTLPMetricExporter(
        endpoint=target,
        headers=tuple((name.lower(), value) for name, value in headers.items()),
        timeout=config.timeout_ms / 1000,
    )
    started_ns = time.time_ns()

    async def push(readings: list[Reading]) -> None:
        nonlocal started_ns
        now_ns = time.time_ns()
        data = _collected(readings, started_ns, now_ns, in_delta=config.in_delta)
        sent = await asyncio.to_thread(exporter.export, data, timeout_millis=config.timeout_ms)
        if sent is not MetricExportResult.SUCCESS:
            raise UsageError(f"the collector at {target} did not take them")
        if config.in_delta:
            started_ns = now_ns

    return push


def _distributions(
    labels: Mapping[str, str], family: Family, started_ns: int, now_ns: int
) -> list[Any]:
    """The histograms of a metric in the classes of OpenTelemetry, which want extremes: the bounds
    of the outermost that have values."""
    from opentelemetry.sdk.metrics.export import HistogramDataPoint

    points = []
    for values, each in family.histograms.items():
        used = [place for place, count in enumerate(each.counts) if count]
        edges = [0.0, *each.bounds, each.bounds[-1]]
        points.append(
            HistogramDataPoint(
                attributes=labels_of(family.metric, values, labels),
                start_time_unix_nano=started_ns,
                time_unix_nano=now_ns,
                count=each.count,
                sum=each.total,
                bucket_counts=each.counts,
                explicit_bounds=each.bounds,
                min=edges[used[0]] if used else 0.0,
                max=edges[used[-1] + 1] if used else 0.0,
            )
        )
    return points


def _collected(readings: list[Reading], started_ns: int, now_ns: int, *, in_delta: bool) -> Any:
    """The values in the classes of OpenTelemetry."""
    from opentelemetry.sdk.metrics import export as otel
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    temporality = (
        otel.AggregationTemporality.DELTA if in_delta else otel.AggregationTemporality.CUMULATIVE
    )
    metrics = []
    for labels, family in readings:
        metric = family.metric
        if metric.kind is Kind.HISTOGRAM:
            distributions = _distributions(labels, family, started_ns, now_ns)
            collected: Any = otel.Histogram(distributions, temporality)
            metrics.append(otel.Metric(metric.name, metric.meaning, metric.unit, collected))
            continue
        is_total = metric.kind is Kind.COUNTER
        points = [
            otel.NumberDataPoint(
                attributes=labels_of(metric, values, labels),
                start_time_unix_nano=started_ns if is_total else now_ns,
                time_unix_nano=now_ns,
                value=value,
            )
            for values, value in family.points.items()
        ]
        data: Any = (
            otel.Sum(points, temporality, is_monotonic=True) if is_total else otel.Gauge(points)
        )
        metrics.append(otel.Metric(metric.name, metric.meaning, metric.unit, data))
    scope = otel.ScopeMetrics(InstrumentationScope(_SCOPE), metrics, "")
    return otel.MetricsData([otel.ResourceMetrics(Resource({}), [scope], "")])
