"""Counters of what goes through, as a core."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from sprocket.broker.tables.volumes import DAY, HOUR, MINUTE, SPANS, Flow, Volumes, VolumeSnapshot

START = 1_000_000


def test_what_went_through_counts_at_once_in_every_span() -> None:
    volumes = Volumes(START)
    volumes.put("T", 100)
    volumes.put("T", 300, count=3)
    volumes.got("g", "T", count=2, size=50)
    flow = volumes.of_topic("T")
    assert flow is not None
    for span in SPANS:
        assert flow.in_last(span, START)[:3] == (4, 400, 2)
    got = volumes.of_group("g", "T")
    assert got is not None
    assert got.in_last(MINUTE, START + 5_000) == VolumeSnapshot(2, 50, 1, 10_000)
    assert volumes.of_topic("U") is None


def test_the_minute_forgets_what_the_hour_and_the_day_remember() -> None:
    volumes = Volumes(START)
    now_ms = START
    flow = None
    for _ in range(6 * 10):  # ten minutes, one message every ten seconds
        volumes.put("T", 1)
        now_ms += 10_000
        volumes.sample(now_ms)
    flow = volumes.of_topic("T")
    assert flow is not None
    assert flow.in_last(MINUTE, now_ms).messages == 6
    assert round(flow.in_last(MINUTE, now_ms).per_second, 2) == 0.1
    assert flow.in_last(HOUR, now_ms).messages == 60
    for _ in range(6 * 10):
        now_ms += 10_000
        volumes.sample(now_ms)
    assert flow.in_last(MINUTE, now_ms).messages == 0
    assert (flow.in_last(HOUR, now_ms).messages, flow.in_last(DAY, now_ms).messages) == (60, 60)


def test_what_rests_for_more_than_a_day_is_dropped() -> None:
    volumes = Volumes(START)
    volumes.put("T", 1)
    volumes.sample(START + HOUR.length_ms)
    volumes.sample(START + DAY.length_ms)
    assert volumes.of_topic("T") is not None
    volumes.sample(START + 2 * HOUR.length_ms + DAY.length_ms + 1)
    assert volumes.of_topic("T") is None


def test_no_more_than_so_many_are_counted() -> None:
    volumes = Volumes(START, flows_max=1)
    volumes.put("T", 1)
    volumes.put("U", 1)
    assert volumes.of_topic("U") is None
    assert volumes.put_over(MINUTE, START).messages == 1


def test_topics_and_groups_are_forgotten() -> None:
    volumes = Volumes(START)
    volumes.put("T", 1)
    volumes.got("g", "T", count=1, size=1)
    volumes.got("h", "U", count=1, size=1)
    volumes.returned("h", "U")
    volumes.forget_topic("T")
    assert volumes.of_topic("T") is None
    assert volumes.of_group("g", "T") is None
    volumes.forget_group("h")
    assert volumes.of_group("h", "U") is None
    assert volumes.returns_of("h", "U") is None
    assert volumes.got_over(DAY, START).messages == 0


@given(some.lists(some.tuples(some.integers(1, 400_000), some.booleans()), max_size=60))
def test_a_span_counts_what_came_within_it_up_to_its_fineness(
    steps: list[tuple[int, bool]],
) -> None:
    flow, now_ms, came = Flow(START), START, []
    for wait_ms, is_sampled in steps:
        flow.messages += 1
        flow.calls += 1
        came.append(now_ms)
        for _ in range(max(1, wait_ms // MINUTE.every_ms)):  # sampled all the time
            now_ms += min(wait_ms, MINUTE.every_ms)
            flow.sample(now_ms)
        now_ms += 5_000 * is_sampled
    for span in SPANS:
        surely = sum(ms > now_ms - span.length_ms for ms in came)
        at_most = sum(ms >= now_ms - span.length_ms - 2 * span.every_ms - 5_000 for ms in came)
        assert surely <= flow.in_last(span, now_ms).messages <= at_most
