"""Whether groups are past a message."""

from __future__ import annotations

from sprocket.console.operations.groups import GroupLag, QueueProgressFacts
from sprocket.console.operations.values import Page
from sprocket.console.views.consumed import consumed_rows
from tests.console.views.test_messages import MESSAGE


def lag(committed: int, queue: int = 3) -> GroupLag:
    progress = QueueProgressFacts(
        topic="orders", broker="a", queue=queue, committed=committed, end=13_000,
        lag=13_000 - committed,
    )  # fmt: skip
    return GroupLag(group="g", lag=0, per_second=0, queues=Page(items=[progress]))


def test_a_group_is_past_a_message_once_it_has_committed_the_next() -> None:
    rows = consumed_rows(
        MESSAGE,
        [("past", lag(12_346)), ("at", lag(12_345)), ("elsewhere", lag(1, queue=2)),
         ("broken", OSError("gone"))],
    )  # fmt: skip
    assert [row["state"] for row in rows] == [
        "consumed, or left out", "not yet", "has no offset in this queue", "not known: gone",
    ]  # fmt: skip
    assert rows[0]["group_link"] == "/group?name=past"
    assert rows[1]["behind"] == 655
