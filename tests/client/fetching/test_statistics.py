from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.client.fetching.statistics import Counters, WindowStatistics
from sprocket.message.queue import QueueId


def test_rates_are_of_the_time_since_it_began_when_that_is_short() -> None:
    counters = Counters("readers")
    for second in range(1, 21):
        counters.called("news", 100.0 + second, count=2, seconds=0.004, failed=2 * (second > 15))
    told = counters.snapshot(121.0).topics["news"]
    assert (told.consumed, told.failed) == (30, 10)
    assert told.consumed_per_second == 30 / 20
    assert told.failed_per_second == 10 / 20
    assert round(told.listener_ms, 6) == 4.0


def test_what_is_older_than_a_minute_counts_in_totals_only() -> None:
    counters = Counters("readers")
    counters.pulled("news", 5.0, count=32, seconds=1.5)
    told = counters.snapshot(6.0).topics["news"]
    assert (told.pulled, told.pulled_per_second, told.pull_ms) == (32, 32.0, 1500.0)
    told = counters.snapshot(100.0).topics["news"]
    assert (told.pulled, told.pulled_per_second, told.pull_ms) == (32, 0.0, 0.0)


def test_nothing_happened_reads_as_zeros() -> None:
    windows = [
        WindowStatistics(QueueId("news", "broker-a", 0), 7, 11, 3, 1, 10, 3, None),
        WindowStatistics(QueueId("news", "broker-a", 1), 4, 5, 1, 0, 5, 0, "bytes"),
    ]
    told = Counters("readers").snapshot(1.0, windows)
    assert told.queues == 2
    assert told.windows == tuple(windows)
    news = told.topics["news"]
    assert (news.waiting, news.in_flight, news.waiting_bytes) == (4, 1, 15)
    assert (news.consumed, news.consumed_per_second, news.listener_ms) == (0, 0.0, 0.0)


@given(st.lists(st.tuples(st.floats(0, 40), st.integers(1, 50)), max_size=60))
def test_totals_are_exact_and_rates_never_above_them(steps: list[tuple[float, int]]) -> None:
    counters, now, total = Counters("readers"), 0.0, 0
    for pause, count in steps:
        now += pause
        total += count
        counters.called("news", now, count=count, seconds=0.1)
    told = counters.snapshot(now).topics.get("news")
    assert (0 if told is None else told.consumed) == total
    assert told is None or 0 < told.consumed_per_second <= total
