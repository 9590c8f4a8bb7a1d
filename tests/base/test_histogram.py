"""A histogram counts each value once, below the first bound that it does not exceed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.base.histogram import Histogram

BOUNDS = st.lists(st.integers(0, 20), min_size=1, max_size=5, unique=True).map(sorted)
VALUES = st.lists(st.tuples(st.integers(0, 25), st.integers(0, 3)))


def filled(bounds: list[int], values: list[tuple[int, int]]) -> Histogram:
    made = Histogram(bounds)
    for value, count in values:
        made.observe(value, count)
    return made


@given(BOUNDS, VALUES)
def test_every_value_is_in_its_place(bounds: list[int], values: list[tuple[int, int]]) -> None:
    made = filled(bounds, values)
    every = [value for value, count in values for _ in range(count)]
    below = [sum(value <= bound for value in every) for bound in bounds]
    assert [sum(made.counts[: place + 1]) for place in range(len(bounds))] == below
    assert (made.count, made.total) == (len(every), sum(every))


@given(BOUNDS, VALUES, VALUES)
def test_what_came_since_a_copy_is_what_came_after_it(
    bounds: list[int], first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    made = filled(bounds, first)
    before = made.copy()
    for value, count in second:
        made.observe(value, count)
    since, alone = made.since(before), filled(bounds, second)
    assert (since.counts, since.total) == (alone.counts, alone.total)
    assert before.counts == filled(bounds, first).counts
