"""The limit of bytes a second."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.replication.flow import FlowLimit


def test_without_a_limit_nothing_waits() -> None:
    assert FlowLimit(0).pause(1 << 30, 0.0) == 0.0


def test_an_idle_stream_collects_no_credit() -> None:
    limit = FlowLimit(1000)
    assert limit.pause(500, 0.0) == 0.5
    assert limit.pause(500, 100.0) == 0.5


@given(st.integers(1, 1 << 20), st.integers(0, 1 << 24))
def test_what_is_sent_at_once_is_followed_by_a_short_pause(size: int, rate: int) -> None:
    limit = FlowLimit(rate)
    at_once = limit.at_once(size)
    assert 1 <= at_once <= size
    assert limit.pause(at_once, 0.0) <= 1.0
    assert rate or at_once == size


@given(st.lists(st.integers(1, 10_000), min_size=1), st.integers(1, 100_000))
def test_the_rate_is_never_exceeded(sizes: list[int], rate: int) -> None:
    limit, now = FlowLimit(rate), 0.0
    for size in sizes:
        now += limit.pause(size, now)
    assert sum(sizes) <= rate * now * 1.000001
