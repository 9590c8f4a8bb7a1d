"""Pauses between the starts of a process."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.container.restarts import Restarts


def test_pauses_grow_to_a_bound_while_the_process_does_not_stay() -> None:
    restarts = Restarts(first=0.5, longest=4.0, steady=60.0)
    found = []
    for now in range(6):
        restarts.started(float(now))
        found.append(restarts.ended(now + 0.5))
    assert found == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


def test_a_process_that_ran_long_begins_with_the_first_pause_again() -> None:
    restarts = Restarts(first=0.5, longest=4.0, steady=60.0)
    assert [restarts.ended(0.0), restarts.ended(1.0), restarts.ended(2.0)] == [0.5, 1.0, 2.0]
    restarts.started(10.0)
    assert restarts.ended(70.0) == 0.5
    assert restarts.ended(100.0) == 1.0, "one that could not start did not run"


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 200)), max_size=60))
def test_no_pause_is_outside_of_its_bounds(lives: list[tuple[bool, float]]) -> None:
    restarts = Restarts(first=0.5, longest=30.0, steady=60.0)
    now, before = 0.0, 0.5
    for starts, seconds in lives:
        if starts:
            restarts.started(now)
            now += seconds
        pause = restarts.ended(now)
        assert 0.5 <= pause <= 30.0
        assert pause >= before or (starts and seconds >= 59.9)
        before = pause
        now += pause
