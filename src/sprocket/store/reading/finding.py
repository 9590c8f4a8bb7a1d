"""Finds records by key: results of the index, each compared with its record.

The index holds hashes only, and different keys can have the same hash.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import OffsetOutOfRange
from sprocket.message.offsets import LONG_MAX
from sprocket.message.properties import KEYS, UNIQUE_KEY, decode_bytes
from sprocket.message.record import Record, parse
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.views.key_index import KeyIndex


class KeySearchRange(NamedTuple):
    """Which records are searched.

    Attributes:
        begin_ms, end_ms: those stored between these two times, both included.
        end: those that end at or before this log offset; None for no limit.
    """

    begin_ms: int = 0
    end_ms: int = LONG_MAX
    end: int | None = None


def find(
    log: CommitLog, index: KeyIndex, topic: str, *, key: str, count_max: int, span: KeySearchRange
) -> list[memoryview]:
    """Records of a topic that carry a key or unique id, newest first."""
    end = log.end if span.end is None else span.end
    found: list[memoryview] = []
    for log_offset in index.find(topic, key, begin_ms=span.begin_ms, end_ms=span.end_ms):
        record = _carrying(log, log_offset, topic, key)
        if record is None or log_offset + record.size > end:
            continue
        if span.begin_ms <= record.stored_ms <= span.end_ms:
            found.append(log.slice(log_offset, log_offset + record.size))
        if len(found) >= count_max:
            break
    return found


def _carrying(log: CommitLog, log_offset: int, topic: str, key: str) -> Record | None:
    """The record at a log offset; None if it is not of that topic or does not carry that key."""
    try:
        record = parse(log.record_at(log_offset))
    except OffsetOutOfRange:
        return None
    if record.topic != topic:
        return None
    properties = decode_bytes(record.properties)
    if key == properties.get(UNIQUE_KEY) or key in properties.get(KEYS, "").split():
        return record
    return None
