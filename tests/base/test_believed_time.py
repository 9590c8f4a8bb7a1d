"""A jump ahead is believed only after it has lasted; one back at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from sprocket.base.believed_time import PATIENCE_MS, TOLERANCE_MS, BelievedTime

START_MS = 1_000_000_000_000
DAY_MS = 86_400_000


def test_a_clock_that_goes_evenly_or_is_corrected_a_little_is_believed() -> None:
    time = BelievedTime(START_MS, 0)
    assert time.at(START_MS + 10_000, 10_000) == START_MS + 10_000
    ahead_ms = START_MS + 20_000 + TOLERANCE_MS
    assert time.at(ahead_ms, 20_000) == ahead_ms


def test_a_jump_ahead_is_believed_when_it_has_lasted() -> None:
    time = BelievedTime(START_MS, 0)
    assert time.at(START_MS + DAY_MS, 0) == START_MS
    almost = PATIENCE_MS - 1
    assert time.at(START_MS + DAY_MS + almost, almost) == START_MS + almost
    assert time.at(START_MS + DAY_MS + PATIENCE_MS, PATIENCE_MS) == START_MS + DAY_MS + PATIENCE_MS


def test_a_jump_that_is_taken_back_counts_for_nothing() -> None:
    time = BelievedTime(START_MS, 0)
    time.at(START_MS + DAY_MS, 0)
    assert time.at(START_MS + 1_000, 1_000) == START_MS + 1_000
    later = PATIENCE_MS + 1_000
    assert time.at(START_MS + DAY_MS + later, later) == START_MS + later, "it begins anew"


def test_a_clock_that_is_set_back_is_believed_at_once() -> None:
    time = BelievedTime(START_MS, 0)
    assert time.at(START_MS - DAY_MS, 1_000) == START_MS - DAY_MS


looks = some.lists(
    some.tuples(some.integers(0, 120_000), some.integers(-DAY_MS, DAY_MS)), max_size=20
)


@given(looks)
def test_it_is_never_later_than_the_wall_clock_nor_than_the_right_time(
    history: list[tuple[int, int]],
) -> None:
    time, steady_ms = BelievedTime(START_MS, 0), 0
    for pause_ms, error_ms in history:  # 40 minutes in all: no error lasts long enough
        steady_ms += pause_ms
        wall_ms = START_MS + steady_ms + error_ms
        believed_ms = time.at(wall_ms, steady_ms)
        assert believed_ms <= wall_ms
        assert believed_ms <= START_MS + steady_ms + len(history) * TOLERANCE_MS
