"""Topics, their queues and their volume as rows of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sprocket.console.operations.topics import QueueSpan, TopicDescribed, TopicVolumes
from sprocket.console.views.units import NOTHING, ago_text, count_text, rate_text

_PERMISSIONS = {"r": "read", "w": "write", "rw": "read, write"}


def queue_rows(queues: Iterable[QueueSpan], now_ms: int) -> list[dict[str, Any]]:
    """A row for each queue."""
    return [
        {
            "id": f"{each.broker}:{each.queue}",
            "broker": each.broker,
            "queue": each.queue,
            "first": each.min_offset,
            "first_text": count_text(each.min_offset),
            "next": each.max_offset,
            "next_text": count_text(each.max_offset),
            "messages": each.max_offset - each.min_offset,
            "messages_text": count_text(each.max_offset - each.min_offset),
            "last": each.updated_at.timestamp() if each.updated_at else 0,
            "last_text": ago_text(each.updated_at, now_ms),
        }
        for each in queues
    ]


def setting_rows(topic: TopicDescribed) -> list[dict[str, Any]]:
    """A row for each broker that has the topic."""
    return [
        {
            "id": each.broker,
            "broker": each.broker,
            "read": each.read_queues,
            "write": each.write_queues,
            "permission": _PERMISSIONS.get(each.permission, each.permission),
            "attributes": ", ".join(
                f"{name.removeprefix('+')}={value}" for name, value in each.attributes.items()
            ) or NOTHING,
        }
        for each in topic.brokers
    ]  # fmt: skip


def volume_rows(topic: TopicVolumes) -> list[dict[str, Any]]:
    """A row for what was sent, and one for each group."""
    return [
        {
            "id": each.group or "",
            "who": each.group or "sent to the topic",
            **({"who_link": ""} if each.group is None else {}),
            "rate": each.per_second,
            "rate_text": rate_text(each.per_second),
            **{
                name: value
                for span in ("minute", "hour", "day")
                for name, value in (
                    (span, getattr(each, span)),
                    (f"{span}_text", count_text(getattr(each, span))),
                )
            },
        }
        for each in topic.volumes
    ]
