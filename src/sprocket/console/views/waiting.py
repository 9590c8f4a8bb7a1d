"""Delayed messages and open transactions as rows of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sprocket.console.operations.waiting import DelayedAt, PendingFacts
from sprocket.console.views.messages import message_rows
from sprocket.console.views.units import ago_text, count_text, span_text


def delayed_rows(brokers: Iterable[DelayedAt], now_ms: int) -> list[dict[str, Any]]:
    """A row for each broker: how many messages wait, and until when."""
    return [
        {
            "id": each.broker,
            "broker": each.broker,
            "waiting": each.total,
            "waiting_text": count_text(each.total),
            "next": each.next_at.timestamp() if each.next_at else 0,
            "next_text": "not told"
            if each.total and not each.next_at
            else ago_text(each.next_at, now_ms),
            "due": due_text(each),
        }
        for each in brokers
    ]


def due_text(broker: DelayedAt) -> str:
    """When messages are due, as far as the broker tells."""
    said = [
        f"{count_text(count)} within {span_text(int(seconds))}"
        for seconds, count in broker.due.items()
        if count
    ]
    if broker.later:
        said.append(f"{count_text(broker.later)} later")
    return ", ".join(said)


def delayed_topic_rows(brokers: Iterable[DelayedAt]) -> list[dict[str, Any]]:
    """A row for each topic with waiting messages, of all brokers."""
    counts: dict[str, int] = {}
    for broker in brokers:
        for topic, count in broker.topics.items():
            counts[topic] = counts.get(topic, 0) + count
    return [
        {"topic": topic, "waiting": count, "waiting_text": count_text(count)}
        for topic, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]


def pending_rows(pending: Iterable[PendingFacts], now_ms: int) -> list[dict[str, Any]]:
    """A row for each transaction that nobody has ended."""
    found = list(pending)
    rows = message_rows((each.message for each in found), now_ms)
    for row, each in zip(rows, found, strict=True):
        row |= {"topic": each.topic, "producers": each.producer_group, "checks": each.checks}
    return rows
