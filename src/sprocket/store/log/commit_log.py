"""The commit log: all records of all topics, one after the other, in files of one size.

A record never crosses the end of a file. If the next record does not fit with 8 bytes to spare, the
rest of the file is marked blank (its size, then the blank magic) and the record begins the next
file. Behind the last record there are zeros.

Before a record is written into a mapping, a system call has written zeros to that part of the file.
So a full disk is an error of that call; a write to the mapping would kill the process.

Source: CommitLog.DefaultAppendMessageCallback of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange, StoreError
from sprocket.base.ports import Disk
from sprocket.message.hosts import V6_MORE_BYTES
from sprocket.message.offsets import LogOffset
from sprocket.message.record import (
    BLANK,
    BLANK_BYTES,
    BLANK_MAGIC,
    BORN_HOST_V6,
    STORED_AT,
    SYS_FLAG_AT,
    Buffer,
    parse,
)
from sprocket.store.config import StoreConfig
from sprocket.store.log.paths import LogPaths
from sprocket.store.log.segments import Segment, Segments
from sprocket.store.log.short_files import mend_short_files
from sprocket.store.log.whole import record_bytes

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_EMPTY = memoryview(b"")
_START, _END = itemgetter(0), itemgetter(1)

#: The least that is prepared at once. In the background it doubles each time, up to the maximum.
_PREPARED_BYTES_MIN = 1 << 18
_PREPARED_BYTES_MAX = 1 << 23


class CommitLog:
    """Where records are written and read.

    `base`, `buffer`, `room_end` and `end` are public so that an append needs no call: a record of n
    bytes is written at `buffer[end - base]` if `end + n <= room_end`, `end` rises by n, and
    `newest_ms` becomes its time.

    Attributes:
        folders: where its files are.
        end: log offset after the last record.
        base: log offset where the current file begins.
        buffer: the current file.
        room_end: log offset up to which records may reach; beyond it, call `ensure_space` first.
        newest_ms: when the last record was stored.
        is_low: set when `prepare` should be called soon.
    """

    __slots__ = (
        "_ahead_bytes", "_full_percent", "_segment", "base", "buffer", "end", "folders", "is_low",
        "newest_ms", "room_end", "segments",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, paths: LogPaths, file_bytes: int, *, full_percent: int = 100
    ) -> None:
        """
        Args:
            full_percent: with several folders, a disk fuller than this gets no new file.
        """
        several = len(paths.every) > 1
        self._full_percent = full_percent
        self.folders = paths.every
        self.segments = Segments(
            disk,
            paths.every[0],
            file_bytes,
            setting="mappedFileSizeCommitLog",
            others=paths.every[1:],
            home=partial(self._home, paths, disk) if several else None,
        )
        self.end = 0
        self.base = 0
        self.buffer = _EMPTY
        self.room_end = 0
        self.newest_ms = 0
        self.is_low = asyncio.Event()
        self._segment: Segment | None = None
        self._ahead_bytes = _PREPARED_BYTES_MIN

    def _home(self, paths: LogPaths, disk: Disk, number: int) -> str:
        return paths.home(disk, number, full_percent=self._full_percent)

    def change(self, config: StoreConfig) -> None:
        """Applies settings that may change while it is open."""
        self._full_percent = config.disk_forced_percent
        self.segments.read_ahead(config.read_ahead)

    def load(self) -> None:
        """Finds the files that are there; makes a next one good that is too short.

        Raises:
            ConfigError: the files were made with another size, or one is in two folders.
            StoreError: a file is cut.
            OSError: the disk failed.
        """
        self.segments.load()
        mend_short_files(self.segments)

    @property
    def start(self) -> LogOffset:
        """Log offset of the first record there is."""
        return LogOffset(self.segments.start)

    @property
    def record_bytes_max(self) -> int:
        """The largest record that a file can hold."""
        return self.segments.file_bytes - BLANK_BYTES

    @property
    def file_end(self) -> int:
        """Where the current file ends; `end` if there is none yet."""
        return self.end if self._segment is None else self._segment.end

    def set_end(self, end: int) -> None:
        """Sets the log offset of the next record. No file is made for it yet."""
        self.end = end
        if self.segments.has(end):
            segment = self.segments.at(end)
            segment.prepared_to = end
            self._enter(segment)
        else:
            self.base, self.buffer, self.room_end, self._segment = end, _EMPTY, end, None

    def ensure_space(self, size: int) -> None:
        """Prepares room at `end` for a record of this size, which a file must be able to hold.

        Raises:
            DiskFull: there is no room on the disk.
        """
        segment = self._segment
        if segment is None or self.end + size + BLANK_BYTES > segment.end:
            segment = self._roll()
        wanted = self.end + size + BLANK_BYTES
        if wanted > segment.prepared_to:
            least = min(segment.prepared_to + _PREPARED_BYTES_MIN, segment.end)
            segment.prepare_to(max(wanted, least))
        self.room_end = segment.prepared_to - BLANK_BYTES
        if segment.prepared_to < segment.end:
            self.is_low.set()

    async def prepare(self) -> None:
        """Prepares the next part of the current file in the background.

        Raises:
            DiskFull: there is no room; an append will try again.
            StoreError: the disk refuses it.
        """
        segment = self._segment
        if segment is None:
            return
        start = segment.prepared_to
        end = min(start + self._ahead_bytes, segment.end)
        if start == end:
            return
        await segment.prepare_ahead(start, end)
        self._ahead_bytes = min(2 * self._ahead_bytes, _PREPARED_BYTES_MAX)
        if segment is self._segment:
            self._set_room(segment)

    def _set_room(self, segment: Segment) -> None:
        """Allows records up to half of what is prepared, so that more is prepared in time."""
        prepared_to = segment.prepared_to
        if prepared_to < segment.end:
            prepared_to -= max(prepared_to - self.end, 0) // 2
        self.room_end = prepared_to - BLANK_BYTES

    def _roll(self) -> Segment:
        """Marks the rest of the current file blank and moves to the next file.

        Raises:
            DiskFull: there is no room for it; the log stays where it is.
        """
        next_start = self._start_after(self.end)
        segment = self.segments.make(next_start)
        if self._segment is not None and self.end < next_start:
            self._segment.prepare_to(min(self.end + BLANK_BYTES, next_start))
            BLANK.pack_into(self.buffer, self.end - self.base, next_start - self.end, BLANK_MAGIC)
        self.end = next_start
        self._enter(segment)
        return segment

    def prepare_next(self) -> None:
        """Makes the next file ahead of time if the current one is three quarters full.

        Raises:
            DiskFull: there is no room for it.
        """
        file_bytes = self.segments.file_bytes
        if self.buffer and self.end - self.base > file_bytes // 4 * 3:
            self.segments.make(self.base + file_bytes)

    def reserve(self, sizes: Iterable[int]) -> None:
        """Makes room for records of these sizes, so that `ensure_space` cannot fail for them.

        Raises:
            DiskFull: there is no room for them.
        """
        end = self.end
        segment = self._segment
        for size in sizes:
            if segment is None or end + size + BLANK_BYTES > segment.end:
                if segment is not None:
                    segment.prepare_to(min(end + BLANK_BYTES, segment.end))
                segment = self.segments.make(self._start_after(end))
                end = segment.start
            end += size
            segment.prepare_to(end + BLANK_BYTES)

    def begin_at(self, start: int) -> None:
        """Has a log without files begin at the log offset of a file's first byte."""
        self.segments.make(start)
        self.set_end(start)

    def write(self, records: Buffer) -> None:
        """Writes whole records that were made elsewhere for this place; they fit into the file.

        Raises:
            DiskFull: there is no room for them; the log is unchanged.
        """
        size = len(records)
        self.ensure_space(size)
        at = self.end - self.base
        self.buffer[at : at + size] = records
        self.end += size

    def write_behind(self, at: int, rest: Buffer) -> None:
        """Writes bytes behind the log's end, in its file; they do not count.

        Raises:
            DiskFull: there is no room for them.
        """
        segment = self._current()
        segment.prepare_to(at + len(rest))
        segment.buffer[at - segment.start : at - segment.start + len(rest)] = rest

    def end_file(self) -> None:
        """Marks the rest of the file blank, if there is room for the mark, and moves behind it.

        Raises:
            DiskFull: there is no room for the mark.
        """
        segment = self._current()
        if self.end + BLANK_BYTES <= segment.end:
            segment.prepare_to(self.end + BLANK_BYTES)
            BLANK.pack_into(
                segment.buffer, self.end - segment.start, segment.end - self.end, BLANK_MAGIC
            )
        self.end = segment.end

    def _current(self) -> Segment:
        """The file of the log's end; it is made if the end is the beginning of one."""
        segment = self._segment
        if segment is None or self.end == segment.end:
            segment = self._roll()
        return segment

    def _start_after(self, end: int) -> int:
        """Where the file begins that gets a record for which there is no room at `end`.

        Every record fits into an empty file. So if `end` is the beginning of a file, that file does
        not exist yet.
        """
        file_bytes = self.segments.file_bytes
        return -(-end // file_bytes) * file_bytes

    def _enter(self, segment: Segment) -> None:
        self._segment = segment
        self.base = segment.start
        self.buffer = segment.buffer
        self._set_room(segment)

    def slice(self, start: int, end: int) -> memoryview:
        """Bytes [start, end) of the log, which must be in one file; no copy.

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

    def slices(self, runs: Sequence[tuple[int, int]]) -> list[memoryview]:
        """As `slice`, for several ranges [start, end), at least one.

        Raises:
            OffsetOutOfRange: no file holds one of them.
        """
        first, last = min(map(_START, runs)), max(map(_END, runs))
        base, end, buffer = self.base, self.end, self.buffer
        if first < base:
            segment = self.segments.at(first)
            base, end, buffer = segment.start, segment.end, segment.buffer
        if last > end:  # they are in several files, or one is in none
            return [self.slice(*run) for run in runs]
        return [buffer[start - base : end - base] for start, end in runs]

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
            # Somebody may ask for any offset, also for one that has no disk space.
            found = parse(record_bytes(segment.file, at))
        except CorruptRecord as error:
            raise OffsetOutOfRange(f"no record begins at log offset {log_offset}") from error
        if found.log_offset != log_offset or log_offset + found.size > self.end:
            raise OffsetOutOfRange(f"no record begins at log offset {log_offset}")
        return segment.buffer[at : at + found.size]

    def stored_ms_at(self, log_offset: int) -> int:
        """When the record at a log offset was stored, ms; it is not checked that one begins there.

        Raises:
            OffsetOutOfRange: no file holds it.
        """
        segment = self.segments.at(log_offset)
        at = log_offset - segment.start
        if at + STORED_AT + V6_MORE_BYTES + _LONG.size > len(segment.buffer):
            raise OffsetOutOfRange(f"no record begins at log offset {log_offset}")
        sys_flag: int = _INT.unpack_from(segment.buffer, at + SYS_FLAG_AT)[0]
        place = at + STORED_AT + (V6_MORE_BYTES if sys_flag & BORN_HOST_V6 else 0)
        stored_ms: int = _LONG.unpack_from(segment.buffer, place)[0]
        return stored_ms

    async def sync(self, start: int, end: int) -> None:
        """Returns when bytes [start, end) of the log, and the last cut, are on the disk.

        Raises:
            OSError: the disk failed.
        """
        await self.segments.sync(start, end)

    def remove_first(self) -> None:
        """Removes the first file, unless it is the current one; slices of it stay valid."""
        end = self.segments.start + self.segments.file_bytes
        if end <= self.base:
            self.segments.remove_before(end)

    def cut(self, end: int, *, is_torn: bool) -> None:
        """Makes `end` the end of the log and removes everything behind it.

        Args:
            is_torn: the store has crashed. Then the rest of the file is cleared, because after
                another crash its old bytes could be taken for records. If false, it is cleared only
                if there are bytes other than zero at the place of the next record.
        """
        limit = self.segments.limit
        if end > limit:
            raise StoreError(f"the log ends at {limit} and cannot be cut at {end}")
        self.segments.remove_from(end if end % self.segments.file_bytes else max(end, 1))
        self.set_end(end)
        at = end - self.base
        if self._segment is not None and (
            is_torn or any(self._segment.file[at : at + BLANK_BYTES])
        ):
            self._segment.file.clear_from(at)

    def close(self) -> None:
        """Closes the files; slices that were given out stay valid."""
        self.buffer, self._segment = _EMPTY, None
        self.segments.close()
