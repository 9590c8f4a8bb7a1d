"""Divides the offsets of a read into shares for tasks. Pure.

A range is [start, end) of one queue. All ranges in a row are cut into shares of equal length, so
that every task reads the same number of offsets, a huge queue is split, small queues share a task,
and there are no more cuts than shares. The same input always gives the same shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sprocket.message.queue import QueueId

#: A task should read at least this many records, so that its own cost (tens of ms) is negligible.
SHARE_RECORDS_MIN = 20_000
#: A task should read at most this many records, unless the user chooses otherwise: about a second.
SHARE_RECORDS_MAX = 250_000
#: 2^32 divided by the golden ratio: its multiples are spread evenly over any length.
_SCATTER = 2_654_435_769


class Range(NamedTuple):
    """Offsets [start, end) of one queue."""

    queue: QueueId
    start: int
    end: int

    @property
    def records(self) -> int:
        """How many offsets it spans."""
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.queue} [{self.start}, {self.end})"


Share = tuple[Range, ...]


def between(start: Mapping[QueueId, int], end: Mapping[QueueId, int]) -> list[Range]:
    """The ranges that are not empty, sorted by queue.

    A queue without a start is read from 0; one whose end is not after its start is left out.
    """
    found = (Range(queue, start.get(queue, 0), end[queue]) for queue in sorted(end))
    return [one for one in found if one.records > 0]


def share_count(records: int, *, at_least: int, records_max: int, cores: int) -> int:
    """How many shares to make.

    Args:
        at_least: the least number that the user wants, or 0: then as many as `cores` if each share
            is then large enough for a task, and more if shares would be too large.
        records_max: most records in a share, or 0 for no limit.
    """
    if records <= 0:
        return 0
    count = at_least
    if not at_least:
        count = min(cores, _parts(records, SHARE_RECORDS_MIN))
        count = max(count, _parts(records, SHARE_RECORDS_MAX))
    if records_max:
        count = max(count, _parts(records, records_max))
    return max(1, min(count, records))


def _parts(whole: int, size: int) -> int:
    return -(-whole // size)


def cut(ranges: Sequence[Range], count: int) -> list[Share]:
    """Cuts ranges into `count` shares whose sizes differ by at most one record."""
    total = sum(one.records for one in ranges)
    if total == 0 or count <= 0:
        return []
    shares: list[Share] = []
    share: list[Range] = []
    passed = 0
    for one in ranges:
        start = one.start
        while start < one.end:
            bound = (len(shares) + 1) * total // count
            stop = min(one.end, start + bound - passed)
            if stop > start:
                share.append(Range(one.queue, start, stop))
            passed += stop - start
            start = stop
            if passed >= bound:
                shares.append(tuple(share))
                share = []
    return [one for one in shares if one]


def limit(
    start: Mapping[QueueId, int], end: Mapping[QueueId, int], records: int
) -> dict[QueueId, int]:
    """Lower ends, so that at most `records` are read in all, in proportion to each queue's backlog.

    Every queue with a backlog advances, unless there are more such queues than records: then they
    take turns, those with a larger backlog more often. A queue that is missing from `start` begins
    at 0.
    """
    ranges = between(start, end)
    waiting = records_in(ranges)
    if waiting <= records:
        return dict(end)
    each = 1 if len(ranges) <= records else 0
    waiting -= each * len(ranges)
    records -= each * len(ranges)
    # Where in the row of queues the first of a few records is; another place after each read.
    shift = 0 if each else sum(one.start for one in ranges) * _SCATTER % waiting
    limited = {queue: min(offset, start.get(queue, 0)) for queue, offset in end.items()}
    passed = 0
    for one in ranges:
        before = (passed * records + shift) // waiting
        passed += one.records - each
        limited[one.queue] = one.start + each + (passed * records + shift) // waiting - before
    return limited


def records_in(ranges: Iterable[Range]) -> int:
    """How many offsets the ranges span together."""
    return sum(one.records for one in ranges)
