"""Reads the numbers in the heads of many records at once. Pure.

`sprocket.message.record` declares the fields: they stand at the same places of each record, but
that what follows an IPv6 address begins later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sprocket.message.hosts import V6_MORE_BYTES
from sprocket.message.record import (
    BORN_HOST_AT,
    BORN_HOST_V6,
    FIXED_BYTES,
    HOSTS_MASK,
    STORE_HOST_AT,
    STORE_HOST_V6,
    SYS_FLAG_AT,
)

Buffer = bytes | bytearray | memoryview
Places = NDArray[np.int64]


def window(buffer: Buffer, kind: str) -> NDArray[Any]:
    """The value of a numpy type at each position of a buffer, aligned or not; a view.

    One indexing step on it reads the values of all records, without a loop or a copy of the buffer.
    """
    dtype = np.dtype(kind)
    return np.ndarray((len(buffer) - dtype.itemsize + 1,), dtype, buffer=buffer, strides=(1,))


def numbers(buffer: Buffer, places: Places, kind: str) -> NDArray[Any]:
    """The big-endian number at each position; `kind` is a numpy type without byte order."""
    if len(places) == 0:
        return np.empty(0, kind)
    return window(buffer, f">{kind}")[places].astype(kind)


@dataclass(slots=True)
class Heads:
    """The heads of records.

    Attributes:
        buffer: has the records.
        starts: positions of the records in it.
        copies: the first `FIXED_BYTES` of each record.
        sys_flags: RocketMQ's flag bits.
    """

    buffer: Buffer
    starts: Places
    copies: NDArray[np.void]
    sys_flags: NDArray[np.int32]

    def of(self, offset: int, kind: str) -> NDArray[Any]:
        """The number in a field of each record.

        Args:
            offset: of the field in a record with IPv4 addresses.
            kind: a numpy type without byte order.
        """
        if offset <= BORN_HOST_AT or not (self.sys_flags & HOSTS_MASK).any():
            return _at_same_place(self.copies, offset, kind)
        at = self.starts + offset + self.more_bytes(BORN_HOST_V6)
        if offset > STORE_HOST_AT:
            at += self.more_bytes(STORE_HOST_V6)
        return numbers(self.buffer, at, kind)

    def more_bytes(self, is_v6: int) -> Places:
        """The bytes that an address takes beyond an IPv4 one; `is_v6` is its flag bit."""
        has_more = self.sys_flags & is_v6
        if has_more.any():
            return np.where(has_more, V6_MORE_BYTES, 0)
        return np.zeros(len(self.starts), np.int64)

    def chosen(self, at: slice | NDArray[np.bool_]) -> Heads:
        """The heads of some of the records."""
        return Heads(self.buffer, self.starts[at], self.copies[at], self.sys_flags[at])


def read_heads(buffer: Buffer, starts: Places) -> Heads:
    """The heads of records that have at least `FIXED_BYTES` each, all within the buffer."""
    if len(starts) == 0:
        none = np.empty(0, f"V{FIXED_BYTES}")
        return Heads(buffer, starts, none, np.empty(0, np.int32))
    # Most of the cost of a number is finding its record in memory, so heads are copied in one step,
    # and numbers are read from the copies.
    copies: NDArray[np.void] = window(buffer, f"V{FIXED_BYTES}")[starts]
    return Heads(buffer, starts, copies, _at_same_place(copies, SYS_FLAG_AT, "i4"))


def _at_same_place(heads: NDArray[np.void], offset: int, kind: str) -> NDArray[Any]:
    if len(heads) == 0:
        return np.empty(0, kind)
    found: NDArray[Any] = np.ndarray(
        heads.shape, f">{kind}", buffer=heads, offset=offset, strides=heads.strides
    )
    return found.astype(kind)
