"""Messages that are not in memory are brought there before they are read.

A read copies from mapped files; where a page is missing, the kernel stops the whole process until
the disk has given it. So a read that goes far back asks first, and loads in the background what is
missing and what comes next. What was written last is taken for being there, without asking.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from sprocket.base.errors import OffsetOutOfRange, StoreError
from sprocket.base.ports import MappedFile
from sprocket.store.commit_log import CommitLog
from sprocket.store.consume_queue import ENTRY, ENTRY_BYTES, ConsumeQueue

#: So much of the end of the log is taken for being in memory.
_HOT_BYTES = 32 * 1024 * 1024
#: The same of the end of a queue.
_HOT_ENTRIES = 256
#: So much is loaded at once, if readers may want it next.
_AHEAD_BYTES = 2 * 1024 * 1024
_AHEAD_ENTRIES = 8192
#: So many loads at a time; more would keep threads from flushing.
_LOADS_MAX = 2
#: A read touches entries, and records in one file or several; it is looked at so often.
_LOOKS_MAX = 8


class _Place(NamedTuple):
    """Bytes [start, end) of a file."""

    file: MappedFile
    start: int
    end: int


class Sought(NamedTuple):
    """What a read will look at.

    Attributes:
        queue: where.
        offset: from which queue offset on.
        entries: how many entries.
        bytes_max: how many bytes of records.
    """

    queue: ConsumeQueue
    offset: int
    entries: int
    bytes_max: int


class ColdReads:
    """Knows what is not in memory, and loads it."""

    __slots__ = ("_log", "_turns")

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._turns = asyncio.Semaphore(_LOADS_MAX)

    def is_cold(self, sought: Sought) -> bool:
        """Whether a read would have to wait for the disk."""
        return self._missing(sought) is not None

    async def load(self, sought: Sought) -> None:
        """Returns when a read need not wait, unless memory is so short that it goes again at once.

        Raises:
            StoreError: the disk failed.
        """
        for _ in range(_LOOKS_MAX):
            place = self._missing(sought)
            if place is None:
                return
            async with self._turns:
                if place.file.is_in_memory(place.start, place.end):
                    continue  # another reader's load brought it
                try:
                    await place.file.load(place.start, place.end)
                except OSError as error:
                    raise StoreError(f"cannot read {place.file.path}: {error}") from error

    def _missing(self, sought: Sought) -> _Place | None:
        """The first of what is sought that is not in memory, with what comes after it."""
        queue, offset = sought.queue, sought.offset
        if not queue.min_offset <= offset < queue.max_offset:
            return None
        try:
            segment, stop = queue.place(offset, sought.entries)
            if queue.max_offset - offset > _HOT_ENTRIES:
                first = offset * ENTRY_BYTES - segment.start
                if not segment.file.is_in_memory(first, stop * ENTRY_BYTES - segment.start):
                    more = min(first + _AHEAD_ENTRIES * ENTRY_BYTES, len(segment.buffer))
                    return _Place(segment.file, first, more)
            return self._missing_record(sought, stop)
        except OffsetOutOfRange:  # whoever reads it finds that out
            return None

    def _missing_record(self, sought: Sought, stop: int) -> _Place | None:
        log, queue, offset = self._log, sought.queue, sought.offset
        start, _ = queue.position(offset)
        if not log.start <= start < log.end - _HOT_BYTES:
            return None
        last, size = queue.position(stop - 1)
        if last + size - start <= sought.bytes_max:
            return self._missing_bytes(start, last + size)
        left = sought.bytes_max
        for start, size, _ in ENTRY.iter_unpack(queue.entries(offset, stop - offset)):
            if start >= log.start and (place := self._missing_bytes(start, start + size)):
                return place
            left -= size
            if left <= 0:
                break
        return None

    def _missing_bytes(self, start: int, end: int) -> _Place | None:
        segment = self._log.segments.at(start)
        first = start - segment.start
        end = min(end, segment.end, self._log.end)
        if segment.file.is_in_memory(first, end - segment.start):
            return None
        more = min(max(end, start + _AHEAD_BYTES), segment.end, self._log.end)
        return _Place(segment.file, first, more - segment.start)
