"""Damaged queue offsets are told from real ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.store.views.right_offsets import OffsetEvidence, right_offsets

NOTHING = OffsetEvidence(lambda number, offset: False, lambda number: 5, lambda: None)


@pytest.mark.parametrize(
    ("offsets", "expected", "right"),
    [
        ([3, 4, 5], 3, [3, 4, 5]),
        ([3, 4, 5], None, [3, 4, 5]),
        ([3, 99, 5], 3, [3, 4, 5]),
        ([3, 1, 5], 3, [3, 4, 5]),
        ([3, 4, 99], 3, [3, 4, 5]),
        ([3, 4, 2], 3, [3, 4, 5]),
        ([99, 4, 5], None, [3, 4, 5]),
        ([3, 0, 1], 3, [3, 0, 1]),
        ([3, 0], 3, [3, 0]),
        ([3, 7, 8], 3, [3, 7, 8]),
        ([3, 7], 3, [3, 7]),
        ([9, 0, 1], None, [9, 0, 1]),
    ],
)
def test_offsets_that_fit_no_neighbour_are_damaged(
    offsets: list[int], expected: int | None, right: list[int]
) -> None:
    assert right_offsets(offsets, expected, NOTHING) == right


def test_the_record_behind_counts_and_so_does_an_entry() -> None:
    behind = NOTHING._replace(following=lambda: 6)
    assert right_offsets([3, 4, 7], 3, behind) == [3, 4, 5]
    entry = NOTHING._replace(has_entry=lambda number, offset: (number, offset) == (1, 4))
    assert right_offsets([3, 6], 3, entry) == [3, 4]
    entry = NOTHING._replace(has_entry=lambda number, offset: (number, offset) == (1, 60))
    assert right_offsets([3, 60], 3, entry) == [3, 60]


@given(
    first=st.integers(0, 1 << 40),
    count=st.integers(3, 30),
    at=st.integers(0, 29),
    bit=st.integers(3, 62),
)
def test_one_flipped_bit_is_found_wherever_it_is(first: int, count: int, at: int, bit: int) -> None:
    whole = list(range(first, first + count))
    damaged = list(whole)
    damaged[at % count] ^= 1 << bit
    if damaged[at % count] == 0:
        return
    assert right_offsets(damaged, first, NOTHING) == whole
