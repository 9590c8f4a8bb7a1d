"""Many rows of numbers as the bytes of a file, made column by column.

To pack row by row costs a call for each row. Here one call converts a whole column to the file's
byte order, and one slice assignment puts it into its place in every row.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Final, Literal

#: Signed numbers of 4 and of 8 bytes, as `struct` and `array` call them.
INT: Final = "i"
LONG: Final = "q"
_WORD_BYTES = 4


def big_endian(code: Literal["i", "q"], numbers: Iterable[int]) -> array[int]:
    """Numbers as an array whose bytes are those of a file.

    Raises:
        OverflowError: one does not fit.
    """
    column = array(code, numbers)
    if sys.byteorder == "little":
        column.byteswap()
    return column


def rows(*columns: array[int]) -> bytes:
    """The rows whose columns are these arrays, without padding."""
    words = sum(column.itemsize for column in columns) // _WORD_BYTES
    table = array(INT, bytes(len(columns[0]) * words * _WORD_BYTES))
    at = 0
    for column in columns:
        parts = column.itemsize // _WORD_BYTES
        halves = array(INT, column.tobytes())
        for part in range(parts):
            table[at::words] = halves[part::parts]
            at += 1
    return table.tobytes()
