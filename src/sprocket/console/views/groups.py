"""Groups, their members and their lag as rows of tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sprocket.console.operations.groups import (
    GroupDescribed,
    GroupListed,
    MemberFacts,
    QueueProgressFacts,
)
from sprocket.console.views.bodies import visible
from sprocket.console.views.units import NOTHING, ago_text, count_text

#: Lines of a plot: more are not told apart. The rest becomes one.
_LINES_MAX = 8
#: What a consumer calls its kind and its way, in words. Source: ConsumeType, MessageModel.
_WORDS = {
    "CONSUME_PASSIVELY": "push", "CONSUME_ACTIVELY": "pull", "CONSUME_POP": "pop",
    "CLUSTERING": "shared", "BROADCASTING": "broadcast",
    "CONSUME_FROM_LAST_OFFSET": "the end", "CONSUME_FROM_FIRST_OFFSET": "the first message",
    "CONSUME_FROM_TIMESTAMP": "a time",
}  # fmt: skip


def word_of(name: str | None) -> str:
    """A word for one of RocketMQ's constants; another one as it is."""
    return NOTHING if not name else _WORDS.get(name, visible(name))


def group_row(group: GroupListed) -> dict[str, Any]:
    """The row of a group of the list."""
    members, lag = group.members, group.lag
    return {
        "group": group.group,
        "members": -1 if members is None else members,
        "members_text": count_text(members),
        "members_look": "warn" if members == 0 and lag else "",
        "lag": -1 if lag is None else lag,
        "lag_text": count_text(lag),
    }


def progress_rows(queues: Iterable[QueueProgressFacts], now_ms: int) -> list[dict[str, Any]]:
    """A row for each queue of a group, the one that is most behind first."""
    return [
        {
            "id": f"{each.topic} {each.broker}:{each.queue}",
            "topic": each.topic,
            "queue": f"{each.broker}:{each.queue}",
            "committed": each.committed,
            "committed_text": count_text(each.committed),
            "end": each.end,
            "end_text": count_text(each.end),
            "lag": each.lag,
            "lag_text": count_text(each.lag),
            "consumed": each.consumed_at.timestamp() if each.consumed_at else 0,
            "consumed_text": ago_text(each.consumed_at, now_ms),
        }
        for each in sorted(queues, key=lambda each: -each.lag)
    ]


def topics_of(queues: Iterable[QueueProgressFacts]) -> list[str]:
    """The topics of a group's queues, without the group's own retry topic."""
    return sorted({each.topic for each in queues if not each.topic.startswith("%")})


def member_rows(members: Iterable[MemberFacts]) -> list[dict[str, Any]]:
    """A row for each member."""
    return [
        {
            "id": visible(each.client_id),
            "address": visible(each.address),
            "language": visible(each.language),
            "brokers": ", ".join(each.brokers),
        }
        for each in members
    ]


def group_facts(group: GroupDescribed) -> dict[str, str]:
    """What is known of a group's members together."""
    if not group.is_online:
        return {"Members": "none is online"}
    return {
        "Members": count_text(len(group.members)),
        "Consumes by": word_of(group.consume_type),
        "Messages are": word_of(group.message_model),
        "Begins at": word_of(group.consume_from),
        "Subscriptions": "\n".join(
            visible(f"{topic}: {expression}")
            for topic, expression in sorted(group.subscriptions.items())
        ),
    }


def setting_rows(settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each broker that has the group's settings."""
    return [
        {
            "id": broker,
            "broker": broker,
            "retries": each.get("retry_max_times"),
            "retry_queues": each.get("retry_queue_nums"),
            "ordered": _yes(each.get("consume_message_orderly")),
            "consume": _yes(each.get("consume_enable")),
            "consume_look": "" if each.get("consume_enable") else "bad",
            "broadcast": _yes(each.get("consume_broadcast_enable")),
        }
        for broker, each in settings.items()
    ]


def _yes(value: Any) -> str:
    return "yes" if value else "no"


def lag_lines(
    lines: Mapping[str, list[tuple[int, float | None]]],
) -> dict[str, list[tuple[int, float | None]]]:
    """The lines of a plot of the lag by queue: those that are most behind, the others as one."""
    if len(lines) <= _LINES_MAX:
        return dict(lines)
    worst = sorted(lines, key=lambda name: -_last(lines[name]))[: _LINES_MAX - 1]
    rest: dict[int, float] = {}
    for name, points in lines.items():
        if name not in worst:
            for at, value in points:
                rest[at] = rest.get(at, 0) + (value or 0)
    shown = {name: lines[name] for name in worst}
    return shown | {f"{len(lines) - len(worst)} others": sorted(rest.items())}


def _last(points: list[tuple[int, float | None]]) -> float:
    return next((value for _, value in reversed(points) if value is not None), 0)
