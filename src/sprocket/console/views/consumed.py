"""Which groups have consumed a message, as their committed offsets tell. Pure.

A group commits the offset of a queue's next message. So what lies before it is consumed, or was
left out by a filter or a skip, which offsets do not tell apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from sprocket.console.operations.groups import GroupLag
from sprocket.console.operations.message_facts import MessageFacts
from sprocket.console.views.units import NOTHING, count_text


def consumed_rows(
    message: MessageFacts, lags: Iterable[tuple[str, GroupLag | BaseException]]
) -> list[dict[str, Any]]:
    """A row for each group: whether it is past the message."""
    return [_row(message, group, lag) for group, lag in lags]


def _row(message: MessageFacts, group: str, lag: GroupLag | BaseException) -> dict[str, Any]:
    row: dict[str, Any] = {"group": group, "group_link": f"/group?{urlencode({'name': group})}"}
    if isinstance(lag, BaseException):
        return row | {"state": f"not known: {lag}"[:120], "state_look": "warn"}
    place = (message.topic, message.broker, message.queue)
    for queue in lag.queues.items:
        if (queue.topic, queue.broker, queue.queue) == place:
            is_past = queue.committed > message.offset
            return row | {
                "state": "consumed, or left out" if is_past else "not yet",
                "state_look": "good" if is_past else "warn",
                "committed": queue.committed,
                "committed_text": count_text(queue.committed),
                "behind": queue.lag,
                "behind_text": count_text(queue.lag),
            }
    return row | {"state": "has no offset in this queue", "committed_text": NOTHING}
