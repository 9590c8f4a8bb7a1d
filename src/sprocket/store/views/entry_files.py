"""The files of a queue's entries, all of one size: room on the disk, end, and synchronization."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from sprocket.base.errors import DiskFull
from sprocket.store.log.segments import Segment, Segments

_EMPTY = memoryview(b"")


class EntryFiles(ABC):
    """Entries by their number in the whole run of files.

    Attributes:
        unsynced_log_offset: log offset of the first record whose entry is not known to be on the
            disk; -1 if all are.
        buffer, base: the current file, and the number of its first entry.
        room_end: entries before this number have room on the disk.
        is_used: whether it was written or read since the last check for idle queues.
    """

    __slots__ = (
        "_end", "_is_uncleared", "_segments", "_synced_entries", "base", "buffer", "is_used",
        "room_end", "unsynced_log_offset",
    )  # fmt: skip

    #: Bytes written for a record, and for how many disk space is allocated at a time: 64 KiB.
    _entry_bytes: ClassVar[int]
    _reserved_entries: ClassVar[int]

    def __init__(self, segments: Segments) -> None:
        self.unsynced_log_offset = -1
        self.is_used = False
        self._synced_entries = 0
        #: Whether there may be old bytes behind the last entry, after a crash.
        self._is_uncleared = False
        self._segments = segments
        self.buffer = _EMPTY
        self.base = 0
        self._end = 0  # behind the last entry that it can hold
        self.room_end = 0

    @property
    def has_files(self) -> bool:
        """Whether anything was ever stored in it."""
        return bool(self._segments.starts)

    @property
    def files(self) -> Segments:
        """Its files."""
        return self._segments

    @property
    @abstractmethod
    def _stored_entries(self) -> int:
        """Number of the entry behind the last one."""

    @property
    def unsynced_bytes(self) -> int:
        """Bytes that are not known to be on the disk."""
        return (self._stored_entries - self._synced_entries) * self._entry_bytes

    def make_room(self, count: int = 1) -> None:
        """Makes the files for the next entries, so that `add` cannot fail.

        Raises:
            DiskFull: there is no room for them.
        """
        stored, entry_bytes = self._stored_entries, self._entry_bytes
        if self.base <= stored and stored + count <= self.room_end:
            return
        per_file = self._segments.file_bytes // entry_bytes
        for number in range(stored - stored % per_file, stored + count, per_file):
            self._segments.make(number * entry_bytes)
        self._reserve(stored, count)

    def _reserve(self, number: int, count: int) -> None:
        """Allocates disk space for entries from a number on, in the files that exist."""
        entry_bytes, end = self._entry_bytes, number + max(count, self._reserved_entries)
        while number < end and self._segments.has(number * entry_bytes):
            segment = self._segments.at(number * entry_bytes)
            last = min(end, segment.end // entry_bytes)
            try:
                segment.reserve(number * entry_bytes, last * entry_bytes)
            except DiskFull:  # there may still be room for `count` entries
                end = number + count
                last = min(end, segment.end // entry_bytes)
                segment.reserve(number * entry_bytes, last * entry_bytes)
            if segment.buffer is self.buffer:
                self.room_end = last
            number = last

    def _enter(self, segment: Segment) -> None:
        self.room_end = 0
        self.buffer = segment.buffer
        self.base = segment.start // self._entry_bytes
        self._end = segment.end // self._entry_bytes

    def _leave(self) -> None:
        """Has no current file any more."""
        self.buffer, self.base, self._end, self.room_end = _EMPTY, 0, 0, 0

    def _end_with(self, number: int, log_offset: int, *, is_torn: bool) -> None:
        """Has the next entry be the one of a number. The next sync clears the bytes behind it.

        Until then the records from `log_offset` on count as unsynced, so that a recovery would cut
        the queue here again.
        """
        self._synced_entries = min(self._synced_entries, number)
        self._leave()
        position = number * self._entry_bytes
        if not self._segments.has(position):
            return
        segment = self._segments.at(position)
        at = position - segment.start
        if is_torn or any(segment.file[at : at + self._entry_bytes]):
            self._is_uncleared = True
            if self.unsynced_log_offset < 0:
                self.unsynced_log_offset = log_offset
        self._enter(segment)

    async def sync(self) -> None:
        """Returns when all changes from before the call are on the disk.

        Raises:
            OSError: the disk failed.
        """
        stored = self._stored_entries
        start, end = self._synced_entries * self._entry_bytes, stored * self._entry_bytes
        if self._is_uncleared:
            self._is_uncleared = False
            if self._segments.has(end):
                segment = self._segments.at(end)
                segment.clear(end, segment.end)
                end = segment.end
        unsynced, self.unsynced_log_offset = self.unsynced_log_offset, -1
        try:
            await self._segments.sync(start, end)
        except BaseException:  # cancelled, or failed: it is not known to be on the disk
            self.unsynced_log_offset = unsynced
            raise
        self._synced_entries = max(self._synced_entries, stored)

    def unmap_idle(self) -> None:
        """Unmaps its files until it is used again."""
        self._leave()
        self._segments.unmap_all()
