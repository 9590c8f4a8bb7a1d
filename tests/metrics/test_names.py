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
    "rocketmq_message_size": {"topic", "message_type", "is_system"},
    "rocketmq_rpc_latency": {
        "protocol_type", "request_code", "response_code", "is_long_polling", "result",
    },
    "rocketmq_topic_create_execution_time": {"invocation_status", "is_system"},
    "rocketmq_consumer_group_create_execution_time": {"invocation_status"},
    "rocketmq_finish_message_latency": {"topic"},
    "rocketmq_delay_message_latency": {"storage_type", "storage_medium", "topic"},
    "rocketmq_timer_message_snapshot": {"storage_type", "storage_medium", "timer_bound_s"},
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
        shown = re.findall(r"(?:rocketmq|sprocket)_[a-z_]+", expression)
        names = [re.sub(r"_(bucket|sum|count)$", "", name) for name in shown]
        assert names, expression
        labels = {label for name in names for label in ALL[name].labels} | COMMON | {"le"}
        used = re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"", expression)
        for group in re.findall(r"by\s*\(([^)]*)\)", expression):
            used += [each.strip() for each in group.split(",")]
        assert set(used) <= labels, expression
        for name, text in zip(names, shown, strict=True):
            is_rate = re.search(rf"(rate|increase)\({name}", expression) is not None
            is_total = ALL[name].kind is not Kind.GAUGE
            assert is_rate == is_total or "label_values" in expression
            assert (text != name) == (ALL[name].kind is Kind.HISTOGRAM)
