"""Finds damaged queue offsets among the records of a queue. Pure.

No checksum covers the queue offset of a record. But the offsets of a queue rise by one, but for
three cases: a topic that was deleted and made again begins at 0, a repaired log lacks messages, and
the first messages of a queue may have expired. So an offset that fits neither of its neighbours, or
contradicts the queue's entry for the record, is damaged. In a batch queue they rise by as many as
the record before holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class OffsetEvidence(NamedTuple):
    """What else is known of the records.

    Attributes:
        has_entry: whether the queue's files had an entry with an offset for the record with a
            number in the sequence.
        between: how many messages at most can lie between a record and the one before it.
        following: offset of the next record behind the sequence; None if there is none.
    """

    has_entry: Callable[[int, int], bool]
    between: Callable[[int], int]
    following: Callable[[], int | None]


def right_offsets(
    offsets: Sequence[int],
    expected: int | None,
    evidence: OffsetEvidence,
    counts: Sequence[int] | None = None,
) -> list[int]:
    """The offsets that consecutive records of a queue have, or had before they were damaged.

    Args:
        offsets: as the records carry them.
        expected: the offset behind the record before; None if there is none.
        counts: how many messages each record holds; None for one each.
    """
    found: list[int] = []
    held = counts or [1] * len(offsets)
    for number, offset in enumerate(offsets):
        if expected is None:
            expected = _first(offsets, number, held, evidence)
        if offset != expected and _is_real(offsets, number, expected, held[number], evidence):
            expected = offset
        found.append(expected)
        expected += held[number]
    return found


def _first(
    offsets: Sequence[int], number: int, held: Sequence[int], evidence: OffsetEvidence
) -> int:
    """The offset of a queue's first record: damaged only if the next two go back and agree."""
    offset, *behind = offsets[number : number + 3]
    if evidence.has_entry(number, offset) or len(behind) < 2:
        return offset
    is_back = held[number] <= behind[0] <= offset and behind[1] == behind[0] + held[number + 1]
    return behind[0] - held[number] if is_back else offset


def _is_real(
    offsets: Sequence[int], number: int, expected: int, count: int, evidence: OffsetEvidence
) -> bool:
    """Whether a record has an offset that was not expected, and not the expected one."""
    offset = offsets[number]
    if evidence.has_entry(number, expected):
        return False
    if evidence.has_entry(number, offset):
        return True
    following = offsets[number + 1] if number + 1 < len(offsets) else evidence.following()
    if following == expected + count:
        return False
    if following == offset + count or offset == 0:
        return True
    return expected < offset <= expected + evidence.between(number)
