"""A batch queue: a consume queue whose units stand for records of one message or of a batch.

`batch_unit` and `docs/formats/batch-queue.md` describe a unit. Offsets count messages: a unit has
the offset of its first message and the number of its messages. Units are in the order of their
offsets, one behind the other in the run of files, wherever the offsets begin. A record that holds a
batch says so in its system flag, and in its properties INNER_NUM and INNER_BASE.
Source: BatchConsumeQueue, CommitLog.setBatchSizeIfNeeded of RocketMQ 5.x.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import ClassVar

from sprocket.base.errors import OffsetOutOfRange
from sprocket.store.log.segments import Segments
from sprocket.store.views.batch_unit import (
    NOT_COMPACTED,
    UNIT,
    UNIT_BYTES,
    BatchUnit,
    units_in,
)
from sprocket.store.views.consume_queue import BLANK_SIZE, ENTRY, ConsumeQueue
from sprocket.store.views.record_batch import QueueColumns


class BatchQueue(ConsumeQueue):
    """Messages [min_offset, max_offset) of one queue.

    Args:
        newest_ms: when the record that is being appended is stored.
        stored_ms_at: when the record at a log offset was stored.
        replaced: the same queue without units, whose files are removed once these are on the disk.
    """

    __slots__ = ("_count", "_newest_ms", "_replaced", "_stored_ms_at", "_units")

    _entry_bytes: ClassVar[int] = UNIT_BYTES
    _reserved_entries: ClassVar[int] = 1424

    def __init__(
        self,
        segments: Segments,
        topic: str,
        number: int,
        *,
        newest_ms: Callable[[], int],
        stored_ms_at: Callable[[int], int],
        replaced: ConsumeQueue | None = None,
    ) -> None:
        """If there are files, `cut` must be called before anything else."""
        super().__init__(segments, topic, number)
        self._newest_ms = newest_ms
        self._stored_ms_at = stored_ms_at
        self._replaced = replaced
        #: How many messages the next record has.
        self._count = 1
        #: Number of the unit behind the last one, in the whole run.
        self._units = 0

    @property
    def _first_unit(self) -> int:
        return self._segments.start // UNIT_BYTES

    @property
    def first_stored(self) -> int:
        """Offset of the first message that its files have, whether the log has it or not."""
        if self._units <= self._first_unit:
            return self.max_offset
        return self._unit(self._first_unit).first_offset

    @property
    def has_entries(self) -> bool:
        """Whether its files hold any units."""
        return self._units > self._first_unit

    def lacks_files(self, end: int) -> bool:
        """Whether all files are missing, or one between others."""
        starts = self._segments.starts
        if not starts:
            return end > 0
        return starts[-1] - starts[0] != (len(starts) - 1) * self._segments.file_bytes

    @property
    def _stored_entries(self) -> int:
        return self._units

    def take_from(self, queue: ConsumeQueue) -> None:
        """Takes over the messages of a queue of the other kind, one in each record.

        Raises:
            DiskFull: there is no room for them.
        """
        self.arrival = queue.arrival
        for offset in range(queue.min_offset, queue.max_offset):
            log_offset, size, code = ENTRY.unpack(queue.entries(offset, 1))
            if size != BLANK_SIZE:
                stored_ms = self._stored_ms_at(log_offset)
                self._put((log_offset, size, code, stored_ms), offset, 1)
        if not self.has_entries:
            self.begin_at(queue.max_offset)

    def hold_next(self, count: int) -> None:
        """Has the next record that is added hold this many messages; those after it one each."""
        self._count = count

    def add(self, entry: bytes, log_offset: int) -> None:
        """Writes the unit of the next record, given as an entry of other queues.

        Raises:
            DiskFull: there is no room for the next file, unless `make_room` was called.
        """
        _, size, code = ENTRY.unpack(entry)
        self._put((log_offset, size, code, self._newest_ms()), self.max_offset, self._count)

    def apply_columns(self, columns: QueueColumns) -> None:
        """Writes the units of records, in order.

        Raises:
            DiskFull: there is no room for them.
        """
        for place, offset in enumerate(columns.queue_offsets):
            log_offset = columns.log_offsets[place]
            if offset < self.max_offset:  # the topic was deleted and made again
                self._truncate_units(self._unit_at(offset), log_offset, is_torn=True)
            record = (
                log_offset,
                columns.record_bytes[place],
                columns.tag_codes[place],
                self._stored_ms_at(log_offset),
            )
            self._put(record, offset, columns.count_of(log_offset))

    def _put(self, record: tuple[int, int, int, int], offset: int, count: int) -> None:
        """Writes a unit: log offset, bytes, tag code and time of its record; its messages."""
        number = self._units
        if not self.base <= number < self.room_end:
            self._enter(self._segments.make(number * UNIT_BYTES))
            self._reserve(number, 1)
        if not self.has_entries:
            self.min_offset = max(self.min_offset, offset)
        at = (number - self.base) * UNIT_BYTES
        UNIT.pack_into(self.buffer, at, *record, offset, count, NOT_COMPACTED, 0)
        self._units = number + 1
        self.max_offset = offset + count
        if self.unsynced_log_offset < 0:
            self.unsynced_log_offset = record[0]
        self.is_used = True
        if self.arrival is not None:
            self.arrival.rise(self.max_offset)

    def begin_at(self, offset: int) -> None:
        """Has a queue without units begin at this offset: the messages before it are gone."""
        self._segments.remove_from(0)
        self._leave()
        self._units = self._synced_entries = 0
        if offset > 0:
            self._put((0, BLANK_SIZE, 0, 0), offset - 1, 1)
        self.min_offset = self.max_offset = offset

    def _unit(self, number: int) -> BatchUnit:
        """A unit.

        Raises:
            OffsetOutOfRange: no file holds it.
        """
        segment = self._segments.at(number * UNIT_BYTES)
        at = number * UNIT_BYTES - segment.start
        return BatchUnit._make(UNIT.unpack_from(segment.buffer, at))

    def _unit_at(self, offset: int) -> int:
        """Number of the first unit that ends behind an offset.

        Raises:
            OffsetOutOfRange: a file is missing.
        """
        numbers = range(self._first_unit, self._units)
        at = bisect_right(numbers, offset, key=lambda number: self._unit(number).first_offset)
        number = self._first_unit + at
        has_before = at > 0 and self._unit(number - 1).end > offset
        return number - 1 if has_before else number

    def has_unit(self, offset: int, log_offset: int) -> bool:
        """Whether the files have a unit with a first offset for the record at a log offset, also
        behind the queue's end."""
        for position in reversed(self._segments.starts):
            segment = self._segments.at(position)
            for unit in units_in(segment.file[:]):
                if unit.log_offset == log_offset:
                    return unit.first_offset == offset
        return False

    def units(self, offset: int) -> Iterator[BatchUnit]:
        """The units from the one that holds an offset on, of the files that are there.

        Raises:
            OffsetOutOfRange: the file of the first is missing.
        """
        self.is_used = True
        number = self._unit_at(offset)
        while number < self._units:
            yield self._unit(number)
            number += 1

    def position(self, offset: int) -> tuple[int, int]:
        """Log offset and size of the record that holds a message of the queue."""
        unit = self._unit(min(self._unit_at(offset), self._units - 1))
        return unit.log_offset, unit.record_bytes

    def entries(self, offset: int, count_max: int) -> memoryview:
        """The records that hold messages from an offset on, as entries of other queues have them.

        Raises:
            OffsetOutOfRange: no file holds the first.
        """
        found = bytearray()
        for unit in self.units(offset):
            if unit.first_offset >= offset + count_max:
                break
            found += ENTRY.pack(unit.log_offset, unit.record_bytes, unit.tag_code)
        return memoryview(found)

    def next_file_offset(self, offset: int) -> int:
        """The first offset of a later file that is there; the end of the queue if there is none."""
        for start in self._segments.starts:
            unit = self._unit(start // UNIT_BYTES)
            if unit.first_offset > offset:
                return unit.first_offset
        return self.max_offset

    def next_unit_offset(self, offset: int, end: int) -> int:
        """The first offset of the next unit behind one that is damaged; `end` if there is none.

        Raises:
            OffsetOutOfRange: a file is missing.
        """
        for unit in self.units(offset):
            if unit.first_offset > offset and unit.end <= end:
                return unit.first_offset
        return end

    def first_offset_where(self, holds: Callable[[int, int], bool]) -> int:
        """The first offset of the first record for which `holds` is true; `max_offset` if none.

        Args:
            holds: as for other queues.
        """

        def is_there_and_holds(number: int) -> bool:
            try:
                unit = self._unit(number)
            except OffsetOutOfRange:
                return False
            return holds(unit.log_offset, unit.record_bytes)

        numbers = range(self._first_unit, self._units)
        number = self._first_unit + bisect_left(numbers, True, key=is_there_and_holds)
        if number >= self._units:
            return self.max_offset
        return max(self._unit(number).first_offset, self.min_offset)

    def cut(self, log_offset: int, *, is_torn: bool) -> int:
        """Drops the units of records at or after a log offset.

        Returns:
            Log offset of the newest record left; -1 if none.
        """
        self.unsynced_log_offset = -1
        self._truncate_units(self._units_before(log_offset), log_offset, is_torn=is_torn)
        self._synced_entries = self._units
        if not self.has_entries:
            return -1
        unit = self._unit(self._units - 1)
        return -1 if unit.record_bytes == BLANK_SIZE else unit.log_offset

    def end_before(self, log_offset: int) -> int:
        """The offset behind the last message whose record is before a log offset; 0 if none is."""
        end = self._units_before(log_offset)
        return self._unit(end - 1).end if end > self._first_unit else 0

    def _units_before(self, log_offset: int) -> int:
        """Number of the first unit that is empty, or whose record is at or after a log offset."""

        def is_unwanted(number: int) -> bool:
            segment = self._segments.at(number * UNIT_BYTES)
            at = number * UNIT_BYTES - segment.start  # it may never have been written
            unit = BatchUnit._make(UNIT.unpack(segment.file[at : at + UNIT_BYTES]))
            return not unit.is_valid or unit.log_offset >= log_offset

        for position in reversed(self._segments.starts):
            first = position // UNIT_BYTES
            if not is_unwanted(first):
                numbers = range(first, (position + self._segments.file_bytes) // UNIT_BYTES)
                return first + bisect_left(numbers, True, key=is_unwanted)
        return self._first_unit

    def _truncate_units(self, number: int, log_offset: int, *, is_torn: bool) -> None:
        """Makes a unit the first that is not there."""
        first = self._first_unit
        if number <= first:
            self._segments.remove_from(0)
            number = 0
        else:
            self._segments.remove_from(max(number * UNIT_BYTES, self._segments.start + 1))
        self._units = number
        self.max_offset = self._unit(number - 1).end if number else 0
        self._end_with(number, log_offset, is_torn=is_torn)

    def set_log_start(self, log_start: int) -> None:
        """Moves `min_offset` to the first message that the log still has.

        Files that hold only earlier units are removed. The file with the last unit is always kept,
        because it shows the offset of the next message.
        """
        self.min_offset = max(self.min_offset, self.first_stored)

        def is_there(start: int, size: int) -> bool:
            return start >= log_start and not (start == 0 and size == BLANK_SIZE)

        self.min_offset = self.first_offset_where(is_there)
        if self.has_entries:
            kept = min(self._unit_at(self.min_offset), self._units - 1)
            self._segments.remove_before(kept * UNIT_BYTES)

    async def sync(self) -> None:
        """Returns when all changes from before the call are on the disk.

        Raises:
            OSError: the disk failed.
        """
        await super().sync()
        if self._replaced is not None:
            self._replaced.remove()
            self._replaced = None

    def remove(self) -> None:
        """Removes its files; it begins at offset 0 again."""
        super().remove()
        self._units = 0
        if self._replaced is not None:
            self._replaced.remove()
            self._replaced = None
