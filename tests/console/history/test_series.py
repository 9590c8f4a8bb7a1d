"""Values over time: bounded, with gaps, and right when the clock is set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.console.history.series import TIERS, ValueSeries, with_gaps

HOUR = 3_600_000


def test_values_of_one_step_become_their_mean() -> None:
    series = ValueSeries()
    for at, value in ((0, 1.0), (9_999, 3.0), (10_000, 8.0)):
        series.add(at, value)
    assert series.points(0, HOUR) == [(0, 2.0), (10_000, 8.0)]


def test_what_is_missing_is_a_gap() -> None:
    assert with_gaps([(0, 1.0), (30_000, 2.0), (70_000, 3.0)], 10_000) == [
        (0, 1.0), (30_000, 2.0), (40_000, None), (70_000, 3.0),
    ]  # fmt: skip


def test_a_longer_time_has_coarser_steps() -> None:
    series = ValueSeries()
    for at in range(0, 3 * HOUR, 10_000):
        series.add(at, float(at))
    now = 3 * HOUR
    assert len(series.points(now - HOUR, now)) == 360
    assert len(series.points(0, now)) == 180
    assert series.points(0, now)[1] == (60_000, 85_000.0)
    assert series.newest_ms == now - 10_000


@given(st.lists(st.integers(0, 2**41), max_size=200))
def test_memory_is_bounded_and_times_rise_whatever_the_clock_does(times: list[int]) -> None:
    series = ValueSeries()
    for at in times:
        series.add(at, 1.0)
    for span in (HOUR, 24 * HOUR, 400 * 24 * HOUR):
        newest = max(times, default=0)
        found = [at for at, value in series.points(newest - span, newest) if value is not None]
        assert found == sorted(set(found))
        assert len(found) <= max(count for _, count in TIERS)
    if times:
        assert series.newest_ms == times[-1] // 10_000 * 10_000
