"""Finds in the log which delayed messages were delivered behind a log offset.

Each delivered message names the record in which it waited. Within a level messages are delivered in
order, so the last one of a level shows that all before it were delivered too.
"""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.message.properties import REAL_TOPIC
from sprocket.message.record import Record, parse
from sprocket.message.topic import SCHEDULE
from sprocket.store.store import Store

_REAL_TOPIC = REAL_TOPIC.encode()


def delivered_since(store: Store, log_offset: int) -> dict[int, int]:
    """The last message delivered behind a log offset: its queue offset, by queue number of the
    schedule topic."""
    last: dict[int, int] = {}
    for record in records_from(store, log_offset):
        if record.topic == SCHEDULE or _REAL_TOPIC not in bytes(record.properties):
            continue
        try:
            origin = parse(store.lookup(record.prepared_offset))
        except (OffsetOutOfRange, CorruptRecord):
            continue
        # Java writes 0 in place of the origin. So the record found must be the same message, or
        # each of Java's would count as one that waited in the first record of the log.
        is_same = (origin.born_ms, origin.body_crc) == (record.born_ms, record.body_crc)
        if origin.topic == SCHEDULE and is_same:
            last[origin.queue_number] = max(origin.queue_offset, last.get(origin.queue_number, 0))
    return last


def records_from(store: Store, at: int) -> Iterator[Record]:
    """The records from a log offset on; an unreadable one skips the rest of its file."""
    file_bytes = store.log_file_bytes
    at = max(at, store.log_start)
    while at < store.log_end:
        try:
            record = parse(store.lookup(at))
        except (OffsetOutOfRange, CorruptRecord):
            at += file_bytes - at % file_bytes
            continue
        yield record
        at += record.size
