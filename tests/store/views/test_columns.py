"""Rows of numbers made column by column are those that are packed one by one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprocket.store.views.columns import INT, LONG, big_endian, rows

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.tuples(longs, ints, longs, ints), min_size=1, max_size=20))
def test_rows_are_those_that_are_packed_one_by_one(table: list[tuple[int, int, int, int]]) -> None:
    first, second, third, fourth = zip(*table, strict=True)
    made = rows(
        big_endian(LONG, first),
        big_endian(INT, second),
        big_endian(LONG, third),
        big_endian(INT, fourth),
    )
    assert made == b"".join(struct.pack(">qiqi", *row) for row in table)


def test_no_rows_are_no_bytes() -> None:
    assert rows(big_endian(INT, []), big_endian(LONG, [])) == b""


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OverflowError):
        big_endian(INT, [1 << 31])
