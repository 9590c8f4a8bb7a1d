"""The log: all records of all topics, one after the other, in files of one size.

A record never crosses the end of a file. Where the next one does not fit with 8 bytes to spare, the
rest of the file is marked blank (its size, then the blank magic) and the record begins the next
file. Behind the last record there are zeros.

Source: CommitLog.DefaultAppendMessageCallback of RocketMQ 5.x.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange, StoreError
from sprocket.base.ports import Disk
from sprocket.message.offsets import LogOffset
from sprocket.message.record import BLANK_BYTES, BLANK_MAGIC, BORN_HOST_V6, parse
from sprocket.store.segments import Segment, Segments

_BLANK = struct.Struct(">ii")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_EMPTY = memoryview(b"")

_SYS_FLAG_AT = 36
_STORED_AT = 56
_STORED_AT_V6 = 68


class CommitLog:
    """Where records are written and read.

    `base`, `buffer`, `room_end` and `end` are there so that an append needs no call: a record of n
    bytes is written at `buffer[end - base]` if `end + n <= room_end`, and `end` rises by n.

    Attributes:
        end: log offset after the last record.
        base: log offset where the current file begins.
        buffer: the current file.
        room_end: log offset up to which records may reach now; beyond it `make_room` must be asked.
    """

    __slots__ = ("_cleared_to", "base", "buffer", "end", "room_end", "segments")

    def __init__(self, disk: Disk, directory: str, file_bytes: int) -> None:
        self.segments = Segments(disk, directory, file_bytes, setting="mappedFileSizeCommitLog")
        self.end = 0
        self.base = 0
        self.buffer = _EMPTY
        self.room_end = 0
        #: Bytes from `end` to here are zero. After a crash the rest of the file may be anything.
        self._cleared_to = 0

    @property
    def start(self) -> LogOffset:
        """Log offset of the first record there is."""
        return LogOffset(self.segments.start)

    @property
    def record_bytes_max(self) -> int:
        """The largest record that a file can hold."""
        return self.segments.file_bytes - BLANK_BYTES

    def stand_at(self, end: int) -> None:
        """Sets where the next record goes. No file is made for it yet."""
        self.end = end
        if self.segments.has(end):
            self._enter(self.segments.at(end))
        else:
            self.base, self.buffer, self.room_end = end, _EMPTY, end
            self._cleared_to = end

    def make_room(self, size: int) -> None:
        """Sees to it that a record of a size that a file can hold fits at `end`.

        Raises:
            DiskFull: there is no room for the next file.
        """
        while self.end + size > self.room_end and self.clear_ahead():
            pass
        if self.end + size > self.room_end:
            self._roll()

    def _roll(self) -> None:
        """Marks the rest of the current file blank and goes to the next.

        Raises:
            DiskFull: there is no room for it; the log stays where it is.
        """
        next_start = self._start_after(self.end)
        segment = self.segments.make(next_start)
        if self.buffer and self.end < next_start:
            _BLANK.pack_into(self.buffer, self.end - self.base, next_start - self.end, BLANK_MAGIC)
        self.end = next_start
        self._enter(segment)

    def prepare_next(self) -> None:
        """Makes the next file ahead of time, once the current one is three quarters full.

        Raises:
            DiskFull: there is no room for it.
        """
        file_bytes = self.segments.file_bytes
        if self.buffer and self.end - self.base > file_bytes // 4 * 3:
            self.segments.make(self.base + file_bytes)

    def reserve(self, sizes: Iterable[int]) -> None:
        """Makes the files that records of these sizes will need, so that `make_room` cannot fail.

        Raises:
            DiskFull: there is no room for them.
        """
        end = self.end
        room_end = self.base + self.segments.file_bytes - BLANK_BYTES if self.buffer else end
        for size in sizes:
            if end + size > room_end:
                segment = self.segments.make(self._start_after(end))
                end, room_end = segment.start, segment.end - BLANK_BYTES
            end += size

    def _start_after(self, end: int) -> int:
        """Where the file begins that takes a record for which there is no room at `end`.

        Every record fits into an empty file, so at the beginning of one there is no file yet.
        """
        file_bytes = self.segments.file_bytes
        return -(-end // file_bytes) * file_bytes

    def _enter(self, segment: Segment) -> None:
        self.base = segment.start
        self.buffer = segment.buffer
        self.room_end = segment.end - BLANK_BYTES
        self._cleared_to = segment.end

    @property
    def is_cleared(self) -> bool:
        """Whether all behind `end` is known to be zero."""
        return self._cleared_to >= self.base + len(self.buffer)

    def clear_ahead(self, byte_count: int = 1 << 20) -> bool:
        """Clears some of what may stand behind the end after a crash.

        Returns:
            False if there was nothing left to clear.
        """
        file_end = self.base + len(self.buffer)
        start = self._cleared_to
        if start >= file_end:
            return False
        end = min(max(start, self.end) + byte_count, file_end)
        self.segments.at(self.base).clear(start, end)
        self._cleared_to = end
        self.room_end = end - BLANK_BYTES
        return True

    def slice(self, start: int, end: int) -> memoryview:
        """Bytes [start, end) of the log, which must lie in one file; no copy.

        Raises:
            OffsetOutOfRange: no file holds them.
        """
        if start >= self.base:
            if end > self.end:
                raise OffsetOutOfRange(f"log offset {end} is beyond the end {self.end}")
            return self.buffer[start - self.base : end - self.base]
        segment = self.segments.at(start)
        if end > segment.end:
            raise OffsetOutOfRange(f"log offsets {start} to {end} are not in one file")
        return segment.buffer[start - segment.start : end - segment.start]

    def record_at(self, log_offset: int) -> memoryview:
        """The whole record that begins at a log offset.

        Raises:
            OffsetOutOfRange: no record begins there.
        """
        if not self.start <= log_offset < self.end:
            raise OffsetOutOfRange(
                f"log offset {log_offset} is not in the log, [{self.start}, {self.end})"
            )
        segment = self.segments.at(log_offset)
        at = log_offset - segment.start
        try:
            found = parse(segment.buffer, at)
        except CorruptRecord as error:
            raise OffsetOutOfRange(f"no record begins at log offset {log_offset}") from error
        if found.log_offset != log_offset or log_offset + found.size > self.end:
            raise OffsetOutOfRange(f"no record begins at log offset {log_offset}")
        return segment.buffer[at : at + found.size]

    def stored_ms_at(self, log_offset: int) -> int:
        """When the record at a log offset was stored; it is not checked.

        Raises:
            OffsetOutOfRange: no file holds it.
        """
        segment = self.segments.at(log_offset)
        at = log_offset - segment.start
        if at + _STORED_AT_V6 + _LONG.size > len(segment.buffer):
            raise OffsetOutOfRange(f"no record begins at log offset {log_offset}")
        sys_flag: int = _INT.unpack_from(segment.buffer, at + _SYS_FLAG_AT)[0]
        place = _STORED_AT_V6 if sys_flag & BORN_HOST_V6 else _STORED_AT
        stored_ms: int = _LONG.unpack_from(segment.buffer, at + place)[0]
        return stored_ms

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end) of the log are on the disk, and the zeros behind `end`.

        Raises:
            OSError: the disk failed.
        """
        await self.segments.sync(start, max(end, self._cleared_to))

    def cut(self, end: int, *, is_torn: bool) -> None:
        """Makes `end` the end of the log; what lies behind it is gone.

        Args:
            is_torn: after a crash: the rest of the file may hold what would be taken for records
                after another crash, and is cleared bit by bit, always before it is reached. If
                false this is done only if something stands where the next record goes.
        """
        limit = self.segments.limit
        if end > limit:
            raise StoreError(f"the log ends at {limit} and cannot be cut at {end}")
        self.segments.remove_from(end if end % self.segments.file_bytes else max(end, 1))
        self.stand_at(end)
        if not self.buffer:
            return
        at = end - self.base
        if is_torn or any(self.buffer[at : at + BLANK_BYTES]):
            self._cleared_to = end
            self.clear_ahead()

    def close(self) -> None:
        """Lets go of the files; slices that are out stay valid."""
        self.buffer = _EMPTY
        self.segments.close()
