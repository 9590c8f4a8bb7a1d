"""Cold reads: messages that are not in memory are loaded before they are read.

A read copies from mapped files; where a page is missing, the kernel stops the whole process until
the disk has delivered it. So a read of old messages checks first, and loads in the background what
is missing and what comes next. The end of the log is assumed to be in memory, without a check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from sprocket.base.errors import OffsetOutOfRange, StoreError
from sprocket.base.ports import MappedFile
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.reading.by_time import time_of
from sprocket.store.views.batch_queue import BatchQueue
from sprocket.store.views.consume_queue import ENTRY, ENTRY_BYTES, ConsumeQueue
from sprocket.store.views.key_index import KeyIndex

#: This much of the end of the log is assumed to be in memory.
_HOT_BYTES = 32 * 1024 * 1024
#: The same for the end of a queue.
_HOT_ENTRIES = 256
#: This much is loaded at once, because readers are likely to need it next.
_AHEAD_BYTES = 2 * 1024 * 1024
_AHEAD_ENTRIES = 8192
#: At most this many loads run at a time; more would take the threads that flushes need.
_LOADS_MAX = 2
#: Records with a smaller gap are checked together, because a check costs more than the gap.
_NEAR_BYTES = 32 * 1024
#: The first bytes of a record, which hold its store time; and a size that no record exceeds.
_HEAD_BYTES = 96
_RECORD_BYTES_MAX = 1 << 24
#: A read needs entries, and records in one file or several; so it is checked at most this often.
_LOOKS_MAX = 8


class _ByteRange(NamedTuple):
    """Bytes [start, end) of a file."""

    file: MappedFile
    start: int
    end: int


class ReadPlan(NamedTuple):
    """What a read will use.

    Attributes:
        queue: the queue.
        offset: the first queue offset.
        entries: how many entries.
        bytes_max: how many bytes of records.
    """

    queue: ConsumeQueue
    offset: int
    entries: int
    bytes_max: int


class ColdReads:
    """Finds out what is not in memory, and loads it."""

    __slots__ = ("_by_name", "_index", "_log", "_turns")

    def __init__(
        self, log: CommitLog, by_name: Mapping[tuple[str, int], ConsumeQueue], index: KeyIndex
    ) -> None:
        self._log = log
        self._by_name = by_name
        self._index = index
        self._turns = asyncio.Semaphore(_LOADS_MAX)

    def is_cold(self, plan: ReadPlan) -> bool:
        """Whether a read would have to wait for the disk."""
        return self._missing(plan) is not None

    async def load(self, plan: ReadPlan) -> None:
        """Returns when a read need not wait for the disk.

        If memory is very short, the kernel may already have dropped the data again.

        Raises:
            StoreError: the disk failed.
        """
        for _ in range(_LOOKS_MAX):
            place = self._missing(plan)
            if place is None:
                return
            await self._bring(*place)

    async def load_record(self, log_offset: int) -> None:
        """Loads the record that should begin at a log offset.

        Raises:
            StoreError: the disk failed.
        """
        log = self._log
        if not log.start <= log_offset < log.end - _HOT_BYTES:
            return
        try:
            segment = log.segments.at(log_offset)
        except OffsetOutOfRange:  # the read itself will raise it
            return
        at = log_offset - segment.start
        size_bytes = len(segment.buffer)
        await self._bring(segment.file, at, min(at + _HEAD_BYTES, size_bytes))
        size = int.from_bytes(segment.file[at : at + 4], "big", signed=True)
        if 0 < size <= _RECORD_BYTES_MAX:
            await self._bring(segment.file, at, min(at + size, size_bytes))

    async def load_log(self, start: int, end: int) -> None:
        """Loads bytes [start, end) of the log, which are in one file.

        Raises:
            StoreError: the disk failed.
        """
        log = self._log
        if end <= log.end - _HOT_BYTES and log.start <= start:
            segment = log.segments.at(start)
            await self._bring(segment.file, start - segment.start, end - segment.start)

    async def load_search(self, topic: str, queue_number: int, time_ms: int) -> None:
        """Loads what the search for the first message at or after a time will read.

        Raises:
            StoreError: the disk failed.
        """
        queue = self._by_name.get((topic, queue_number))
        if queue is None:
            return
        first = queue.min_offset
        low, high = 0, queue.max_offset - first
        while low < high:
            middle = (low + high) // 2
            await self._load_time(queue, first + middle)
            if time_of(self._log, queue, first + middle) >= time_ms:
                high = middle
            else:
                low = middle + 1

    async def load_time(self, topic: str, queue_number: int, offset: int) -> None:
        """Loads the parts of entry and record from which the store time of a message is read.

        Raises:
            StoreError: the disk failed.
        """
        queue = self._by_name.get((topic, queue_number))
        if queue is not None:
            await self._load_time(queue, offset)

    async def _load_time(self, queue: ConsumeQueue, offset: int) -> None:
        log = self._log
        if not queue.min_offset <= offset < queue.max_offset:
            return
        try:
            if not isinstance(queue, BatchQueue):  # their units are few
                segment, _ = queue.place(offset, 1)
                at = offset * ENTRY_BYTES - segment.start
                await self._bring(segment.file, at, at + ENTRY_BYTES)
            start, _ = queue.position(offset)
            if log.start <= start < log.end - _HOT_BYTES:
                segment = log.segments.at(start)
                at = start - segment.start
                await self._bring(segment.file, at, min(at + _HEAD_BYTES, len(segment.buffer)))
        except OffsetOutOfRange:  # removed meanwhile
            return

    async def load_found(
        self, topic: str, key: str, *, count_max: int, begin_ms: int, end_ms: int
    ) -> None:
        """Loads what a search by key will read, and the records that it finds.

        Raises:
            StoreError: the disk failed.
        """
        for place in self._index.touched(topic, key, begin_ms=begin_ms, end_ms=end_ms):
            await self._bring(*place)
        found = self._index.find(topic, key, begin_ms=begin_ms, end_ms=end_ms)
        for log_offset in list(islice(found, count_max)):
            await self.load_record(log_offset)

    async def _bring(self, file: MappedFile, start: int, end: int) -> None:
        if file.is_in_memory(start, end):
            return
        async with self._turns:
            if file.is_in_memory(start, end):
                return  # another reader has loaded it
            try:
                await file.load(start, end)
            except OSError as error:
                raise StoreError(f"cannot read {file.path}: {error}") from error

    def _missing(self, plan: ReadPlan) -> _ByteRange | None:
        """The first part of a read that is not in memory, extended by what comes after it."""
        queue, offset = plan.queue, plan.offset
        if not queue.min_offset <= offset < queue.max_offset:
            return None
        try:
            if isinstance(queue, BatchQueue):
                return self._missing_record(plan, min(offset + plan.entries, queue.max_offset))
            segment, stop = queue.place(offset, plan.entries)
            if queue.max_offset - offset > _HOT_ENTRIES:
                first = offset * ENTRY_BYTES - segment.start
                if not segment.file.is_in_memory(first, stop * ENTRY_BYTES - segment.start):
                    more = min(first + _AHEAD_ENTRIES * ENTRY_BYTES, len(segment.buffer))
                    return _ByteRange(segment.file, first, more)
            return self._missing_record(plan, stop)
        except OffsetOutOfRange:  # the read itself will raise it
            return None

    def _missing_record(self, plan: ReadPlan, stop: int) -> _ByteRange | None:
        log, queue, offset = self._log, plan.queue, plan.offset
        start, _ = queue.position(offset)
        if not log.start <= start < log.end - _HOT_BYTES:
            return None
        last, size = queue.position(stop - 1)
        if last + size - start <= plan.bytes_max:
            return self._missing_bytes(start, last + size)
        left, run_start, run_end = plan.bytes_max, 0, 0
        for start, size, _ in ENTRY.iter_unpack(queue.entries(offset, stop - offset)):
            if start < log.start:
                continue
            if not run_end <= start <= run_end + _NEAR_BYTES:
                if run_end and (place := self._missing_bytes(run_start, run_end)):
                    return place
                run_start = start
            run_end = start + size
            left -= size
            if left <= 0:
                break
        return self._missing_bytes(run_start, run_end) if run_end else None

    def _missing_bytes(self, start: int, end: int) -> _ByteRange | None:
        end = min(end, self._log.end)
        while start < end:
            segment = self._log.segments.at(start)
            first, stop = start - segment.start, min(end, segment.end)
            if not segment.file.is_in_memory(first, stop - segment.start):
                more = min(max(stop, start + _AHEAD_BYTES), segment.end, self._log.end)
                return _ByteRange(segment.file, first, more - segment.start)
            start = segment.end
        return None
