"""Rates from counters."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from sprocket.broker.operate.rates import Rates


def test_each_span_has_its_own_rate() -> None:
    rates = Rates(0)
    for second in range(5, 700, 5):
        count = second if second <= 600 else 600 + (second - 600) * 10
        rates.sample(second * 1000, count)
    ten, sixty, six_hundred = rates.per_second(695_000, 600 + 95 * 10)
    assert ten == sixty == 10
    assert 2 < six_hundred < 3


def test_at_the_start_there_is_no_rate() -> None:
    assert Rates(5).per_second(5, 0) == [0, 0, 0]


@given(some.lists(some.tuples(some.integers(1, 60_000), some.integers(0, 1000)), max_size=50))
def test_a_rate_is_never_below_zero_nor_above_the_highest(steps: list[tuple[int, int]]) -> None:
    rates = Rates(0)
    now_ms, count, highest = 0, 0, 0.0
    for pause_ms, more in steps:
        now_ms, count = now_ms + pause_ms, count + more
        highest = max(highest, 1000 * more / pause_ms)
        rates.sample(now_ms, count)
        assert all(0 <= rate <= highest + 1e-9 for rate in rates.per_second(now_ms, count))
