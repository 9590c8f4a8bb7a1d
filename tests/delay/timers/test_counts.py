"""How many messages wait, by topic, in Java's file."""

from __future__ import annotations

import pytest

from sprocket.delay.timers.counts import Counts


def test_counts_are_kept_by_topic_and_come_back_from_their_file() -> None:
    counts = Counts()
    for topic, count in (("A", 2), ("B", 1), ("C", 3), ("B", -1), ("C", -1)):
        counts.add(counts.name(topic), count, 1000)
    assert counts.by_topic() == {"A": 2, "C": 2}
    assert counts.total == 4
    state = counts.to_json()
    assert state["timingCount"]["A"] == {"count": 2, "timeStamp": 1000}
    assert "B" not in state["timingCount"]
    again = Counts()
    again.load(state)
    assert again.by_topic() == {"A": 2, "C": 2}


def test_names_outlive_a_new_count() -> None:
    counts = Counts()
    hashed = counts.name("A")
    counts.add(hashed, 5, 0)
    counts.clear()
    assert counts.by_topic() == {}
    counts.add(hashed, 1, 0)
    assert counts.by_topic() == {"A": 1}


@pytest.mark.parametrize("state", [{"timingCount": 5}, {"timingCount": {"A": {"count": "x"}}}])
def test_a_file_of_another_form_is_refused(state: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Counts().load(state)
