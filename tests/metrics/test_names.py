"""The names of metrics: in the guide, and in the dashboard."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sprocket.metrics.model import Kind
from sprocket.metrics.names import BROKER, CONTAINER, NAMESERVER, PROXY
from tests.metrics.table import MARK, PAGE, table

ALL = {metric.name: metric for metric in (*BROKER, *NAMESERVER, *PROXY, *CONTAINER)}
COMMON = {"cluster", "node_type", "node_id"}
DASHBOARD = Path(__file__).parents[2] / "docs/grafana/sprocket.json"
#: Names and labels of RocketMQ 5.3, from its classes of constants, as far as there are metrics of
#: these names here.
ROCKETMQ = {
    "rocketmq_broker_permission": set(),
    "rocketmq_topic_number": set(),
    "rocketmq_consumer_group_number": set(),
    "rocketmq_producer_connections": {"language", "version", "protocol_type"},
    "rocketmq_consumer_connections": {
        "consumer_group", "language", "version", "consume_mode", "protocol_type", "is_system",
    },
    "rocketmq_messages_in_total": {"topic", "message_type", "is_system"},
    "rocketmq_throughput_in_total": {"topic", "message_type", "is_system"},
    "rocketmq_messages_out_total": {"topic", "consumer_group", "is_retry", "is_system"},
    "rocketmq_throughput_out_total": {"topic", "consumer_group", "is_retry", "is_system"},
    "rocketmq_consumer_lag_messages": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_consumer_lag_latency": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_consumer_inflight_messages": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_consumer_queueing_latency": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_consumer_ready_messages": {"consumer_group", "topic", "is_retry", "is_system"},
    "rocketmq_half_messages": {"topic"},
    "rocketmq_storage_size": {"storage_type", "storage_medium"},
    "rocketmq_storage_flush_behind_bytes": {"storage_type", "storage_medium"},
    "rocketmq_storage_dispatch_behind_bytes": {"storage_type", "storage_medium"},
    "rocketmq_storage_message_reserve_time": {"storage_type", "storage_medium"},
    "rocketmq_timing_messages": {"storage_type", "storage_medium", "topic"},
    "rocketmq_proxy_up": {"proxy_mode"},
}  # fmt: skip


def test_the_guide_has_every_metric() -> None:
    assert PAGE.read_text().partition(MARK)[2].strip() == table().strip()


def test_metrics_of_rocketmq_have_its_labels() -> None:
    for name, labels in ROCKETMQ.items():
        assert set(ALL[name].labels) == labels, name


def test_totals_are_named_so() -> None:
    for name, metric in ALL.items():
        assert re.fullmatch(r"(rocketmq|sprocket)_[a-z_]+", name)
        assert name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert not COMMON & set(metric.labels)


def test_the_dashboard_asks_for_nothing_else() -> None:
    board = json.loads(DASHBOARD.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]
    asked += [each["query"] for each in board["templating"]["list"] if each["type"] == "query"]
    assert len(asked) > 12
    for expression in asked:
        names = re.findall(r"(?:rocketmq|sprocket)_[a-z_]+", expression)
        assert names, expression
        labels = {label for name in names for label in ALL[name].labels} | COMMON
        used = re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"", expression)
        for group in re.findall(r"by\s*\(([^)]*)\)", expression):
            used += [each.strip() for each in group.split(",")]
        assert set(used) <= labels, expression
        for name in names:
            is_rate = re.search(rf"(rate|increase)\({name}", expression)
            assert bool(is_rate) == (ALL[name].kind is Kind.COUNTER) or "label_values" in expression
