"""Which delayed messages were delivered behind some place of the log, as the log itself tells.

Each of them names the record that it waited in; within a level they were delivered in order, so
the last one of a level tells of all before it.
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
    """By queue of the schedule topic, the offset of the last message delivered behind a place."""
    last: dict[int, int] = {}
    for record in records_from(store, log_offset):
        if record.topic == SCHEDULE or _REAL_TOPIC not in bytes(record.properties):
            continue
        try:
            origin = parse(store.lookup(record.prepared_offset))
        except (OffsetOutOfRange, CorruptRecord):
            continue
        # Java names no origin, which reads as 0: then the first record of the log must be its twin.
        is_same = (origin.born_ms, origin.body_crc) == (record.born_ms, record.body_crc)
        if origin.topic == SCHEDULE and is_same:
            last[origin.queue_number] = max(origin.queue_offset, last.get(origin.queue_number, 0))
    return last


def records_from(store: Store, at: int) -> Iterator[Record]:
    """The records from a place on; what cannot be read ends a file."""
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
