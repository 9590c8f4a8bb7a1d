from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sprocket.spark.records.slices import alternating, slices

words = st.text(max_size=4).map(str.encode)
#: Often all of one size, as ids are.
several = st.one_of(
    st.lists(words, max_size=6),
    st.integers(1, 9).flatmap(
        lambda size: st.lists(st.binary(min_size=size, max_size=size), max_size=6)
    ),
)


def placed(pieces: list[bytes], gaps: bytes) -> tuple[bytes, list[int], list[int]]:
    """A buffer with the pieces, and other bytes in between; where each begins and ends."""
    buffer, begin, end = b"", [], []
    for index, piece in enumerate(pieces):
        buffer += gaps[: index % (len(gaps) + 1)]
        begin.append(len(buffer))
        buffer += piece
        end.append(len(buffer))
    return buffer + gaps, begin, end


@given(several, st.binary(max_size=3), st.data())
def test_pieces_of_any_sizes_are_copied(
    pieces: list[bytes], gaps: bytes, data: st.DataObject
) -> None:
    buffer, begin, end = placed(pieces, gaps)
    at, behind = np.array(begin, np.int64), np.array(end, np.int64)
    found = slices(buffer, at, behind)
    found.validate(full=True)
    assert found.type == pa.binary()
    assert found.to_pylist() == pieces
    count = len(pieces)
    nulls = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    found = slices(buffer, at, behind, is_null=np.array(nulls, np.bool_))
    found.validate(full=True)
    wanted = [None if null else piece for piece, null in zip(pieces, nulls, strict=True)]
    assert found.to_pylist() == wanted


@given(st.lists(words, max_size=6))
def test_text_is_a_string(pieces: list[bytes]) -> None:
    buffer, begin, end = placed(pieces, b"--")
    found = slices(buffer, np.array(begin, np.int64), np.array(end, np.int64), pa.string())
    found.validate(full=True)
    assert found.type == pa.string()
    assert found.to_pylist() == [piece.decode() for piece in pieces]


@given(st.lists(st.tuples(words, words, words, words), max_size=4))
def test_of_four_pieces_the_first_and_the_third_are_taken(
    pieces: list[tuple[bytes, bytes, bytes, bytes]],
) -> None:
    flat = [piece for four in pieces for piece in four]
    edges = np.cumsum([0, *map(len, flat)], dtype=np.int32)
    first, third = alternating(b"".join(flat), edges, pa.binary())
    assert first.to_pylist() == [four[0] for four in pieces]
    assert third.to_pylist() == [four[2] for four in pieces]
