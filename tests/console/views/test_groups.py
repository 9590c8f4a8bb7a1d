"""Groups as rows, and the plot of their lag."""

from __future__ import annotations

from typing import Any

from sprocket.console.operations.groups import GroupDescribed, GroupListed, QueueProgressFacts
from sprocket.console.views import groups


def queue(number: int, lag: int, topic: str = "orders") -> QueueProgressFacts:
    return QueueProgressFacts(
        topic=topic, broker="a", queue=number, committed=10, end=10 + lag, lag=lag
    )


def test_a_group_without_members_and_with_lag_is_marked() -> None:
    row = groups.group_row(GroupListed(group="g", members=0, lag=1_234))
    assert (row["lag_text"], row["members_look"]) == ("1\u202f234", "warn")
    assert groups.group_row(GroupListed(group="g"))["lag_text"] == "–"


def test_the_queue_that_is_most_behind_comes_first() -> None:
    rows = groups.progress_rows([queue(0, 1), queue(1, 5)], 0)
    assert [row["queue"] for row in rows] == ["a:1", "a:0"]
    assert groups.topics_of([queue(0, 1), queue(0, 1, "%RETRY%g")]) == ["orders"]


def test_what_members_want_is_in_words() -> None:
    facts = groups.group_facts(
        GroupDescribed(
            group="g", settings={}, is_online=True, consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING", consume_from="CONSUME_\u202e",
            subscriptions={"t": "a || b"},
        )
    )  # fmt: skip
    assert (facts["Consumes by"], facts["Messages are"]) == ("push", "shared")
    assert (facts["Begins at"], facts["Subscriptions"]) == ("CONSUME_\\u{202e}", "t: a || b")
    offline = groups.group_facts(GroupDescribed(group="g", settings={}, is_online=False))
    assert offline == {"Members": "none is online"}


def test_settings_are_told_in_words() -> None:
    (row,) = groups.setting_rows(
        {"a": {"retry_max_times": 16, "retry_queue_nums": 1, "consume_enable": False}}
    )
    assert (row["retries"], row["consume"], row["consume_look"]) == (16, "no", "bad")


def test_of_many_queues_the_plot_shows_the_worst_and_the_rest_together() -> None:
    lines: dict[str, Any] = {
        f"q{number:02}": [(1, float(number)), (2, None)] for number in range(20)
    }
    shown = groups.lag_lines(lines)
    assert list(shown)[:2] == ["q19", "q18"]
    assert shown["13 others"] == [(1, float(sum(range(13)))), (2, 0)]
    assert groups.lag_lines({"q": [(1, 2.0)]}) == {"q": [(1, 2.0)]}
