"""Goes through the log's records quickly, and gives what the views learn of each.

Most records are plain: of RocketMQ 4's kind, with IPv4 hosts, no part of a transaction, of a topic
that was seen before. Those are taken apart here, many at a time. Whatever is not plain, or not
whole, is left to `whole`, which alone judges what a record must be.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.message.hashing import tag_code
from sprocket.message.properties import KEYS, TAGS, UNIQUE_KEY, decode_bytes, value_in
from sprocket.message.record import (
    BORN_HOST_V6,
    MAGIC,
    STORE_HOST_V6,
    TRANSACTION_MASK,
    Record,
    topic_part,
)
from sprocket.message.topic import SCHEDULE
from sprocket.store.commit_log import CommitLog
from sprocket.store.tag_codes import TagCodes
from sprocket.store.views import Entry
from sprocket.store.whole import HOLE, checked, is_blank

#: So much of a file is copied at a time: bytes are quicker to take apart than what is mapped.
PIECE_BYTES = 1 << 20

#: Size, magic, checksum, queue number, queue offset, log offset, system flag, stored, body length;
#: see `message.record`.
_HEAD = struct.Struct(">iiii4xqqi16xq20xi")
_HEAD_BYTES = _HEAD.size
_CRC_MASK = 0x7FFFFFFF
_UNCOMMON = BORN_HOST_V6 | STORE_HOST_V6 | TRANSACTION_MASK
_TAGS_MAX = 4096
_PAIR_END = 2
_PAIR_END_BYTE = b"\x02"
_UNIQUE_KEY_MARK, _KEYS_MARK, _TAGS_MARK = (
    f"{name}\x01".encode() for name in (UNIQUE_KEY, KEYS, TAGS)
)


def entry_of(record: Record, tag_codes: TagCodes) -> Entry:
    """What the views learn of a record."""
    properties = decode_bytes(record.properties)
    return Entry(
        record.topic,
        record.queue_number,
        record.queue_offset,
        record.log_offset,
        record.size,
        tag_codes.of(record.topic, record.stored_ms, properties),
        record.stored_ms,
        record.sys_flag,
        properties.get(KEYS, ""),
        properties.get(UNIQUE_KEY, ""),
    )


class Records:
    """Takes records apart, many at a time.

    Args:
        checks_bodies: each body is compared with its checksum.
    """

    __slots__ = ("_checks_bodies", "_tag_codes", "_tags", "_topics")

    def __init__(self, tag_codes: TagCodes, *, checks_bodies: bool) -> None:
        self._tag_codes = tag_codes
        self._checks_bodies = checks_bodies
        #: Topics of which a whole record was seen, by how they stand in a record.
        self._topics: dict[bytes, str] = {}
        #: Tag codes by the properties besides a unique key, of messages without keys.
        self._tags: dict[bytes, int] = {}

    def take(
        self, buffer: memoryview, start: int, at: int, *, until: int = 1 << 63
    ) -> tuple[list[Entry], int]:
        """The entries of some whole records that follow each other.

        Args:
            buffer: a file of the log.
            start: log offset of its first byte.
            at: where the first of the records stands, in bytes from there.
            until: log offset at or behind which none of them begins.

        Returns:
            The entries; and the place behind the last of them.

        Raises:
            CorruptRecord: no whole record stands there.
        """
        entries: list[Entry] = []
        first = at
        piece = bytes(buffer[at : min(at + PIECE_BYTES, until - start)])
        while True:
            at = first + self._take_plain(piece, start + first, at - first, entries)
            if at >= first + len(piece):
                return entries, at
            try:
                record = checked(buffer, at, start + at, checks_body=self._checks_bodies)
            except CorruptRecord:
                if not entries:
                    raise
                return entries, at
            entries.append(entry_of(record, self._tag_codes))
            at += record.size
            if record.topic != SCHEDULE:
                self._topics[topic_part(record.topic.encode())] = record.topic

    def _take_plain(self, piece: bytes, start: int, at: int, into: list[Entry]) -> int:
        """Adds the entries of the plain, whole records from a place of a piece on.

        Args:
            piece: some bytes of a file of the log.
            start: log offset of the first of them.
            at: the place, in bytes from there.

        Returns:
            Behind the last that was added. What stands there may be whole nevertheless.
        """
        unpack, topics, checks_bodies = _HEAD.unpack_from, self._topics, self._checks_bodies
        words = self._words
        piece_bytes = len(piece)
        last_head = piece_bytes - _HEAD_BYTES
        while at <= last_head:
            (
                size, magic, crc, number, queue_offset, log_offset, sys_flag, stored_ms, body_bytes,
            ) = unpack(piece, at)  # fmt: skip
            if magic != MAGIC or log_offset != start + at or sys_flag & _UNCOMMON:
                break
            end = at + size
            body_at = at + _HEAD_BYTES
            topic_at = body_at + body_bytes
            if not body_at <= topic_at < end <= piece_bytes:
                break
            topic_end = topic_at + 1 + piece[topic_at]
            properties_at = topic_end + 2
            if (
                properties_at > end
                or end - properties_at != piece[topic_end] << 8 | piece[topic_end + 1]
                or (topic := topics.get(piece[topic_at:topic_end])) is None
                or (checks_bodies and crc32(piece[body_at:topic_at]) & _CRC_MASK != crc)
            ):
                break
            properties = piece[properties_at:end]
            if (properties and not (properties[0] and properties[-1])) or HOLE in properties:
                break
            tag, keys, unique_key = words(properties)
            into.append(
                Entry(
                    topic,
                    number,
                    queue_offset,
                    log_offset,
                    size,
                    tag,
                    stored_ms,
                    sys_flag,
                    keys,
                    unique_key,
                )
            )
            at = end
        return at

    def _words(self, properties: bytes) -> tuple[int, str, str]:
        """Tag code, keys and unique key."""
        # Most messages differ from others in their unique key only.
        before, _, rest = properties.partition(_UNIQUE_KEY_MARK)
        unique_key, _, after = rest.partition(_PAIR_END_BYTE)
        is_usual = unique_key and (not before or before[-1] == _PAIR_END)
        others = before + after
        if is_usual and (tag := self._tags.get(others)) is not None:
            return tag, "", unique_key.decode("utf-8", "replace")
        tag = tag_code(_value(properties, _TAGS_MARK, TAGS))
        keys = _value(properties, _KEYS_MARK, KEYS)
        if is_usual and not keys and _UNIQUE_KEY_MARK not in after:
            if len(self._tags) >= _TAGS_MAX:
                self._tags.clear()
            self._tags[others] = tag
        return tag, keys, _value(properties, _UNIQUE_KEY_MARK, UNIQUE_KEY)


def _value(properties: bytes, mark: bytes, name: str) -> str:
    """A property's value, or nothing; as `decode_bytes` would have it."""
    at = properties.rfind(mark)
    if at < 0:
        return ""
    start = at + len(mark)
    end = properties.find(_PAIR_END_BYTE, start)
    # Nothing there, or the end of another name: it may stand elsewhere.
    if end == start or (at and properties[at - 1] != _PAIR_END):
        return value_in(properties, name) or ""
    return (properties[start:end] if end > 0 else properties[start:]).decode("utf-8", "replace")


def replayed(
    log: CommitLog, at: int, tag_codes: TagCodes, *, checks_bodies: bool
) -> Iterator[list[Entry]]:
    """What the views learn of the whole records from a log offset on, over all files, in order."""
    records = Records(tag_codes, checks_bodies=checks_bodies)
    while True:
        at = after_blank(log, at)
        try:
            segment = log.segments.at(at)
            entries, place = records.take(segment.buffer, segment.start, at - segment.start)
        except (OffsetOutOfRange, CorruptRecord):
            return
        yield entries
        at = segment.start + place


def after_blank(log: CommitLog, at: int) -> int:
    """The beginning of the next file, if the rest of this one is marked blank; else `at`."""
    if not log.segments.has(at):
        return at
    segment = log.segments.at(at)
    return segment.end if is_blank(segment.buffer, at - segment.start) else at


def whole_record(log: CommitLog, at: int, *, checks_body: bool) -> Record | None:
    """The record that begins at a log offset, if it is whole."""
    try:
        segment = log.segments.at(at)
        return checked(segment.buffer, at - segment.start, at, checks_body=checks_body)
    except (OffsetOutOfRange, CorruptRecord):
        return None
