"""Applies a filter's results to the records that were read from a queue. Pure.

A filter gets a bounded slice of the queue. Of its records those remain that the filter wants, up to
the limits of the pull. A record that was not judged is read again: the next offset never passes a
message that was not judged, nor a wanted one that exceeds the limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord
from sprocket.filterserver.exchange import FilterInput
from sprocket.message.compression import COMPRESSED, open_body
from sprocket.message.offsets import QueueOffset
from sprocket.message.record import Record, parse
from sprocket.store.reading.queue_reader import ReadResult, ReadStatus

#: The most records and bytes in a slice.
COUNT_MAX = 128
BYTES_MAX = 512 << 10
#: A body that opens to more than this stays compressed for the filter.
OPENED_BYTES_MAX = 16 << 20
#: A slice whose opened bodies have more bytes together is judged in several batches.
_SHOWN_BYTES_MAX = 4 << 20


class RecordInRead(NamedTuple):
    """A record and its position in a read: the number of its part, and its first byte there."""

    record: Record
    number: int
    at: int


def records(read: ReadResult) -> list[RecordInRead]:
    """The records of a read, up to one that cannot be parsed."""
    found: list[RecordInRead] = []
    with suppress(CorruptRecord):
        for number, part in enumerate(read.parts):
            at = 0
            while at < len(part):
                record = parse(part, at)
                found.append(RecordInRead(record, number, at))
                at += record.size
    return found


def shown(record: Record) -> FilterInput:
    """A record's data for a filter; a body that cannot be opened stays compressed."""
    body = bytes(record.body)
    if record.sys_flag & COMPRESSED:
        with suppress(CorruptRecord):
            body = open_body(body, record.sys_flag, OPENED_BYTES_MAX)
    return FilterInput(
        record.queue_offset,
        record.born_ms,
        record.stored_ms,
        record.flag,
        bytes(record.properties),
        body,
    )


def shown_at_once(places: Sequence[RecordInRead]) -> list[FilterInput]:
    """The data of the first records for a filter, at least of one, within a bound of memory."""
    parts: list[FilterInput] = []
    total = 0
    for place in places:
        part = shown(place.record)
        parts.append(part)
        is_closed = place.record.sys_flag & COMPRESSED and len(part.body) == len(place.record.body)
        # A body that does not open may have cost as much as the largest that does.
        total += OPENED_BYTES_MAX if is_closed else len(part.body)
        if total > _SHOWN_BYTES_MAX:
            break
    return parts


def chosen(
    read: ReadResult,
    places: Sequence[RecordInRead],
    wanted: Sequence[bool],
    *,
    count_max: int,
    bytes_max: int,
) -> ReadResult:
    """The wanted part of a read.

    Args:
        places: its records.
        wanted: a result for each judged record, at least for the first one.
        count_max, bytes_max: the limits of the pull; the first wanted record ignores them.
    """
    # Wanted records that are neighbours become one view, so a reply has few parts to write and no
    # record is copied.
    parts: list[memoryview] = []
    count = total = 0
    run = (-1, 0, 0)
    next_offset = places[len(wanted) - 1].record.queue_offset + 1
    for (record, number, at), is_wanted in zip(places, wanted, strict=False):
        if not is_wanted:
            continue
        if count and (count >= count_max or total + record.size > bytes_max):
            next_offset = record.queue_offset
            break
        count += 1
        total += record.size
        end = at + record.size
        if run[0] == number and run[2] == at:
            run = (number, run[1], end)
            parts[-1] = read.parts[number][run[1] : end]
        else:
            run = (number, at, end)
            parts.append(read.parts[number][at:end])
    status = ReadStatus.FOUND if count else ReadStatus.NO_MATCHED_MESSAGE
    return ReadResult(
        status, QueueOffset(next_offset), read.min_offset, read.max_offset, parts, count, total
    )


def passed_over(read: ReadResult) -> ReadResult:
    """A read whose first record cannot be parsed: the result skips it like an unwanted one."""
    return ReadResult(
        ReadStatus.NO_MATCHED_MESSAGE,
        QueueOffset(read.next_offset - read.count + 1),
        read.min_offset,
        read.max_offset,
        [],
        0,
        0,
    )
