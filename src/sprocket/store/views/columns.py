"""Many rows of numbers as the bytes of a file, made column by column.

Packing them one after the other costs a call for each. A column as an array is turned to the
file's byte order by one call and laid into its place of every row by another.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable
from typing import Final, Literal

#: Of 4 and 8 bytes, with sign, as `struct` and `array` call them.
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
    """The rows that such arrays are the columns of, without space between them."""
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
