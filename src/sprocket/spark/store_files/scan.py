"""Reads the log of a broker from its files: lists them, and reads the records of one file.

Nothing is opened for writing and no lock is taken, so the files may be those of a stopped or a
running broker, or a copy. A record is whole if its lengths fit together and its log offset is the
position where it was found.

The log ends where no further whole record follows: the bytes behind are a torn tail, which a broker
would cut off, too. Everywhere else, bytes that are no records are damage.

Source: CommitLog, MappedFileQueue of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from zlib import crc32

import numpy as np

from sprocket.base.errors import CorruptRecord, UsageError
from sprocket.message.hosts import V6_MORE_BYTES
from sprocket.message.record import (
    BLANK,
    BLANK_BYTES,
    BLANK_MAGIC,
    BODY_CRC_AT,
    BORN_HOST_V6,
    CRC_MASK,
    FIXED_BYTES,
    LOG_OFFSET_AT,
    MAGIC,
    MAGIC_AT,
    MAGIC_LONG_TOPIC,
    STORED_AT,
    SYS_FLAG_AT,
    body_crc,
    parse,
)
from sprocket.spark.records import layout
from sprocket.spark.records.heads import Places
from sprocket.spark.records.layout import Layout
from sprocket.spark.store_files.synced import NOTHING_SYNCED, SyncedLog

#: The name of a log file is the log offset of its first byte with so many digits.
_NAME_DIGITS = 20
#: A run has at most so many records, and ends after so many bytes.
_RUN_RECORDS = 16384
_RUN_BYTES = 4 * 1024 * 1024
_SIZE = struct.Struct(">i")
_LONG = struct.Struct(">q")
_MAGICS = tuple(struct.pack(">i", magic) for magic in (MAGIC, MAGIC_LONG_TOPIC))
#: The bytes with which both begin.
_MAGIC_BEGIN = _MAGICS[0][:3]
#: So many bytes are checked for zeros at once.
_ZEROS_BYTES = 1024 * 1024

#: Called with begin, end and a description of bytes of a file that are no records.
Damaged = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log.

    Attributes:
        path: its path.
        start: log offset of its first byte.
        size: its size in bytes.
        is_last: whether no later file has records.
    """

    path: str
    start: int
    size: int
    is_last: bool

    @property
    def end(self) -> int:
        """Log offset behind its last byte."""
        return self.start + self.size


def log_files(store: str) -> list[LogFile]:
    """The files of a store's log, in order; empty ones at the end, made in advance, are left out.

    Args:
        store: the folder with `commitlog`; for a log on several disks the further folders with log
            files follow, separated by `;`.

    Raises:
        UsageError: a folder has no log.
    """
    names = [one for folder in _log_folders(store) for one in folder.iterdir()]
    found = sorted(
        (
            (str(one), int(one.name), one.stat().st_size)
            for one in names
            if one.name.isdecimal() and len(one.name) == _NAME_DIGITS
        ),
        key=lambda file: file[1],
    )
    while found and not _has_records(found[-1][0]):
        found.pop()
    return [
        LogFile(path, start, size, is_last=index == len(found) - 1)
        for index, (path, start, size) in enumerate(found)
    ]


def _log_folders(store: str) -> Iterator[Path]:
    for name in filter(None, map(str.strip, store.split(";"))):
        folder = Path(name)
        if (folder / "commitlog").is_dir():
            yield folder / "commitlog"
        elif folder.is_dir() and any(len(one.name) == _NAME_DIGITS for one in folder.iterdir()):
            yield folder
        else:
            raise UsageError(f"{name} is no folder of a broker's store: it has no commitlog")


def root_of(store: str) -> Path:
    """The folder of a store that has everything but the log: the first one."""
    return Path(store.split(";")[0].strip())


def _has_records(path: str) -> bool:
    with open(path, "rb") as file:
        return any(file.read(BLANK_BYTES))


def first_stored_ms(file: LogFile) -> int | None:
    """Store time of the first record of a file, ms; None if the file begins with no record."""
    with open(file.path, "rb") as opened:
        head = opened.read(STORED_AT + _LONG.size + V6_MORE_BYTES)
    if len(head) < STORED_AT + _LONG.size + V6_MORE_BYTES:
        return None
    if head[MAGIC_AT : MAGIC_AT + _SIZE.size] not in _MAGICS:
        return None
    more = V6_MORE_BYTES if head[SYS_FLAG_AT + 3] & BORN_HOST_V6 else 0
    (stored_ms,) = _LONG.unpack_from(head, STORED_AT + more)
    return int(stored_ms)


def _written_to(descriptor: int, size: int) -> int:
    """The place in a file behind which there is only a hole; its size if that is unknown."""
    if sys.platform == "win32" or not hasattr(os, "SEEK_DATA"):
        return size
    at = 0
    try:
        while at < size:
            start = os.lseek(descriptor, at, os.SEEK_DATA)
            at = os.lseek(descriptor, start, os.SEEK_HOLE)
    except OSError as error:
        return at if error.errno == errno.ENXIO else size
    return at


def _cut(sizes: Places) -> Iterator[tuple[int, int]]:
    """Cuts records with these sizes into runs: the index of the first, and that behind the last."""
    ends = np.cumsum(sizes)
    first = begin = 0
    while first < len(ends):
        last = int(np.searchsorted(ends, begin + _RUN_BYTES, "right"))
        last = min(max(last, first + 1), first + _RUN_RECORDS)
        yield first, last
        first, begin = last, int(ends[last - 1])


class LogReader:
    """Reads records of one file. Use it with `with`.

    Args:
        file: the file.
        checks_bodies: whether all bodies are compared with their checksums.
        damaged: called for bytes that are no records; reading continues behind them.
        synced: the records of the last file that are on the disk; other bodies in it are always
            compared with their checksums.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(
        self,
        file: LogFile,
        *,
        checks_bodies: bool,
        damaged: Damaged,
        synced: SyncedLog = NOTHING_SYNCED,
    ) -> None:
        self.file = file
        self._synced = NOTHING_SYNCED if checks_bodies else synced
        self._checks_bodies = checks_bodies or file.is_last
        self._damaged = damaged
        with open(file.path, "rb") as opened:
            self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            #: Nothing was written behind it. It is not read either: on tmpfs that takes space.
            self._written_to = _written_to(opened.fileno(), len(self._map))
        #: Arrays keep the map open, so all of them are made of this one view.
        self._view = memoryview(self._map)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Arrays of a batch may still use the map; it is unmapped with the last of them.
        self._view = memoryview(b"")

    def runs(self, begin: int = 0, end: int | None = None) -> Iterator[Layout]:
        """The records that begin in [begin, end), in runs of consecutive records.

        Args:
            begin, end: positions in the file at which records begin, or its end.

        Raises:
            CorruptRecord: no record begins at `end`.
        """
        size = len(self._view)
        end = size if end is None else min(end, size)
        at = begin
        while at < end:
            places, stop = self._run(at, end)
            if len(places.starts):
                yield places
            at = self._pass(at, end) if stop == at else stop
        if at > end:
            raise CorruptRecord(f"{self.file.path}: no record begins at {end}")

    def records(self, starts: Places, sizes: Places) -> Iterator[Layout]:
        """The records that begin at these positions and have these sizes, in runs."""
        for first, last in _cut(sizes):
            begin, end = starts[first:last], starts[first:last] + sizes[first:last]
            fits = (end - begin >= FIXED_BYTES) & (begin >= 0) & (end <= len(self._view))
            places = self._checked(begin[fits], end[fits]) if fits.all() else None
            if places is None:
                yield from self._one_by_one(begin.tolist(), end.tolist())
            elif len(places.starts):
                yield places

    def next_record(self, at: int, end: int | None = None) -> int | None:
        """The position of the next whole record, at `at` or behind it; None if there is none."""
        end = len(self._view) if end is None else min(end, len(self._view))
        place = self._next_magic(at + MAGIC_AT)
        while 0 <= place < end + MAGIC_AT:
            if self._is_record(place - MAGIC_AT):
                return place - MAGIC_AT
            place = self._next_magic(place + 1)
        return None

    def _next_magic(self, at: int) -> int:
        """The next position that may be a magic's, at `at` or behind it; -1 if there is none."""
        # A log often ends with hundreds of MB of zeros. `find` is slow on them, numpy is not.
        while at < self._written_to:
            stop = min(at + _ZEROS_BYTES, self._written_to)
            if np.count_nonzero(np.frombuffer(self._view[at:stop], np.bool_)):
                place = self._map.find(_MAGIC_BEGIN, at, stop + len(_MAGIC_BEGIN) - 1)
                if place >= 0:
                    return place
            at = stop
        return -1

    def _run(self, at: int, end: int) -> tuple[Layout, int]:
        """The whole records from a position on, and the position of the first that is not whole."""
        # A check of all records at once costs little more than that of one. Only if it fails, a
        # binary search finds how many of them are whole.
        starts, stop = self._step(at, end)
        begin = np.array(starts, np.int64)
        ends = np.append(begin[1:], stop)[: len(begin)]
        places = self._checked(begin, ends)
        if places is not None:
            return places, stop
        whole, beyond = 0, len(starts)
        while beyond - whole > 1:
            middle = (whole + beyond) // 2
            if self._checked(begin[:middle], ends[:middle]) is None:
                beyond = middle
            else:
                whole = middle
        places = self._checked(begin[:whole], ends[:whole])
        assert places is not None, "as many are whole"
        return places, starts[whole]

    def _step(self, at: int, end: int) -> tuple[list[int], int]:
        """Positions of records found by their sizes alone, and the position where that ends."""
        # A scan spends most of its time in this loop, the only one over records. So it only adds
        # sizes; `_checked` checks all records of the run at once later.
        view, size_at, size = self._view, _SIZE.unpack_from, FIXED_BYTES
        room = len(view)
        last = min(end, at + _RUN_BYTES, room - FIXED_BYTES + 1, self._written_to)
        found: list[int] = []
        add = found.append
        for _ in range(_RUN_RECORDS):
            if at >= last:
                break
            add(at)
            (size,) = size_at(view, at)
            at += size
            if size < FIXED_BYTES:
                break
        if found and (size < FIXED_BYTES or at > room or self._is_blank(found[-1], size)):
            at = found.pop()
        return found, at

    def _is_blank(self, at: int, size: int) -> bool:
        """Whether a blank mark is there that reaches to the end of the file: it is unused."""
        return at + size == len(self._view) and BLANK.unpack_from(self._view, at)[1] == BLANK_MAGIC

    def _checked(self, begin: Places, end: Places) -> Layout | None:
        """The layout of records; None if one of them is not whole."""
        try:
            places = layout.lay_out_at(self._view, begin, end)
        except CorruptRecord:
            return None
        if len(begin) == 0:
            return places
        sizes = places.of(0, "i4")
        logs = places.of(LOG_OFFSET_AT, "i8")
        if not ((sizes == end - begin) & (logs == begin + self.file.start)).all():
            return None
        return None if self._checks_bodies and not self._has_right_bodies(places) else places

    def _has_right_bodies(self, places: Layout) -> bool:
        view = self._view
        stored_ms = places.of(STORED_AT, "i8")
        unsure = self._synced.missing(places.starts + self.file.start, stored_ms)
        if len(unsure) == 0:
            return True
        spans = zip(
            places.bodies[unsure].tolist(),
            places.body_ends[unsure].tolist(),
            places.of(BODY_CRC_AT, "i4")[unsure].tolist(),
            strict=True,
        )
        return all(crc32(view[a:b]) & CRC_MASK == crc & CRC_MASK for a, b, crc in spans)

    def _checked_alone(self, start: int, end: int) -> Layout | None:
        return self._checked(np.array([start], np.int64), np.array([end], np.int64))

    def _one_by_one(self, starts: list[int], ends: list[int]) -> Iterator[Layout]:
        """Checks each record alone, for runs in which one is not whole."""
        for start, end in zip(starts, ends, strict=True):
            inside = 0 <= start <= end - FIXED_BYTES and end <= len(self._view)
            places = self._checked_alone(start, end) if inside else None
            if places is None:
                self._damaged(start, end, "a queue has a record here, and there is none")
            else:
                yield places

    def _is_record(self, at: int) -> bool:
        """Whether a whole record begins there, with that position as its log offset."""
        if at < 0 or len(self._view) - at < FIXED_BYTES:
            return False
        (log_offset,) = _LONG.unpack_from(self._view, at + LOG_OFFSET_AT)
        if log_offset != self.file.start + at:
            return False
        try:
            record = parse(self._view, at)
        except CorruptRecord:
            return False
        return not self._checks_bodies or body_crc(record.body) == record.body_crc & CRC_MASK

    def _pass(self, at: int, end: int) -> int:
        """The position to continue at, behind one at which no record begins.

        Reports the bytes between as damage, unless they are a blank end or a torn tail.
        """
        left = len(self._view) - at
        if left < BLANK_BYTES or (
            at < self._written_to and self._is_blank(at, _SIZE.unpack_from(self._view, at)[0])
        ):
            return end
        following = self.next_record(at + 1)
        if following is None and self.file.is_last:
            return end
        behind = len(self._view) if following is None else following
        self._damaged(at, behind, f"{behind - at} bytes are no records")
        return min(behind, end) if following is None else following
