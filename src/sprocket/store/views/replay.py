"""Reads the log's records quickly, and gives what the views receive of each.

Most records are plain: in the format of RocketMQ 4, with IPv4 hosts, no part of a transaction, of a
topic that was seen before. Those are parsed here, many at a time. All others, and those that are
not whole, are left to `whole`, which alone decides whether a record is whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from zlib import crc32

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.base.ports import FileBytes
from sprocket.message.hashing import tag_code
from sprocket.message.inner_batch import INNER_BATCH
from sprocket.message.properties import (
    INNER_COUNT,
    KEYS,
    TAGS,
    UNIQUE_KEY,
    decode_bytes,
    value_in,
)
from sprocket.message.record import (
    BORN_HOST_V6,
    CRC_MASK,
    MAGIC,
    STORE_HOST_V6,
    TRANSACTION_MASK,
    Record,
    head_struct,
    topic_part,
)
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.whole import HOLE, checked, is_blank
from sprocket.store.views.batch_unit import MESSAGES_MAX
from sprocket.store.views.entry import BatchEntry, Entry
from sprocket.store.views.record_batch import RecordBatch
from sprocket.store.views.tag_codes import TagCodes, code_of

#: This much of a file is copied at a time, because bytes are parsed faster than a mapping.
PIECE_BYTES = 1 << 20

_HEAD = head_struct(
    "size", "magic", "body_crc", "queue_number", "queue_offset", "log_offset", "sys_flag",
    "stored_ms", "body_length",
)  # fmt: skip
_HEAD_BYTES = _HEAD.size
_UNCOMMON = BORN_HOST_V6 | STORE_HOST_V6 | TRANSACTION_MASK | INNER_BATCH
_TAGS_MAX = 4096
_PAIR_END = 2
_PAIR_END_BYTE = b"\x02"
_UNIQUE_KEY_MARK, _KEYS_MARK, _TAGS_MARK = (
    f"{name}\x01".encode() for name in (UNIQUE_KEY, KEYS, TAGS)
)


def entry_of(record: Record, tag_codes: TagCodes) -> Entry:
    """What the views receive of a record."""
    properties = decode_bytes(record.properties)
    fields = (
        record.topic,
        record.queue_number,
        record.queue_offset,
        record.log_offset,
        record.size,
        code_of(tag_codes, record.topic, record.stored_ms, properties),
        record.stored_ms,
        record.sys_flag,
        properties.get(KEYS, ""),
        properties.get(UNIQUE_KEY, ""),
    )
    if record.sys_flag & INNER_BATCH:
        return BatchEntry(*fields, held=_inner_count(properties))
    return Entry(*fields)


def _inner_count(properties: Mapping[str, str]) -> int:
    """How many messages a batch's record holds; one if it does not say it, as in Java."""
    text = properties.get(INNER_COUNT, "")
    count = int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else 1
    return count if 1 <= count <= MESSAGES_MAX else 1


class RecordScanner:
    """Parses records, many at a time.

    Behind the body, messages of one sender differ in the unique key and in their keys only. So the
    bytes there are split into five parts: these two, and the three around them, which are looked up
    as a whole instead of being parsed.

    Args:
        checks_bodies: whether each body is compared with its checksum.
    """

    __slots__ = ("_checks_bodies", "_kinds", "_splits", "_tag_codes", "_tags", "_topics")

    def __init__(self, tag_codes: TagCodes, *, checks_bodies: bool) -> None:
        self._tag_codes = tag_codes
        self._checks_bodies = checks_bodies
        #: Topics of which a whole record was seen, by their bytes in a record.
        self._topics: dict[bytes, str] = {}
        #: Tag codes of messages without keys, by the properties besides the unique key.
        self._tags: dict[bytes, int] = {}
        #: How to split the bytes behind a body, by their number.
        self._splits: dict[int, _Split] = {}
        #: What is known of messages, by the three parts around their keys.
        self._kinds: dict[tuple[bytes, bytes, bytes], _Kind] = {}

    def take(
        self, file: FileBytes, start: int, at: int, *, until: int = 1 << 63
    ) -> tuple[RecordBatch, int]:
        """Reads some consecutive whole records.

        Args:
            file: a file of the log.
            start: log offset of its first byte.
            at: place of the first record, in bytes from there.
            until: log offset; no record that begins at it or behind it is read.

        Returns:
            The records, and the place behind the last of them.

        Raises:
            CorruptRecord: no whole record begins at the place.
        """
        # Bytes are sliced and unpacked faster than a mapping, and a copy can also be made of what
        # has no disk space yet behind the log's end. So a piece is copied first. The known kinds
        # refer to lists of one batch, so each call begins without any.
        batch = RecordBatch()
        self._splits.clear()
        self._kinds.clear()
        first = at
        piece = bytes(file[at : max(at, min(at + PIECE_BYTES, until - start))])
        while True:
            at = first + self._take_plain(piece, start + first, at - first, batch)
            if at >= first + len(piece):
                return batch, at
            try:
                record = self._checked(file, piece, start, first, at)
            except CorruptRecord:
                if not batch.count:
                    raise
                return batch, at
            batch.add(entry_of(record, self._tag_codes))
            at += record.size
            if record.topic not in self._tag_codes:
                self._topics[topic_part(record.topic.encode())] = record.topic

    def _checked(self, file: FileBytes, piece: bytes, start: int, first: int, at: int) -> Record:
        """The record at a place of a file, from the piece that begins at `first` if it is there.

        Raises:
            CorruptRecord: it is not whole.
        """
        size = int.from_bytes(piece[at - first : at - first + 4], "big")
        is_inside = at + max(size, _HEAD_BYTES) <= first + len(piece)
        source, place = (piece, at - first) if is_inside else (file, at)
        return checked(source, place, start + at, checks_body=self._checks_bodies)

    def _take_plain(self, piece: bytes, start: int, at: int, into: RecordBatch) -> int:
        """Reads the plain, whole records from a place of a piece on.

        Args:
            piece: some bytes of a file of the log.
            start: log offset of the first of them.
            at: the place, in bytes from there.

        Returns:
            The place behind the last record that was read. The next record may still be whole.
        """
        while True:
            place = self._take_alike(piece, start, at, into)
            at = self._take_known(piece, start, place, into)
            if at == place:
                return at

    def _take_alike(self, piece: bytes, start: int, at: int, into: RecordBatch) -> int:
        """As `_take_plain`, for records of a kind that `_take_known` has read before."""
        # Recovery spends most of its time in this loop, so it makes one call to `struct` for the
        # head and one for the rest, and no object that stays. The bytes around the keys are looked
        # up as a whole: if they are known, topic, tag and the lengths of all parts are known too,
        # and are not checked again. Any other record ends the loop, and slower code checks it.
        # Measured: 4 instead of 10 µs of CPU for a record with keys of its own.
        unpack, split_of, kind_of = _HEAD.unpack_from, self._splits.get, self._kinds.get
        checks_bodies, keyed, piece_bytes = self._checks_bodies, into.keyed, len(piece)
        last_head = piece_bytes - _HEAD_BYTES
        split, rest_bytes, last, count = None, 0, None, 0
        while at <= last_head:
            (
                size, magic, crc, number, queue_offset, log_offset, sys_flag, stored_ms, body_bytes,
            ) = unpack(piece, at)  # fmt: skip
            body_at = at + _HEAD_BYTES
            topic_at = body_at + body_bytes
            end = at + size
            if (
                magic != MAGIC
                or log_offset != start + at
                or body_bytes < 0
                or end > piece_bytes
                or sys_flag & _UNCOMMON
            ):
                break
            if end - topic_at != rest_bytes:
                rest_bytes = end - topic_at
                split = split_of(rest_bytes)
            if split is None:
                break
            front, key, middle, words, back = split(piece, topic_at)
            around = (front, middle, back)
            if around != last:
                if (kind := kind_of(around)) is None:
                    break
                topic, tag, queues, is_swapped = kind
                last = around
            if is_swapped:
                key, words = words, key
            if (
                _PAIR_END in key
                or _PAIR_END in words
                or (queue := queues.get(number)) is None
                or (checks_bodies and crc32(piece[body_at:topic_at]) & CRC_MASK != crc)
            ):
                break
            queue += (queue_offset, log_offset, size, tag)
            keyed += (topic, key, words, log_offset, stored_ms)
            count += 1
            at = end
        if count:
            into.count += count
            into.end, into.stored_ms = start + at, keyed[-1]
        return at

    def _take_known(self, piece: bytes, start: int, at: int, into: RecordBatch) -> int:
        """Reads the plain, whole record at a place, if its topic was seen before.

        Returns:
            The place behind it; the same place if it was not read.
        """
        # This checks one record as strictly as `whole.checked`, but makes no `Record`. Then it
        # stores for `_take_alike` how the next record of this kind is split into five parts.
        if at > len(piece) - _HEAD_BYTES:
            return at
        (
            size, magic, crc, number, queue_offset, log_offset, sys_flag, stored_ms, body_bytes,
        ) = _HEAD.unpack_from(piece, at)  # fmt: skip
        body_at = at + _HEAD_BYTES
        end: int = at + size
        topic_at = body_at + body_bytes
        if magic != MAGIC or log_offset != start + at or sys_flag & _UNCOMMON:
            return at
        if not body_at <= topic_at < end <= len(piece):
            return at
        topic_end = topic_at + 1 + piece[topic_at]
        properties = piece[topic_end + 2 : end]
        if (
            topic_end + 2 > end
            or len(properties) != piece[topic_end] << 8 | piece[topic_end + 1]
            or (topic := self._topics.get(piece[topic_at:topic_end])) is None
            or (self._checks_bodies and crc32(piece[body_at:topic_at]) & CRC_MASK != crc)
            or (properties and not (properties[0] and properties[-1]))
            or HOLE in properties
        ):
            return at
        tag, unique_key, keys, at_of = self._words(properties)
        queue = into.queue(topic, number)
        queue += (queue_offset, log_offset, size, tag)
        into.keyed += (topic, unique_key, keys, log_offset, stored_ms)
        into.count, into.end, into.stored_ms = into.count + 1, start + end, stored_ms
        if at_of:
            rest = piece[topic_at:end]
            first, second = (each + topic_end + 2 - topic_at for each in sorted(at_of))
            is_swapped = at_of[0] > at_of[1]
            sizes = (len(keys), len(unique_key)) if is_swapped else (len(unique_key), len(keys))
            middle_bytes = second - first - sizes[0]
            back_bytes = len(rest) - second - sizes[1]
            split = _split(first, sizes[0], middle_bytes, sizes[1], back_bytes)
            self._splits.setdefault(len(rest), split)
            front, _, middle, _, back = split(rest, 0)
            self._kinds[front, middle, back] = (topic, tag, into.queues[topic], is_swapped)
        return end

    def _words(self, properties: bytes) -> tuple[int, bytes, bytes, tuple[int, int] | None]:
        """Tag code, unique key and keys, and the places of these two in the properties.

        The places are None if other records of this kind cannot be split at them.
        """
        # A sender's messages differ in the unique key, so the properties around it determine the
        # tag, which is looked up by them. Properties with an unusual form are decoded in full.
        before, _, rest = properties.partition(_UNIQUE_KEY_MARK)
        unique_key, end, after = rest.partition(_PAIR_END_BYTE)
        is_usual = unique_key and (not before or before[-1] == _PAIR_END)
        others = before + after
        key_at = len(before) + len(_UNIQUE_KEY_MARK)
        at_of = (key_at, key_at + len(unique_key)) if end else None
        if is_usual and (tag := self._tags.get(others)) is not None:
            return tag, unique_key, b"", at_of
        tag = tag_code(_value(properties, _TAGS_MARK, TAGS))
        keys = _value(properties, _KEYS_MARK, KEYS).encode()
        if not is_usual or _UNIQUE_KEY_MARK in after:
            return tag, _value(properties, _UNIQUE_KEY_MARK, UNIQUE_KEY).encode(), keys, None
        if keys:
            return tag, unique_key, keys, at_of and _both(properties, key_at, keys)
        if len(self._tags) >= _TAGS_MAX:
            self._tags.clear()
        self._tags[others] = tag
        return tag, unique_key, b"", at_of


#: What is known of messages: topic, tag code, the lists of the topic's queues; and whether the keys
#: come before the unique key.
_Kind = tuple[str, int, dict[int, list[int]], bool]
#: Splits some bytes, from a place on, into five parts.
_Split = Callable[[bytes, int], tuple[bytes, bytes, bytes, bytes, bytes]]


@lru_cache(maxsize=4096)
def _split(*sizes: int) -> _Split:
    return struct.Struct("".join(f"{size}s" for size in sizes)).unpack_from


def _both(properties: bytes, key_at: int, keys: bytes) -> tuple[int, int] | None:
    """The places of unique key and keys; None unless the keys occur once and unchanged."""
    at = properties.find(_KEYS_MARK) + len(_KEYS_MARK)
    pair = _KEYS_MARK + keys + _PAIR_END_BYTE
    is_once = properties.count(_KEYS_MARK) == 1
    return (
        (key_at, at)
        if is_once and (_PAIR_END_BYTE + properties).count(_PAIR_END_BYTE + pair)
        else None
    )


def _value(properties: bytes, mark: bytes, name: str) -> str:
    """A property's value as `decode_bytes` gives it; empty if there is none."""
    at = properties.rfind(mark)
    if at < 0:
        return ""
    start = at + len(mark)
    end = properties.find(_PAIR_END_BYTE, start)
    # The value is empty, or the mark is the end of another name: the property may be elsewhere.
    if start in (end, len(properties)) or (at and properties[at - 1] != _PAIR_END):
        return value_in(properties, name) or ""
    return (properties[start:end] if end > 0 else properties[start:]).decode("utf-8", "replace")


def replayed(
    log: CommitLog, at: int, tag_codes: TagCodes, *, checks_bodies: bool
) -> Iterator[RecordBatch]:
    """What the views receive of the whole records from a log offset on, in order, of all files."""
    records = RecordScanner(tag_codes, checks_bodies=checks_bodies)
    while True:
        at = after_blank(log, at)
        try:
            segment = log.segments.at(at)
            batch, place = records.take(segment.file, segment.start, at - segment.start)
        except (OffsetOutOfRange, CorruptRecord):
            return
        yield batch
        at = segment.start + place


def after_blank(log: CommitLog, at: int) -> int:
    """The beginning of the next file, if the rest of this one is marked blank; else `at`."""
    if not log.segments.has(at):
        return at
    segment = log.segments.at(at)
    return segment.end if is_blank(segment.file, at - segment.start) else at


def whole_record(log: CommitLog, at: int, *, checks_body: bool) -> Record | None:
    """The record that begins at a log offset; None if no whole record does."""
    try:
        segment = log.segments.at(at)
        return checked(segment.file, at - segment.start, at, checks_body=checks_body)
    except (OffsetOutOfRange, CorruptRecord):
        return None
