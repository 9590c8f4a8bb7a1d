"""Shares of queues that the broker gives: Java's examples, and that nobody is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.broker.pop.shares import ALL_QUEUES, STRATEGIES, popped_share, share
from sprocket.message.queue import QueueId


def queues(count: int, broker: str = "b") -> list[QueueId]:
    return [QueueId("t", broker, number) for number in range(count)]


def members(count: int) -> list[str]:
    return [f"m{number:03}" for number in range(count)]


@given(st.sampled_from(STRATEGIES), st.integers(0, 40), st.integers(1, 20))
def test_each_queue_is_pulled_by_one_member(strategy: str, count: int, size: int) -> None:
    shares = [share(strategy, each, queues(count), members(size)) for each in members(size)]
    assert sorted(queue for each in shares for queue in each) == queues(count)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.sampled_from(STRATEGIES), st.integers(1, 40), st.integers(1, 20), st.integers(-1, 30))
def test_each_queue_is_popped_by_somebody(
    strategy: str, count: int, size: int, shared: int
) -> None:
    shares = [
        popped_share(strategy, each, queues(count), members(size), shared) for each in members(size)
    ]
    assert all(shares)
    if shared <= 0 or shared >= size - 1:
        assert shares == [[QueueId("t", "b", ALL_QUEUES)]] * size
    else:
        assert {queue for each in shares for queue in each} == set(queues(count))


def test_examples() -> None:
    both = [*queues(2, "a"), *queues(2, "b")]
    everybody = members(4)
    assert popped_share("AVG", "m001", both, everybody, 0) == [
        QueueId("t", "a", ALL_QUEUES), QueueId("t", "b", ALL_QUEUES),
    ]  # fmt: skip
    assert popped_share("AVG", "m003", both, everybody, 1) == [both[3], both[0]]
    assert popped_share("AVG_BY_CIRCLE", "m001", both, members(3), 1)[0] == both[1]
    assert popped_share("AVG", "m006", both, members(9), 2) == [both[2]]
