"""The settings of metrics, with the names of RocketMQ's where it has them.

Source of the names: BrokerConfig of RocketMQ 5.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from sprocket.base import setting_forms as forms
from sprocket.base.config import setting

DISABLE, PROM, OTLP, LOG = "DISABLE", "PROM", "OTLP_GRPC", "LOG"


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Settings of metrics and of the health of servers. Times in milliseconds."""

    exporter: str = setting(
        DISABLE,
        "Where metrics go: `PROM` serves them for Prometheus under `/metrics`, `OTLP_GRPC` sends "
        "them to a collector of OpenTelemetry, `LOG` writes them into the log.",
        rocketmq="metricsExporterType",
        choices=(DISABLE, PROM, OTLP, LOG),
    )
    health: bool = setting(
        False, "Whether `/health/live` and `/health/ready` are served; with `PROM` they are anyway."
    )
    host: str = setting(
        "127.0.0.1",
        "Address at which both are served; 0.0.0.0 or :: opens them to other machines.",
        rocketmq="metricsPromExporterHost",
        form=forms.host,
    )
    port: int = setting(
        5557,
        "TCP port at which both are served; 0 takes a free one.",
        rocketmq="metricsPromExporterPort",
        minimum=0,
        maximum=65535,
    )
    by_queue: bool = setting(True, "Whether the lag of each queue is a metric.")
    series_max: int = setting(
        50_000,
        "How many values a metric may have; further ones are left out, and that is logged.",
        rocketmq="metricsOtelCardinalityLimit",
        minimum=1,
    )
    labels: str | None = setting(
        None,
        "Labels of all values besides, such as `zone:a,rack:7`.",
        rocketmq="metricsLabel",
    )
    target: str | None = setting(
        None,
        "The collector, `host:4317` or `https://host:4317`.",
        rocketmq="metricsGrpcExporterTarget",
    )
    headers: str | None = setting(
        None,
        "Headers for the collector, such as `token:abc,tenant:7`.",
        rocketmq="metricsGrpcExporterHeader",
        is_secret=True,
    )
    interval_ms: int = setting(
        60_000,
        "The pause between two sendings.",
        rocketmq="metricGrpcExporterIntervalInMills",
        minimum=100,
    )
    timeout_ms: int = setting(
        3_000,
        "How long a sending may take.",
        rocketmq="metricGrpcExporterTimeOutInMills",
        minimum=1,
    )
    log_interval_ms: int = setting(
        10_000,
        "The pause between two entries in the log.",
        rocketmq="metricLoggingExporterIntervalInMills",
        minimum=100,
    )
    in_delta: bool = setting(
        False,
        "Whether totals are sent, or logged, as what came since the last time.",
        rocketmq="metricsInDelta",
    )

    @property
    def measures(self) -> bool:
        """Whether anybody reads metrics, so that histograms are kept."""
        return self.exporter != DISABLE
