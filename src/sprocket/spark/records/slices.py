"""Copies pieces of a buffer into Arrow arrays of strings or bytes. Pure."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sprocket.spark.records.heads import Buffer, Places, window


def slices(
    buffer: Buffer,
    begin: Places,
    end: Places,
    kind: pa.DataType | None = None,
    *,
    is_null: NDArray[np.bool_] | None = None,
) -> pa.Array:
    """The pieces [begin, end) of a buffer.

    Args:
        begin, end: positions, which rise from piece to piece.
        kind: `pa.binary()`, or `pa.string()` if all pieces are known to be UTF-8.
        is_null: which values are null instead.
    """
    kind = pa.binary() if kind is None else kind
    size = int(end[0] - begin[0]) if len(begin) else 0
    # Ids, many tags and keys, and often bodies have one length: numpy copies those in half the
    # time that Arrow takes.
    if size > 0 and is_null is None and bool((end - begin == size).all()):
        return of_one_size(window(buffer, f"V{size}")[begin], kind)
    # Arrow takes its offsets from a list of edges, so every second piece is what stands between.
    edges = np.empty(2 * len(begin) + 1, np.int32)
    edges[0:-1:2], edges[1::2] = begin, end
    edges[-1] = end[-1] if len(end) else 0
    return _pieces(buffer, edges, kind).take(
        pa.array(np.arange(0, 2 * len(begin), 2, dtype=np.int64), mask=is_null)
    )


def alternating(
    buffer: Buffer, edges: NDArray[np.int32], kind: pa.DataType
) -> tuple[pa.Array, pa.Array]:
    """The first and the third of every four consecutive pieces between edges."""
    pieces = _pieces(buffer, edges, kind)
    first = np.arange(0, len(edges) - 1, 4, dtype=np.int64)
    return pieces.take(pa.array(first)), pieces.take(pa.array(first + 2))


def of_one_size(values: NDArray[np.void], kind: pa.DataType) -> pa.Array:
    """An array of values that have the same number of bytes."""
    count, size = len(values), values.itemsize
    offsets = np.arange(0, count * size + 1, size, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values.view(np.uint8))]
    return pa.Array.from_buffers(kind, count, buffers)


def _pieces(buffer: Buffer, edges: NDArray[np.int32], kind: pa.DataType) -> pa.Array:
    buffers = [None, pa.py_buffer(edges), pa.py_buffer(buffer)]
    return pa.Array.from_buffers(kind, len(edges) - 1, buffers)
