"""Token buckets: never more than rate and burst, and a fair share for each taker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.quotas.buckets import TAKERS_MAX, SharedBucket, TokenBucket

RATES = st.floats(0.1, 1e6)
STEPS = st.lists(
    st.tuples(st.floats(0.0, 5.0), st.integers(1, 200), st.integers(0, 3)), max_size=200
)


@given(st.sampled_from([TokenBucket, SharedBucket]), RATES, st.floats(1.0, 1e6), STEPS)
def test_never_more_passes_than_rate_and_burst_allow(
    kind: type[TokenBucket], rate: float, burst: float, steps: list[tuple[float, int, int]]
) -> None:
    now, bucket = 100.0, kind(rate, burst, 100.0)
    passed: list[tuple[float, float]] = []
    for pause, cost, taker in steps:
        now += pause
        if bucket.has(cost, now, taker):
            bucket.spend(cost, now, taker)
            passed.append((now, cost))
    # Over any stretch: what is larger than a burst may add what it is larger by, once.
    over = max([0.0, *(cost - burst for _, cost in passed)])
    for first, (begin, _) in enumerate(passed):
        total = 0.0
        for end, cost in passed[first:]:
            total += cost
            assert total <= rate * (end - begin) + burst + over + 1e-6 * (1 + total)


@given(RATES, st.floats(1.0, 1e6), st.floats(1.0, 1e7), st.floats(0.0, 1e6))
def test_what_waits_as_long_as_it_is_told_passes(
    rate: float, burst: float, spent: float, cost: float
) -> None:
    bucket = TokenBucket(rate, burst, 0.0)
    bucket.spend(spent, 0.0)
    wait = bucket.wait_seconds(cost, 0.0)
    if wait > 1e-3:
        assert not bucket.has(cost, wait * 0.99)
    assert bucket.has(cost, wait * (1 + 1e-6) + 1e-6)


def test_a_clock_that_stands_still_or_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(10, 10, 5.0)
    bucket.spend(10, 5.0)
    assert not bucket.has(1, 5.0)
    assert not bucket.has(1, 4.0)
    assert bucket.level(5.1) == pytest.approx(1.0)


def test_tokens_that_are_given_back_never_exceed_a_burst() -> None:
    bucket = TokenBucket(1, 5, 0.0)
    bucket.spend(-100, 0.0)
    assert bucket.level(0.0) == 5
    assert bucket.is_full(0.0)


def passed(bucket: TokenBucket, takers: dict[str, float], seconds: float) -> dict[str, list[bool]]:
    """Lets takers ask for one token each so many times a second; what each was told."""
    due = dict.fromkeys(takers, 0.0)
    told: dict[str, list[bool]] = {name: [] for name in takers}
    while (now := min(due.values())) < seconds:
        name = min(due, key=lambda each: due[each])
        due[name] += 1 / takers[name]
        if may := bucket.has(1, now, name):
            bucket.spend(1, now, name)
        told[name].append(may)
    return told


@pytest.mark.parametrize("modest", [0.2, 3.0, 30.0])
def test_one_that_takes_all_it_gets_does_not_keep_a_modest_one_from_its_share(
    modest: float,
) -> None:
    told = passed(SharedBucket(100, 100, 0.0), {"flood": 1_000.0, "modest": modest}, 60.0)
    assert sum(told["modest"]) >= len(told["modest"]) - 1  # it may be the first it hears of it
    assert sum(map(sum, told.values())) >= 100 * 60 * 0.95  # and nothing is left unused
    alone = passed(TokenBucket(100, 100, 0.0), {"flood": 1_000.0, "modest": modest}, 60.0)
    assert sum(alone["modest"]) < len(alone["modest"]) * 0.6


def test_three_that_take_all_they_get_get_about_the_same() -> None:
    told = passed(SharedBucket(90, 90, 0.0), {"a": 900.0, "b": 700.0, "c": 2_000.0}, 60.0)
    counts = [sum(each) for each in told.values()]
    assert max(counts) < 1.3 * min(counts)
    assert sum(counts) <= 90 * 61


def test_takers_without_number_take_bounded_memory() -> None:
    bucket = SharedBucket(10, 10, 0.0)
    bucket.spend(10, 0.0, "x")
    for number in range(10 * TAKERS_MAX):
        bucket.has(1, number / 1e6, f"taker {number}")
    kept = [value for name in bucket.__slots__ if isinstance(value := getattr(bucket, name), dict)]
    assert sum(map(len, kept)) <= 2 * (TAKERS_MAX + 1)
