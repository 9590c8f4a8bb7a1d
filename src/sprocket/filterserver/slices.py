"""From what was read of a queue to what a filter makes of it. Pure.

A filter is shown a bounded slice of the queue, records as they lie there. Of it remain those that
it wants, as many as the pull may have. What it did not judge is read again: the offset to go on
from never passes a message that was not judged, nor one that was wanted and had no room.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord
from sprocket.filterserver.exchange import Part
from sprocket.message.compression import COMPRESSED, open_body
from sprocket.message.offsets import QueueOffset
from sprocket.message.record import Record, parse
from sprocket.store.reading.queue_reader import Read, ReadStatus

#: What a filter is shown at a time.
COUNT_MAX = 128
BYTES_MAX = 512 << 10
#: Bodies that open to more are shown as they lie there.
OPENED_BYTES_MAX = 16 << 20
#: A slice whose bodies, opened, are longer than this together is shown in parts.
_SHOWN_BYTES_MAX = 4 << 20


class Place(NamedTuple):
    """A record, and where it lies in a read: the number of its part, and from which byte on."""

    record: Record
    number: int
    at: int


def records(read: Read) -> list[Place]:
    """The records that were read, up to one that cannot be taken apart."""
    found: list[Place] = []
    with suppress(CorruptRecord):
        for number, part in enumerate(read.parts):
            at = 0
            while at < len(part):
                record = parse(part, at)
                found.append(Place(record, number, at))
                at += record.size
    return found


def shown(record: Record) -> Part:
    """What a filter sees of a record; a body that cannot be opened stays as it is."""
    body = bytes(record.body)
    if record.sys_flag & COMPRESSED:
        with suppress(CorruptRecord):
            body = open_body(body, record.sys_flag, OPENED_BYTES_MAX)
    return Part(
        record.queue_offset,
        record.born_ms,
        record.stored_ms,
        record.flag,
        bytes(record.properties),
        body,
    )


def shown_at_once(places: Sequence[Place]) -> list[Part]:
    """What a filter is shown of the first records, as far as memory should go; of one at least."""
    parts: list[Part] = []
    total = 0
    for place in places:
        parts.append(shown(place.record))
        total += len(parts[-1].body)
        if total > _SHOWN_BYTES_MAX:
            break
    return parts


def chosen(
    read: Read,
    places: Sequence[Place],
    wanted: Sequence[bool],
    *,
    count_max: int,
    bytes_max: int,
) -> Read:
    """What remains of a read.

    Args:
        places: its records.
        wanted: whether each is, as far as they were judged; of the first one at least.
        count_max, bytes_max: what the pull may have; the first that is wanted comes anyway.
    """
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
    return Read(
        status, QueueOffset(next_offset), read.min_offset, read.max_offset, parts, count, total
    )


def passed_over(read: Read) -> Read:
    """A read whose first record cannot be taken apart: that one is left out, as if unwanted."""
    return Read(
        ReadStatus.NO_MATCHED_MESSAGE,
        QueueOffset(read.next_offset - read.count + 1),
        read.min_offset,
        read.max_offset,
        [],
        0,
        0,
    )
