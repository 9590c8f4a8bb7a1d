from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sprocket.message.queue import QueueId
from sprocket.spark.reading.byte_limit import ByteLimit
from sprocket.spark.reading.ranges import between, records_in

Offsets = dict[QueueId, int]


def queue(number: int) -> QueueId:
    return QueueId("orders", "broker-a", number)


class Sized:
    """Queues whose messages have these sizes; it counts the messages that are pulled."""

    def __init__(self, queues: list[list[int]]) -> None:
        self.queues = {queue(number): sizes for number, sizes in enumerate(queues)}
        self.pulled = 0
        self.limit = ByteLimit(self.sizes)

    def sizes(self, places: list[tuple[QueueId, int]]) -> list[int]:
        self.pulled += len(places)
        return [self.queues[one][offset] for one, offset in places]

    def batches(self, bytes_max: int) -> list[Offsets]:
        """The ends of all micro-batches until everything is read."""
        at: Offsets = dict.fromkeys(self.queues, 0)
        ends = {one: len(sizes) for one, sizes in self.queues.items()}
        found = []
        while at != ends:
            before, at = at, self.limit.lowered(at, ends, bytes_max)
            assert all(before[one] <= at[one] <= ends[one] for one in ends)
            assert at != before, "a micro-batch has at least one message"
            found.append(at)
        return found

    def totals(self, bytes_max: int) -> list[int]:
        """The bytes of all micro-batches."""
        edges = [dict.fromkeys(self.queues, 0), *self.batches(bytes_max)]
        return [
            sum(sum(self.queues[one.queue][one.start : one.end]) for one in between(start, end))
            for start, end in pairwise(edges)
        ]


@given(
    st.lists(st.lists(st.integers(100, 5_000_000), max_size=60), min_size=1, max_size=12),
    st.integers(1, 10_000_000),
)
def test_every_batch_has_a_message_and_the_reading_ends(
    queues: list[list[int]], bytes_max: int
) -> None:
    Sized(queues).batches(bytes_max)


def test_messages_of_one_size_are_limited_exactly() -> None:
    totals = Sized([[1024] * 5_000 for _ in range(4)]).totals(1 << 20)
    assert set(totals[:-1]) == {1 << 20}


def test_messages_of_other_sizes_are_limited_nearly() -> None:
    rng = random.Random(3)
    totals = Sized([[rng.randint(200, 3_000) for _ in range(40_000)] for _ in range(4)])
    found = totals.totals(1 << 20)[:-1]
    assert max(found) < 1.25 * (1 << 20)
    assert 0.9 < sum(found) / len(found) / (1 << 20) < 1.05


def test_a_batch_stays_small_when_messages_grow() -> None:
    totals = Sized([[300] * 20_000 + [30_000] * 2_000]).totals(1 << 20)
    assert max(totals) < 1.5 * (1 << 20)


def test_a_message_above_the_limit_is_read_alone() -> None:
    found = Sized([[5_000_000] * 3, [5_000_000] * 3])
    assert len(found.batches(1024)) == 6


def test_small_batches_are_not_read_twice_to_estimate_them() -> None:
    sized = Sized([[1000] * 100_000])
    sized.limit.lowered({queue(0): 0}, {queue(0): 100_000}, 100_000_000)
    assert sized.pulled <= 2 * 32
    for at in range(0, 1_000, 10):
        sized.limit.lowered({queue(0): at}, {queue(0): at + 10}, 100_000_000)
    assert sized.pulled <= 2 * 32 + 100


def test_a_batch_is_small_while_no_size_is_known() -> None:
    silent = ByteLimit(lambda _: [])
    ends = silent.lowered({queue(0): 0}, {queue(0): 1_000_000}, 64 << 20)
    assert ends == {queue(0): 16}


def test_queues_share_a_batch_by_what_waits() -> None:
    sized = Sized([[500] * 30_000, [500] * 10_000])
    first = sized.batches(1 << 20)[0]
    share = first[queue(0)] / records_in(between({}, first))
    assert 0.74 < share < 0.76
