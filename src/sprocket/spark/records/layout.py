"""Finds the positions of all fields in a run of records, for all records at once.

The only loop over records goes from size to size; everything else is arithmetic on whole columns.
Each length is checked against its record's size before it is used. `sprocket.message.record`
declares the layout of a record.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sprocket.base.errors import CorruptRecord
from sprocket.message.record import (
    BODY_AT,
    BODY_LENGTH_AT,
    BORN_HOST_V6,
    FIXED_BYTES,
    MAGIC,
    MAGIC_AT,
    MAGIC_LONG_TOPIC,
    QUEUE_OFFSET_AT,
    STORE_HOST_AT,
    STORE_HOST_V6,
)
from sprocket.spark.records.heads import Buffer, Heads, Places, numbers, read_heads

_SIZE = struct.Struct(">i")


def starts(buffer: Buffer) -> Places:
    """The position at which each record begins.

    Raises:
        CorruptRecord: a size does not fit into the buffer.
    """
    found = []
    at, end = 0, len(buffer)
    size_at = _SIZE.unpack_from
    while at < end:
        found.append(at)
        if end - at < FIXED_BYTES:
            raise CorruptRecord(f"{end - at} bytes after {len(found) - 1} records are no record")
        (size,) = size_at(buffer, at)
        if not FIXED_BYTES <= size <= end - at:
            raise CorruptRecord(f"a record of {size} bytes in {end - at}")
        at += size
    return np.array(found, np.int64)


@dataclass(slots=True)
class Layout:
    """Positions in a run of records; every array has one entry for each record.

    Attributes:
        buffer: the bytes to which all positions refer.
        starts, ends: positions of the records.
        heads: their numbers.
        born_more, store_more: bytes that an IPv6 address takes beyond an IPv4 one, 0 or 12.
        bodies, body_ends: positions of the bodies.
        topics: where the topics begin; they end two bytes before the properties.
        properties: where the texts of properties begin; they end with the record.
    """

    buffer: Buffer
    starts: Places
    ends: Places
    heads: Heads
    born_more: Places
    store_more: Places
    bodies: Places
    body_ends: Places
    topics: Places
    properties: Places

    @property
    def sys_flags(self) -> NDArray[np.int32]:
        """RocketMQ's flag bits."""
        return self.heads.sys_flags

    @property
    def store_host_at(self) -> Places:
        """Positions of the store hosts."""
        return self.starts + STORE_HOST_AT + self.born_more

    def of(self, offset: int, kind: str) -> NDArray[Any]:
        """The numbers of a field before the body.

        Args:
            offset: of the field in a record with IPv4 addresses.
            kind: a numpy type without byte order.
        """
        return self.heads.of(offset, kind)

    def part(self, begin: int, end: int) -> Layout:
        """The layout of the records [begin, end), by their place in the run."""
        return self._chosen(slice(begin, end))

    def filtered(self, mask: NDArray[np.bool_]) -> Layout:
        """The layout of those records for which the mask is true."""
        return self._chosen(mask)

    def _chosen(self, at: slice | NDArray[np.bool_]) -> Layout:
        return Layout(
            self.buffer, self.starts[at], self.ends[at], self.heads.chosen(at), self.born_more[at],
            self.store_more[at], self.bodies[at], self.body_ends[at], self.topics[at],
            self.properties[at],
        )  # fmt: skip


def lay_out(buffer: Buffer) -> Layout:
    """Finds all positions in a run of records.

    Raises:
        CorruptRecord: the lengths in a record do not fit together; the text has its offset.
    """
    begin = starts(buffer)
    return lay_out_at(buffer, begin, np.append(begin[1:], len(buffer))[: len(begin)])


def lay_out_at(buffer: Buffer, begin: Places, end: Places) -> Layout:
    """Finds all positions in records anywhere in a buffer.

    Args:
        begin, end: of the records; each has at least `FIXED_BYTES` and is within the buffer.

    Raises:
        CorruptRecord: the lengths in a record do not fit together; the text has its offset.
    """
    heads = read_heads(buffer, begin)
    if len(begin) == 0:
        return Layout(buffer, begin, begin, heads, *([begin] * 6))
    # Each length tells where the next field is, so every step first checks all records against the
    # step before; a wrong length would make `numbers` read beyond the buffer.
    born_more = heads.more_bytes(BORN_HOST_V6)
    store_more = heads.more_bytes(STORE_HOST_V6)
    body = begin + BODY_AT + born_more + store_more
    _check(buffer, begin, body + 3 <= end, "no room for a body")
    body_bytes = heads.of(BODY_LENGTH_AT, "i4").astype(np.int64)
    body_end = body + body_bytes
    topic_length_bytes = _topic_length_bytes(heads)
    topic = body_end + topic_length_bytes
    _check(buffer, begin, (body_bytes >= 0) & (topic + 2 <= end), "a body that does not fit")
    topic_end = topic + _topic_bytes(buffer, topic, topic_length_bytes)
    _check(buffer, begin, topic_end + 2 <= end, "a topic that does not fit")
    properties = topic_end + 2
    fits = properties + numbers(buffer, topic_end, "u2") == end
    _check(buffer, begin, fits, "properties that do not end with it")
    return Layout(
        buffer, begin, end, heads, born_more, store_more, body, body_end, topic, properties
    )


def _topic_length_bytes(heads: Heads) -> Places:
    magic = heads.of(MAGIC_AT, "i4")
    is_short = magic == MAGIC
    if is_short.all():
        return np.ones(len(magic), np.int64)
    _check(heads.buffer, heads.starts, is_short | (magic == MAGIC_LONG_TOPIC), "an unknown magic")
    return np.where(is_short, 1, 2)


def _topic_bytes(buffer: Buffer, topic: Places, length_bytes: Places) -> Places:
    short = numbers(buffer, topic - 1, "u1").astype(np.int64)
    if bool((length_bytes == 1).all()):
        return short
    return np.where(length_bytes == 1, short, numbers(buffer, topic - 2, "u2"))


def _check(buffer: Buffer, begin: Places, is_right: NDArray[np.bool_], fault: str) -> None:
    if not is_right.all():
        first = int(np.argmin(is_right))
        offset = int(numbers(buffer, begin[first : first + 1] + QUEUE_OFFSET_AT, "i8")[0])
        raise CorruptRecord(f"the record of queue offset {offset} has {fault}")
