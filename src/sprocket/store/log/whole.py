"""Distinguishes whole records from damage.

A record is whole if its magic is known, its lengths fit together and into the file, its body agrees
with its checksum, it carries its own log offset, and its topic and properties are text and not the
zeros of a page that was never written.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from sprocket.base.errors import CorruptRecord
from sprocket.base.ports import FileBytes
from sprocket.message.record import (
    BLANK,
    BLANK_BYTES,
    BLANK_MAGIC,
    FIXED_BYTES,
    MAGIC,
    MAGIC_AT,
    Record,
    body_crc,
    parse,
)

#: The bytes behind the size of a record, in both versions of the format.
_MAGIC_START = struct.pack(">i", MAGIC)[:3]
_CHUNK = 1 << 20
_SIZE_BYTES = 4
#: No head is longer: both hosts of a record may have twelve bytes more.
_HEAD_BYTES_MAX = FIXED_BYTES + 24
_ZEROS = bytes(_CHUNK)
#: This many zeros in a row show a sector that was never written.
HOLE = bytes(512)


def record_bytes(file: FileBytes, at: int) -> bytes | bytearray | memoryview:
    """The bytes of the record that may begin at a place of a file; never fewer than a head has."""
    size = int.from_bytes(file[at : at + _SIZE_BYTES], "big", signed=True)
    return file[at : at + max(size, _HEAD_BYTES_MAX)]


def checked(file: FileBytes, at: int, log_offset: int, *, checks_body: bool = True) -> Record:
    """The record at a place of a file, which must carry this log offset.

    Raises:
        CorruptRecord: it is not whole; the text gives the reason.
    """
    record = parse(record_bytes(file, at))
    if record.log_offset != log_offset:
        raise CorruptRecord(f"the record there carries log offset {record.log_offset}")
    if not record.topic or "\0" in record.topic:
        raise CorruptRecord("its topic is no text")
    if checks_body and body_crc(record.body) != record.body_crc:
        raise CorruptRecord("its body does not agree with its checksum")
    if _is_unwritten(bytes(record.properties)):
        raise CorruptRecord("its properties have a part that was never written")
    return record


def _is_unwritten(properties: bytes) -> bool:
    """Whether properties contain the zeros of a sector that was never written."""
    if not properties:
        return False
    return properties[0] == 0 or properties[-1] == 0 or HOLE in properties


def is_blank(file: FileBytes, at: int) -> bool:
    """Whether the rest of a file is marked as unused, or too short for the mark."""
    left = len(file) - at
    if left < BLANK_BYTES:
        return True
    size, magic = BLANK.unpack(file[at : at + BLANK_BYTES])
    return bool(magic == BLANK_MAGIC and size == left)


def next_whole(file: FileBytes, start: int, at: int) -> Record | None:
    """The first whole record behind a place of a file.

    Args:
        start: log offset of its first byte.
        at: the place, in bytes from there.
    """
    for place in _candidates(file, at + 1):
        try:
            return checked(file, place, start + place)
        except CorruptRecord:
            continue
    return None


def _candidates(file: FileBytes, at: int) -> Iterator[int]:
    """Places where records may begin."""
    at += MAGIC_AT
    overlap = len(_MAGIC_START) - 1
    while at < len(file):
        chunk = bytes(file[at : at + _CHUNK + overlap])
        found = -1 if _is_zero(chunk) else chunk.find(_MAGIC_START)
        while found >= 0:
            yield at + found - MAGIC_AT
            found = chunk.find(_MAGIC_START, found + 1)
        at += _CHUNK


def _is_zero(chunk: bytes) -> bool:
    """Whether there are only zeros; much quicker than a search for other bytes."""
    return chunk == (_ZEROS if len(chunk) == len(_ZEROS) else bytes(len(chunk)))


def written_to(file: FileBytes, at: int) -> int:
    """The place after the last byte that is not zero, from `at` on; `at` if all are zero.

    Reads the file from its end, because most of what follows the log's end is zero.
    """
    last = len(file)
    while last > at:
        first = max(at, last - _CHUNK)
        chunk = bytes(file[first:last])
        if not _is_zero(chunk):
            return first + len(chunk.rstrip(b"\0"))
        last = first
    return at
