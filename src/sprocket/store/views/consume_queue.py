"""A consume queue: for each message of one queue, where its record is and the hash of its tag.

`ENTRY` declares an entry, and `docs/formats/consume-queue.md` explains its fields: log offset and
size of the record, and the hash of the tag or the time when a delayed message is due.

Entry number n is at byte 20 n of the run of files. Blank entries of size 2^31 - 1 fill a first file
up to the first message, with log offset 0, and fill gaps, with the log offset of the next record.

Source: ConsumeQueue of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import ClassVar

from sprocket.base.errors import OffsetOutOfRange
from sprocket.base.watermark import Watermark
from sprocket.message.record import topic_part
from sprocket.store.log.segments import Segment, Segments
from sprocket.store.views.entry_files import EntryFiles
from sprocket.store.views.record_batch import QueueColumns

ENTRY = struct.Struct(">qiq")
ENTRY_BYTES = ENTRY.size
BLANK_SIZE = 0x7FFFFFFF
#: The tag code of a message that was damaged: its entry points to a filler record instead.
DAMAGED_CODE = int.from_bytes(b"DAMAGED\0", "big")

_POSITION = struct.Struct(">qi")


class ConsumeQueue(EntryFiles):
    """Entries [min_offset, max_offset) of one queue.

    Attributes:
        topic_part: the topic as a record carries it.
        min_offset: offset of the first message that the log still has.
        max_offset: offset that the next message gets.
        arrival: the watermark at `max_offset`; None until somebody asks for it.
    """

    __slots__ = ("arrival", "max_offset", "min_offset", "number", "topic", "topic_part")

    _entry_bytes: ClassVar[int] = ENTRY_BYTES
    _reserved_entries: ClassVar[int] = 3276

    def __init__(self, segments: Segments, topic: str, number: int) -> None:
        """If there are files, `cut` must be called before anything else."""
        super().__init__(segments)
        self.topic = topic
        self.number = number
        self.topic_part = topic_part(topic.encode())
        self.min_offset = 0
        self.max_offset = 0
        self.arrival: Watermark | None = None

    @property
    def has_entries(self) -> bool:
        """Whether its files hold any entries."""
        return self.max_offset > self.first_stored

    @property
    def first_stored(self) -> int:
        """Offset of the first entry that its files have, whether the log has its message or not."""
        return self._segments.start // ENTRY_BYTES

    def lacks_files(self, end: int) -> bool:
        """Whether a file between others is missing, or the one with the entry before an offset."""
        starts = self._segments.starts
        if not starts:
            return end > 0
        is_dense = starts[-1] - starts[0] == (len(starts) - 1) * self._segments.file_bytes
        return not is_dense or not self._segments.has(max(end - 1, 0) * ENTRY_BYTES)

    @property
    def _stored_entries(self) -> int:
        return self.max_offset

    def apply_columns(self, columns: QueueColumns) -> None:
        """Writes the entries of records, in order.

        Raises:
            DiskFull: there is no room for them.
        """
        packed, offsets, log_offsets = columns.packed(), columns.queue_offsets, columns.log_offsets
        if offsets == list(range(self.max_offset, self.max_offset + len(offsets))):
            self.add_all(packed, log_offsets)
            return
        for number, (offset, log_offset) in enumerate(zip(offsets, log_offsets, strict=True)):
            if offset != self.max_offset:
                self._jump_to(offset, log_offset)
            self.add(packed[number * ENTRY_BYTES : (number + 1) * ENTRY_BYTES], log_offset)

    def add_all(self, packed: bytes, log_offsets: Sequence[int]) -> None:
        """Writes the next entries as `add` does, given as the bytes of the file."""
        done, count = 0, len(log_offsets)
        while done < count:
            # The first entry of a file makes the file; then it is known how many more fit.
            self.add(packed[done * ENTRY_BYTES : (done + 1) * ENTRY_BYTES], log_offsets[done])
            done += 1
            if count - done > self.room_end - self.max_offset:
                self._reserve(self.max_offset, count - done)
            done += self._fill(memoryview(packed)[done * ENTRY_BYTES :])

    def _fill(self, packed: memoryview) -> int:
        """Writes entries as far as there is room. Returns how many were written."""
        count = min(self.room_end - self.max_offset, len(packed) // ENTRY_BYTES)
        at = (self.max_offset - self.base) * ENTRY_BYTES
        self.buffer[at : at + count * ENTRY_BYTES] = packed[: count * ENTRY_BYTES]
        self.max_offset += count
        if self.arrival is not None:
            self.arrival.rise(self.max_offset)
        return count

    def add(self, entry: bytes, log_offset: int) -> None:
        """Writes the next entry, given as the bytes of the file.

        Raises:
            DiskFull: there is no room for the next file, unless `make_room` was called.
        """
        offset = self.max_offset
        if not self.base <= offset < self.room_end:
            self._enter(self._segments.make(offset * ENTRY_BYTES))
            self._reserve(offset, 1)
        at = (offset - self.base) * ENTRY_BYTES
        self.buffer[at : at + ENTRY_BYTES] = entry
        self.max_offset = offset + 1
        if self.unsynced_log_offset < 0:
            self.unsynced_log_offset = log_offset
        self.is_used = True
        if self.arrival is not None:
            self.arrival.rise(offset + 1)

    def _jump_to(self, offset: int, log_offset: int) -> None:
        """Moves the end of the queue to another offset, which only a replay needs.

        If it moves forwards, the gap is filled with blanks; a queue without entries begins there.
        If it moves backwards, the topic was deleted and made again: later entries are dropped.
        """
        first = self.max_offset
        if offset < first:
            self._truncate(offset, log_offset, is_torn=True)
            return
        if first == self._segments.start // ENTRY_BYTES:
            self._segments.remove_from(0)
            first = offset - offset % (self._segments.file_bytes // ENTRY_BYTES)
            self.min_offset = offset
            log_offset = 0
        self._blank(first, offset, log_offset)
        self.max_offset = offset

    def begin_at(self, offset: int) -> None:
        """Has a queue without entries begin at this offset: the messages before it are gone."""
        self._segments.remove_from(0)
        before = offset - 1  # its file is kept, because it shows the offset of the next message
        self._blank(before - before % (self._segments.file_bytes // ENTRY_BYTES), offset, 0)
        self.min_offset = self.max_offset = offset

    def _blank(self, first: int, end: int, log_offset: int) -> None:
        """Fills entries [first, end) with blanks."""
        blank = ENTRY.pack(log_offset, BLANK_SIZE, 0)
        while first < end:
            segment = self._segments.make(first * ENTRY_BYTES)
            last = min(end, segment.end // ENTRY_BYTES)
            segment.reserve(first * ENTRY_BYTES, last * ENTRY_BYTES)
            at = first * ENTRY_BYTES - segment.start
            segment.buffer[at : at + (last - first) * ENTRY_BYTES] = blank * (last - first)
            first = last

    def position(self, offset: int) -> tuple[int, int]:
        """Log offset and size of the record at a queue offset that is in the queue."""
        segment = self._segments.at(offset * ENTRY_BYTES)
        at = offset * ENTRY_BYTES - segment.start
        found: tuple[int, int] = _POSITION.unpack_from(segment.buffer, at)
        return found

    def entries(self, offset: int, count_max: int) -> memoryview:
        """Entries from a queue offset on: at most `count_max`, and only from its file.

        Raises:
            OffsetOutOfRange: no file holds the first.
        """
        self.is_used = True
        if self.base <= offset < self._end:
            buffer, base, end = self.buffer, self.base, self._end
        else:
            segment = self._segments.at(offset * ENTRY_BYTES)
            buffer = segment.buffer
            base, end = segment.start // ENTRY_BYTES, segment.end // ENTRY_BYTES
        last = min(offset + count_max, self.max_offset, end)
        return buffer[(offset - base) * ENTRY_BYTES : (last - base) * ENTRY_BYTES]

    def place(self, offset: int, count: int) -> tuple[Segment, int]:
        """The file that holds an offset, and the offset up to which it holds the next `count`.

        Raises:
            OffsetOutOfRange: no file holds the first.
        """
        segment = self._segments.at(offset * ENTRY_BYTES)
        return segment, min(offset + count, self.max_offset, segment.end // ENTRY_BYTES)

    def next_file_offset(self, offset: int) -> int:
        """The first queue offset of the file after the one that holds `offset`."""
        per_file = self._segments.file_bytes // ENTRY_BYTES
        return offset - offset % per_file + per_file

    def first_offset_where(self, holds: Callable[[int, int], bool]) -> int:
        """The first offset for whose record `holds` is true; `max_offset` if there is none.

        Args:
            holds: is called with log offset and size of a record. It must be false for all records
                before a place and true for all behind it; entries without a file count as false.
        """

        def is_there_and_holds(offset: int) -> bool:
            try:
                return holds(*self.position(offset))
            except OffsetOutOfRange:
                return False

        offsets = range(self.min_offset, self.max_offset)
        return self.min_offset + bisect_left(offsets, True, key=is_there_and_holds)

    def cut(self, log_offset: int, *, is_torn: bool) -> int:
        """Drops the entries of records at or after a log offset.

        Returns:
            Log offset of the newest record left; -1 if none.
        """
        self.unsynced_log_offset = -1
        self._truncate(self.end_before(log_offset), log_offset, is_torn=is_torn)
        self._synced_entries = self.max_offset
        if self.max_offset == self._segments.start // ENTRY_BYTES:
            return -1
        newest, size = self.position(self.max_offset - 1)
        return -1 if size == BLANK_SIZE else newest

    def end_before(self, log_offset: int) -> int:
        """The first entry that is empty, or whose record is at or after a log offset.

        Entries before it are whole: they were synced before those records were written. Behind it
        there may be any bytes, and files may be missing. So the last file whose first entry is
        still wanted contains the place.
        """

        def is_unwanted(offset: int) -> bool:
            segment = self._segments.at(offset * ENTRY_BYTES)
            at = offset * ENTRY_BYTES - segment.start  # it may never have been written
            start, size = _POSITION.unpack(segment.file[at : at + _POSITION.size])
            return bool(size <= 0 or start >= log_offset or start < 0)

        for position in reversed(self._segments.starts):
            first = position // ENTRY_BYTES
            if not is_unwanted(first):
                offsets = range(first, (position + self._segments.file_bytes) // ENTRY_BYTES)
                return first + bisect_left(offsets, True, key=is_unwanted)
        return 0

    def _truncate(self, offset: int, log_offset: int, *, is_torn: bool) -> None:
        """Makes `offset` the end of the queue."""
        self.max_offset = offset
        position = offset * ENTRY_BYTES
        keeps_first = position >= self._segments.start
        self._segments.remove_from(max(position, self._segments.start + 1) if keeps_first else 0)
        self._end_with(offset, log_offset, is_torn=is_torn)

    def set_log_start(self, log_start: int) -> None:
        """Moves `min_offset` to the first message that the log still has.

        Files that hold only earlier entries are removed. The file with the last entry is always
        kept, because it shows the offset of the next message.
        """

        def is_there(start: int, size: int) -> bool:
            return start >= log_start and not (start == 0 and size == BLANK_SIZE)

        self.min_offset = max(self.min_offset, self._segments.start // ENTRY_BYTES)
        self.min_offset = self.first_offset_where(is_there)
        self._segments.remove_before(min(self.min_offset, self.max_offset - 1) * ENTRY_BYTES)

    def remove(self) -> None:
        """Removes its files; it begins at offset 0 again."""
        self._leave()
        self._segments.remove_from(0)
        self.min_offset = self.max_offset = self._synced_entries = 0
        self.unsynced_log_offset = -1
