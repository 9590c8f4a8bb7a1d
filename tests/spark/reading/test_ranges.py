from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.queue import QueueId
from sprocket.spark.reading.ranges import Range, between, cut, limit, records_in, share_count


def queue(number: int, topic: str = "orders", broker: str = "broker-a") -> QueueId:
    return QueueId(topic, broker, number)


offsets = st.dictionaries(
    st.builds(queue, st.integers(0, 9), st.sampled_from(["orders", "returns"])),
    st.tuples(st.integers(0, 10_000), st.integers(0, 10_000)),
    max_size=12,
)


def ranges_of(pairs: dict[QueueId, tuple[int, int]]) -> list[Range]:
    return between(
        {one: start for one, (start, _) in pairs.items()},
        {one: end for one, (_, end) in pairs.items()},
    )


@given(offsets, st.integers(1, 40))
def test_shares_cover_every_offset_once(pairs: dict[QueueId, tuple[int, int]], count: int) -> None:
    ranges = ranges_of(pairs)
    read: dict[QueueId, list[tuple[int, int]]] = {}
    for share in cut(ranges, count):
        for one in share:
            assert one.records > 0
            read.setdefault(one.queue, []).append((one.start, one.end))
    for one in ranges:
        pieces = sorted(read.pop(one.queue))
        assert (pieces[0][0], pieces[-1][1]) == (one.start, one.end)
        assert all(a[1] == b[0] for a, b in pairwise(pieces))
    assert not read


@given(offsets, st.integers(1, 40))
def test_shares_are_equal_within_one_record(
    pairs: dict[QueueId, tuple[int, int]], count: int
) -> None:
    ranges = ranges_of(pairs)
    count = min(count, records_in(ranges))
    sizes = [records_in(share) for share in cut(ranges, count)]
    assert len(sizes) == count
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_a_huge_queue_is_split_and_small_ones_go_together() -> None:
    ranges = [Range(queue(0), 0, 1000), *(Range(queue(n), 5, 10) for n in range(1, 9))]
    shares = cut(ranges, 4)
    assert [share[0] for share in shares[:3]] == [
        Range(queue(0), 0, 260),
        Range(queue(0), 260, 520),
        Range(queue(0), 520, 780),
    ]
    assert len(shares[3]) == 9


def test_nothing_to_read_makes_no_share() -> None:
    assert cut([], 4) == []
    assert between({queue(0): 7}, {queue(0): 7}) == []
    assert between({queue(0): 9}, {queue(0): 7}) == []


def test_few_records_are_one_share_and_many_are_enough_to_stay_short() -> None:
    def count(records: int, at_least: int = 0, records_max: int = 0, cores: int = 4) -> int:
        return share_count(records, at_least=at_least, records_max=records_max, cores=cores)

    assert count(0) == 0
    assert count(5_000) == 1
    assert count(50_000) == 3
    assert count(200_000) == 4
    assert count(10_000_000) == 40
    assert count(50_000, at_least=1) == 1
    assert count(10_000_000, at_least=7) == 7
    assert count(3, at_least=7) == 3
    assert count(100, records_max=30) == 4
    assert count(100, at_least=9, records_max=30) == 9


@given(offsets, st.integers(1, 20_000))
def test_a_limit_is_kept_and_every_queue_that_can_advances(
    pairs: dict[QueueId, tuple[int, int]], records: int
) -> None:
    start = {one: min(pair) for one, pair in pairs.items()}
    end = {one: max(pair) for one, pair in pairs.items()}
    limited = limit(start, end, records)
    taken = between(start, limited)
    waiting = between(start, end)
    assert set(limited) == set(end)
    assert records_in(taken) == min(records, records_in(waiting))
    assert all(start[one] <= limited[one] <= end[one] for one in end)
    if len(waiting) <= records:
        assert len(taken) == len(waiting)


def test_many_queues_take_turns_under_a_small_limit() -> None:
    at = {queue(number): number for number in range(9)}
    read: set[QueueId] = set()
    for _ in range(60):
        end = {one: offset + 100 for one, offset in at.items()}  # as much comes as is read
        at, before = limit(at, end, 2), at
        assert records_in(between(before, at)) == 2
        read.update(one.queue for one in between(before, at))
    assert len(read) == 9
