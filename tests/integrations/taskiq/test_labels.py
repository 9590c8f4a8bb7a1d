from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.errors import UsageError
from sprocket.integrations.taskiq.labels import due_of, priority_of, queue_of


@given(st.floats(0.001, 10**8), st.integers(0, 2**42))
def test_a_task_is_due_when_its_delay_is_over_and_not_before(seconds: float, now_ms: int) -> None:
    due = due_of({"delay": seconds}, now_ms)
    assert due is not None
    assert 0 <= due - now_ms - seconds * 1000 < 1.001
    assert due_of({"delay": str(seconds)}, now_ms) == due


@pytest.mark.parametrize("labels", [{}, {"delay": None}, {"delay": 0}, {"delay": "-3"}])
def test_a_task_without_a_delay_is_due_at_once(labels: dict[str, Any]) -> None:
    assert due_of(labels, 5) is None


@pytest.mark.parametrize("wrong", [True, "soon", math.nan, math.inf, 10**400, [1], 1e12])
def test_a_delay_that_is_no_number_of_seconds_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="delay"):
        due_of({"delay": wrong}, 5)


def test_a_task_goes_to_the_queue_of_its_label() -> None:
    assert queue_of({}, "taskiq") == "taskiq"
    assert queue_of({"queue_name": "mail"}, "taskiq") == "mail"
    for wrong in ("", 3, b"mail"):
        with pytest.raises(UsageError, match="queue_name"):
            queue_of({"queue_name": wrong}, "taskiq")


def test_a_priority_is_a_whole_number() -> None:
    found = [priority_of(each) for each in ({}, {"priority": None}, {"priority": 7})]
    assert found == [0, 0, 7]
    assert priority_of({"priority": "7"}) == 7
    for wrong in ("high", True, 1.5, "²", [1], "9" * 5_000):
        with pytest.raises(UsageError, match="priority"):
            priority_of({"priority": wrong})
