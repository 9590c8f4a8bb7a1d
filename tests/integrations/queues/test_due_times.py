from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.integrations.queues.due_times import DUE, PRIORITY, hop_of, priority_of, wait_of


def test_a_task_that_is_due_soon_waits_in_one_message_and_a_late_one_in_hops() -> None:
    assert wait_of(None, 100, 1_000) == (None, None)
    assert wait_of(100, 100, 1_000) == (None, None)
    assert wait_of(1_100, 100, 1_000) == (1_100, None)
    assert wait_of(1_101, 100, 1_000) == (1_100, 1_101)


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(1_000, 10**6))
def test_the_hops_end_at_the_time_when_the_task_is_due(due: int, now: int, longest: int) -> None:
    began, hops = now, 0
    later: int | None = due
    while later is not None:
        wait = wait_of(later, now, longest)
        if wait.deliver_at is not None:
            assert now < wait.deliver_at <= now + longest
            now = wait.deliver_at
        later = hop_of({} if wait.due is None else {DUE: str(wait.due)}, now)
        hops += 1
    assert now <= max(due, began)
    assert now >= due - 1_000
    assert hops <= (max(0, due - began)) // longest + 1


def test_a_time_that_is_none_is_passed_over() -> None:
    for text in ("", "x", "-5", "1e9", "²", "9" * 5_000):
        assert hop_of({DUE: text}, 0) is None
        assert priority_of({PRIORITY: text}) == 0
