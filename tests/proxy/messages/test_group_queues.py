"""Queues of message groups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sprocket.proxy.messages.group_queues import consistent_hash, queue_of_group


def test_the_choice_is_guavas() -> None:
    # Source: HashingTest.testConsistentHash_linearCongruentialGeneratorCompatibility of Guava.
    golden = [0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83]
    assert [consistent_hash(number, 100) for number in range(20)] == golden
    assert consistent_hash(10863919174838991, 11) == 6
    assert consistent_hash(2016238256797177309, 11) == 3
    assert consistent_hash(1673758223894951030, 11) == 5
    assert consistent_hash(2, 100001) == 80343
    assert consistent_hash(2201, 100001) == 22152
    assert consistent_hash(2202, 100001) == 15018


@given(st.text(max_size=30), st.integers(1, 1000))
def test_one_more_queue_moves_a_group_only_into_it(group: str, queues: int) -> None:
    before, after = queue_of_group(group, queues), queue_of_group(group, queues + 1)
    assert 0 <= before < queues
    assert after in (before, queues)
