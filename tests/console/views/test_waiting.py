"""What waits, as rows."""

from __future__ import annotations

from datetime import UTC, datetime

from sprocket.console.operations.waiting import DelayedAt, PendingFacts
from sprocket.console.views import waiting
from tests.console.views.test_messages import MESSAGE

TOLD = DelayedAt(
    broker="a", total=1_500, topics={"t": 1_000, "u": 500}, due={"60": 1_200, "3600": 0},
    later=300, next_at=datetime.fromtimestamp(1_010, UTC),
)  # fmt: skip
SHY = DelayedAt(broker="b", total=3, topics={"t": 3}, due={}, later=None, next_at=None)


def test_it_says_when_messages_are_due_as_far_as_brokers_tell() -> None:
    told, shy = waiting.delayed_rows([TOLD, SHY], 1_000_000)
    assert (told["next_text"], told["due"]) == ("in 10 s", "1\u202f200 within 1 min, 300 later")
    assert (shy["next_text"], shy["due"]) == ("not told", "")


def test_topics_of_all_brokers_are_added_up() -> None:
    rows = waiting.delayed_topic_rows([TOLD, SHY])
    assert [(row["topic"], row["waiting"]) for row in rows] == [("t", 1_003), ("u", 500)]


def test_an_open_transaction_names_its_topic() -> None:
    pending = PendingFacts(topic="orders", producer_group="shop", checks=2, message=MESSAGE)
    (row,) = waiting.pending_rows([pending], 1_000_000)
    assert (row["topic"], row["producers"], row["checks"]) == ("orders", "shop", 2)
