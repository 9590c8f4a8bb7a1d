"""Reads the records of a store, whether a broker has it open or not. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange, UsageError
from sprocket.base.ports import FileBytes
from sprocket.message.offsets import LONG_MAX
from sprocket.message.record import Record
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.inspection.walk import LogTail, walk
from sprocket.store.log.damage import Damage
from sprocket.store.log.segments import NAME_DIGITS
from sprocket.store.views.batch_unit import units_in
from sprocket.store.views.consume_queue import BLANK_SIZE, DAMAGED_CODE, ENTRY, ENTRY_BYTES


class DumpSelection(NamedTuple):
    """Which records are dumped.

    Attributes:
        topic, queue_number: those of this topic and queue; None: of all.
        begin, end: those in [begin, end): log offsets, or queue offsets if a queue is chosen.
    """

    topic: str | None = None
    queue_number: int | None = None
    begin: int = 0
    end: int = LONG_MAX


def dump(store: InspectedStore, chosen: DumpSelection) -> Iterator[Record | Damage]:
    """Records in the order of the log, or of the queue, with the damage between them.

    Raises:
        UsageError: a queue is chosen without a topic.
    """
    if chosen.queue_number is not None:
        if chosen.topic is None:
            raise UsageError("a queue needs its topic")
        yield from _of_queue(store, chosen.topic, chosen.queue_number, chosen)
        return
    for each in walk(store.log, until=store.until):
        if isinstance(each, LogTail):
            return
        if isinstance(each, Damage):
            if each.start < chosen.end and each.end > chosen.begin:
                yield each
            continue
        if each.log_offset >= chosen.end:
            return
        if each.log_offset >= chosen.begin and chosen.topic in (None, each.topic):
            yield each


def _of_queue(
    store: InspectedStore, topic: str, number: int, chosen: DumpSelection
) -> Iterator[Record | Damage]:
    folder = store.queue_folder(topic, number)
    names = [name for name in store.disk.names(folder) if len(name) == NAME_DIGITS]
    if not names:
        raise UsageError(f"there is no queue {number} of topic {topic} in {store.root}")
    for name in names:
        try:
            file = store.disk.peek(f"{folder}/{name}")
        except FileNotFoundError:  # a broker has removed it since
            continue
        # The files are read without a lock while a broker may write them: an entry may be half
        # written, a file may be gone, and its records may have been removed from the log.
        read = _units if store.is_batch(topic, number) else _entries
        for first, end, start, size, code in read(file, int(name), chosen.begin):
            if first >= chosen.end or size <= 0:
                return
            is_gone = size == BLANK_SIZE or code == DAMAGED_CODE or start < store.log.start
            if is_gone or end <= chosen.begin:
                continue
            try:
                yield store.log.record_at(start)
            except (CorruptRecord, OffsetOutOfRange) as error:
                place = start % store.log.file_bytes
                path = store.log.path_of(start - place)
                yield Damage(path, place, start, start + size, str(error))


#: Offset of the first message of a record, offset after the last; its log offset, size, tag code.
_Place = tuple[int, int, int, int, int]


def _entries(file: FileBytes, position: int, begin: int) -> Iterator[_Place]:
    """The entries of a file from an offset on, as far as it has them."""
    first = position // ENTRY_BYTES
    whole = len(file) - len(file) % ENTRY_BYTES
    skipped = max(begin - first, 0)
    entries = ENTRY.iter_unpack(file[min(skipped * ENTRY_BYTES, whole) : whole])
    for offset, (start, size, code) in enumerate(entries, first + skipped):
        yield offset, offset + 1, start, size, code


def _units(file: FileBytes, position: int, begin: int) -> Iterator[_Place]:
    """The units of a file of a batch queue."""
    for unit in units_in(file[:]):
        yield unit.first_offset, unit.end, unit.log_offset, unit.record_bytes, unit.tag_code
