"""Finds the end of the log and brings the views to it.

1. From the checkpoint comes a place up to which everything was on the disk. The views forget what
   lies behind it, and replaying begins there; or, if no whole record stands there, behind the
   newest one that the views still know. If that is damaged, it begins with the file that holds it,
   or with an earlier one.
2. From there every record is checked, and goes into the views by the same `apply` as on append.
3. The log ends where the first thing stands that is no whole record in its own place. What lies
   behind is cleared.

A record is whole if its magic is known, its lengths fit together and into the file, its body agrees
with its checksum, it carries the log offset at which it stands, and its topic and properties are
text and not the zeros of a page that was never written.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.message.properties import KEYS, UNIQUE_KEY, decode_bytes
from sprocket.message.record import BLANK_MAGIC, Record, body_crc, parse
from sprocket.store.checkpoint import Checkpoint
from sprocket.store.commit_log import CommitLog
from sprocket.store.tag_codes import TagCodes
from sprocket.store.views import Entry, View

_BLANK = struct.Struct(">ii")
_PAUSE_RECORDS = 4096
#: So many zeros in a row are a sector that was never written.
_HOLE = bytes(512)


class Recovered(NamedTuple):
    """What recovery did.

    Attributes:
        replayed_from: log offset where replaying began.
        records: how many records were replayed.
        stored_ms: when the last of them was stored; 0 if there was none.
    """

    replayed_from: int
    records: int
    stored_ms: int


async def recover(
    log: CommitLog,
    views: Sequence[View],
    checkpoint: Checkpoint,
    tag_codes: TagCodes,
    *,
    was_stopped: bool,
    checks_bodies: bool,
) -> Recovered:
    """Brings log and views to their common end.

    Args:
        was_stopped: the store was closed in order the last time.
        checks_bodies: compares each body with its checksum.
    """
    start = _replay_start(log, views, checkpoint, was_stopped=was_stopped)
    log.stand_at(log.segments.limit)
    count = stored_ms = 0
    end = start
    for record in _records(log, start, checks_bodies=checks_bodies):
        properties = decode_bytes(record.properties)
        entry = Entry(
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
        for view in views:
            view.apply(entry)
        end = record.log_offset + record.size
        stored_ms = record.stored_ms
        count += 1
        if count % _PAUSE_RECORDS == 0:
            await asyncio.sleep(0)
    end = _after_blank(log, end)
    log.cut(end, is_torn=not was_stopped)
    return Recovered(start, count, stored_ms)


def _replay_start(
    log: CommitLog, views: Sequence[View], checkpoint: Checkpoint, *, was_stopped: bool
) -> int:
    """Where replaying begins; the views know nothing of what lies behind."""
    limit = log.segments.limit
    safe = checkpoint.replay_from
    if safe is None:
        safe = limit if was_stopped else _file_before(log, checkpoint.safe_ms)
    elif safe < log.start and safe % log.segments.file_bytes == 0:
        return _forget_from(safe, views)  # the file was new and never synced, nor what follows it
    safe = max(min(safe, limit), log.start)
    newest = min(view.cut(safe, is_torn=not was_stopped) for view in views)
    if newest < log.start:
        return _forget_from(log.start, views)
    if whole_record(log, safe, checks_body=True) is not None:
        return safe
    record = whole_record(log, newest, checks_body=True)
    if record is not None:
        return newest + record.size
    start = newest - newest % log.segments.file_bytes
    while start > log.start and whole_record(log, start, checks_body=True) is None:
        start -= log.segments.file_bytes
    return _forget_from(max(start, log.start), views)


def _forget_from(start: int, views: Sequence[View]) -> int:
    for view in views:
        view.cut(start, is_torn=True)
    return start


def _file_before(log: CommitLog, safe_ms: int) -> int:
    """Log offset of the last file that begins with a record stored at or before a time."""
    for start in reversed(log.segments.starts):
        record = whole_record(log, start, checks_body=False)
        if record is not None and 0 < record.stored_ms <= safe_ms:
            return start
    return log.start


def _records(log: CommitLog, at: int, *, checks_bodies: bool) -> Iterator[Record]:
    """The whole records from a log offset on, over all files."""
    limit = log.segments.limit
    while at < limit:
        at = _after_blank(log, at)
        record = whole_record(log, at, checks_body=checks_bodies)
        if record is None:
            return
        yield record
        at += record.size


def _after_blank(log: CommitLog, at: int) -> int:
    """The beginning of the next file, if the rest of this one is marked blank; else `at`."""
    if not log.segments.has(at):
        return at
    segment = log.segments.at(at)
    if segment.end - at < _BLANK.size:
        return segment.end
    size, magic = _BLANK.unpack_from(segment.buffer, at - segment.start)
    return segment.end if magic == BLANK_MAGIC and size == segment.end - at else at


def whole_record(log: CommitLog, at: int, *, checks_body: bool) -> Record | None:
    """The record that begins at a log offset, if it is whole."""
    try:
        segment = log.segments.at(at)
        record = parse(segment.buffer, at - segment.start)
    except (OffsetOutOfRange, CorruptRecord):
        return None
    if record.log_offset != at or not record.topic or "\0" in record.topic:
        return None
    if checks_body and body_crc(record.body) != record.body_crc:
        return None
    return None if _is_unwritten(bytes(record.properties)) else record


def _is_unwritten(properties: bytes) -> bool:
    """Whether properties contain zeros where a sector was never written."""
    if not properties:
        return False
    return properties[0] == 0 or properties[-1] == 0 or _HOLE in properties
