"""The key index: the view of the log that finds records by their keys and unique ids.

It lags behind the log and adds many records at a time, because Java's text hash is slow in Python.
It keeps hashes only, and after a loss of power some entries may be missing or point to other
records. So a caller must compare each result with its record.

`index/` holds the files, named by the time when they were made. Files of another size are ignored.

Source: IndexService of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from sprocket.base.errors import DiskFull, StoreError
from sprocket.base.ports import Clock, Disk, MappedFile
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.views.entry import Entry, EntryColumns
from sprocket.store.views.index_file import HEADER, IndexFile, file_bytes, is_cut, name_of
from sprocket.store.views.key_hashes import KeyHashes
from sprocket.store.views.pending_keys import HashedKeys, PendingKeys, Places
from sprocket.store.views.record_batch import RecordBatch, keys_of
from sprocket.store.views.replay import entry_of, whole_record
from sprocket.store.views.tag_codes import TAGS_ONLY

logger = logging.getLogger(__name__)

#: At most this many records wait; then the next append adds them to the index.
_PENDING_MAX = 8192
_PAUSE_SECONDS = 0.05
_STEP = 256
#: At most this many entries wait for room on the disk; if there are more, all are dropped.
_LEFT_MAX = 1 << 18
#: A search reads at most this many entries, so that it cannot block the event loop for long.
_WALKED_MAX = 65_536
#: So many of the newest files are checked at a start.
_CHECKED_FILES = 4


class KeyIndex:
    """The index of one store. Entries go into the newest of its files."""

    __slots__ = (
        "_arrived", "_clock", "_cut_files", "_directory", "_disk", "_entries", "_files", "_hashes",
        "_is_failing", "_known_to", "_left", "_pending", "_slots", "_unsynced_files",
        "_unsynced_from",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, clock: Clock, *, directory: str, slots: int, entries: int
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._directory = directory
        self._slots = slots
        self._entries = entries
        self._hashes = KeyHashes()
        #: Records that are not in a file yet; `_arrived` is set when the first of them comes.
        self._pending = PendingKeys(self._hashes)
        self._arrived = asyncio.Event()
        #: Entries for which there was no room, oldest first.
        self._left: list[Places] = []
        self._unsynced_from = -1
        self._unsynced_files: list[IndexFile] = []
        self._is_failing = False
        #: Records up to this log offset may have entries already, left from before a cut.
        self._known_to = -1
        self._files: list[IndexFile] = []
        #: Files that are shorter than they were made.
        self._cut_files: list[str] = []

    def load(self) -> None:
        """Opens the files that exist.

        Raises:
            OSError: the disk failed.
        """
        size = file_bytes(self._slots, self._entries)
        for name in self._disk.names(self._directory):
            path = f"{self._directory}/{name}"
            if not name.isdigit():
                continue
            if self._disk.size(path) == size:
                mapped = self._disk.map(path, size)
                self._files.append(IndexFile(mapped, self._slots, self._entries))
            elif is_cut(self._disk.peek(path), self._slots):
                self._cut_files.append(path)
            else:
                logger.warning("%s has another size than the settings say: not used", path)

    @property
    def noted(self) -> dict[str, tuple[int, int]]:
        """For each file its number of entries and the log offset of its last record, by name."""
        return {
            file.path.rpartition("/")[2]: (file.count - 1, file.end_offset) for file in self._files
        }

    def lacks(self, noted: Mapping[str, tuple[int, int]], log_start: int) -> str | None:
        """What is missing of the files that were there; None if nothing is.

        Args:
            noted: the files as `noted` gave them at an earlier time.
            log_start: files whose records are all before this log offset may be gone.
        """
        if self._cut_files:
            return f"{self._cut_files[0]} is cut"
        known = self.noted
        for name, (entries, end) in noted.items():
            now, now_end = known.get(name, (0, 0))
            if end >= log_start and (now < entries or (now == entries and now_end != end)):
                return f"{self._directory}/{name} had {entries} keys and is not as it was"
        return None

    def fault(self, log: CommitLog) -> str | None:
        """What is wrong with some entries of the newest files; None if nothing is found."""
        for file in self._files[-_CHECKED_FILES:]:
            found, is_sound = file.sampled()
            if not is_sound:
                return f"{file.path} has entries that cannot be found"
            # A cut of the log leaves entries without a record, so a few wrong ones are no fault.
            known = [place for place in found if log.start <= place[1] < log.end]
            wrong = sum(not self._has_key(log, *place) for place in known)
            if wrong * 2 > len(known):
                return f"{file.path} has entries that lead to no message with their key"
        return None

    def _has_key(self, log: CommitLog, hashed: int, log_offset: int) -> bool:
        record = whole_record(log, log_offset, checks_body=False)
        if record is None:
            return False
        topics, words, _, _ = keys_of([entry_of(record, TAGS_ONLY)])
        return hashed in self._hashes.of_all(topics, words)

    def clear(self) -> None:
        """Removes all files: the index is built again."""
        for path in self._cut_files:
            self._disk.remove(path)
        self._cut_files.clear()
        for file in list(self._files):
            self._remove(file)
        self._known_to = -1

    @property
    def end(self) -> tuple[int, int]:
        """Time and log offset of the last record that has an entry; zeros if none has."""
        last = self._files[-1] if self._files else None
        return (last.end_ms, last.end_offset) if last else (0, 0)

    @property
    def unsynced_log_offset(self) -> int:
        """Log offset of the first record that may not be in a file on the disk; -1 if all are."""
        if self._left:
            return self._left[0][1][0]
        if self._unsynced_from < 0:
            return self._pending.first_log_offset
        return self._unsynced_from

    def apply_all(self, entries: Sequence[Entry] | EntryColumns) -> None:
        """Keeps records, which are added to the index later."""
        if len(entries):
            self._pending.add(entries)
            self._has_more(len(entries))

    def apply_hashed(self, keys: HashedKeys) -> None:
        """The same for records whose keys are hashed already."""
        before = self._pending.count
        self._pending.add_hashed(keys)
        self._has_more(self._pending.count - before)

    def _has_more(self, count: int) -> None:
        if self._pending.count == count:
            self._arrived.set()
        if self._pending.count >= _PENDING_MAX:
            self.catch_up()

    def apply_batch(self, batch: RecordBatch) -> None:
        """Adds the keys of records now."""
        self.catch_up()
        self._put(self._pending.places(batch.key_columns()))

    def catch_up(self, count_max: int | None = None) -> int:
        """Adds records that wait, the oldest first. Returns how many still wait."""
        pending = self._pending
        if not pending.count and self._left:
            self._put_left()
        least = 0 if count_max is None else max(pending.count - count_max, 0)
        while pending.count > least:
            self._put(pending.take(pending.count - least))
        return pending.count

    def _put(self, places: Places) -> None:
        """Makes entries; while there is no room for them, they wait."""
        log_offsets = places[1]
        if not log_offsets:
            return
        if self._unsynced_from < 0:
            self._unsynced_from = log_offsets[0]
        if log_offsets[0] <= self._known_to:
            places = self._unknown(*places)
        if places[0]:
            self._left.append(places)
            self._put_left()

    def _put_left(self) -> None:
        """Writes the entries that wait, as far as there is room."""
        # A full disk must not stop sends, so entries without room wait in memory. Above a limit
        # they are dropped. A message that cannot be found by key can still be consumed.
        left = self._left
        try:
            while left:
                file = self._files[-1] if self._files else self._make_file()
                if file.is_full:
                    file = self._make_file()
                if file not in self._unsynced_files:
                    self._unsynced_files.append(file)
                hashes, log_offsets, times_ms = left[0]
                done = file.put(hashes, log_offsets, times_ms)
                left[:1] = (
                    [(hashes[done:], log_offsets[done:], times_ms[done:])]
                    if done < len(hashes)
                    else []
                )
            self._is_failing = False
        except StoreError as error:
            if not self._is_failing:
                logger.error("new messages are not found by key until there is room: %s", error)
            self._is_failing = True
            if sum(len(hashes) for hashes, _, _ in left) > _LEFT_MAX:
                logger.error("some messages will not be found by key: too many wait for room")
                left.clear()

    def _unknown(
        self, hashes: list[int], log_offsets: list[int], times_ms: list[int]
    ) -> tuple[list[int], list[int], list[int]]:
        """The keys that have no entry yet. Files that hold the others get their old ends again."""
        new: tuple[list[int], list[int], list[int]] = ([], [], [])
        ends: dict[IndexFile, int] = {}
        for each in zip(hashes, log_offsets, times_ms, strict=True):
            log_offset = each[1]
            file = self._file_with(*each) if log_offset <= self._known_to else None
            if file is not None:
                ends[file] = log_offset
                continue
            for column, number in zip(new, each, strict=True):
                column.append(number)
        for file, end in ends.items():
            file.set_end(max(end, file.end_offset))
        return new

    def _file_with(self, hashed: int, log_offset: int, stored_ms: int) -> IndexFile | None:
        """The file with an entry of a hash for a log offset and time, if there is one."""
        for file in reversed(self._files):
            for found, second_ms in file.walk(hashed):
                if found == log_offset and 0 <= stored_ms - second_ms < 1000:
                    return file
        return None

    def _make_file(self) -> IndexFile:
        made_ms = self._clock.now_ms()
        while self._disk.size(path := f"{self._directory}/{name_of(made_ms)}") is not None:
            made_ms += 1
        try:
            self._disk.make_directory(self._directory)
            mapped = self._disk.map(path, file_bytes(self._slots, self._entries))
        except OSError as error:
            raise DiskFull(f"cannot map {path}: {error}") from error
        try:
            # Its header is read next, and reading a hole takes room on some file systems.
            mapped.reserve(0, HEADER.size)
        except OSError as error:
            mapped.close()
            self._disk.remove(path)
            raise DiskFull(f"no room for {path}: {error}") from error
        file = IndexFile(mapped, self._slots, self._entries)
        self._files.append(file)
        return file

    async def run(self) -> None:
        """Adds records that wait, a few at a time, until cancelled."""
        while True:
            self._arrived.clear()
            while self.catch_up(_STEP):  # noqa: ASYNC110 - a step each
                await asyncio.sleep(0)
            if not self._left:
                await self._arrived.wait()
            await asyncio.sleep(_PAUSE_SECONDS)  # so that many records are added together

    def find(self, topic: str, key: str, *, begin_ms: int, end_ms: int) -> Iterator[int]:
        """Log offsets of records that may carry a key, newest first, each once.

        The index keeps times in seconds, so it includes records of one more second at both ends.
        """
        self.catch_up()
        hashed = self._hashes.of(topic, key)
        seen: set[int] = set()
        walked = 0
        for file in reversed(self._files):
            if file.begin_ms > end_ms or file.end_ms < begin_ms:
                continue
            for log_offset, second_ms in file.walk(hashed):
                walked += 1
                if walked > _WALKED_MAX or second_ms < begin_ms - 1000:
                    break
                if log_offset >= 0 and second_ms <= end_ms and log_offset not in seen:
                    seen.add(log_offset)
                    yield log_offset

    def touched(
        self, topic: str, key: str, *, begin_ms: int, end_ms: int
    ) -> Iterator[tuple[MappedFile, int, int]]:
        """The file, first byte and end of what `find` reads; load each before the next."""
        self.catch_up()
        hashed = self._hashes.of(topic, key)
        for file in reversed(self._files):
            if file.begin_ms <= end_ms and file.end_ms >= begin_ms:
                yield from islice(file.touched(hashed), _WALKED_MAX)

    def cut(self, log_offset: int, *, is_torn: bool) -> int:
        """Prepares the index for a replay of the records at or after a log offset.

        Their old entries remain. Such an entry points to the same record, which then gets no second
        one, or to no record, or to a record that does not carry the key.

        Returns:
            The log offset: all records before it count as known.
        """
        self._pending.clear()
        self._left.clear()
        for file in list(self._files):
            if not is_torn and file.end_offset < log_offset:
                continue
            if is_torn and (file is self._files[-1] or file.end_offset >= log_offset):
                self._unsynced_files.append(file)
                if not file.repair(log_offset):
                    self._remove(file)
                    continue
            if file.end_offset >= log_offset:
                self._known_to = max(self._known_to, file.end_offset)
                file.set_end(max(log_offset - 1, 0))
        return log_offset

    def discard_unwritten(self, log_start: int) -> None:
        """Drops waiting entries of records before a log offset, which are about to be removed."""
        left, self._left = self._left, []
        for hashes, log_offsets, times_ms in left:
            first = bisect_left(log_offsets, log_start)
            if first < len(log_offsets):
                self._left.append((hashes[first:], log_offsets[first:], times_ms[first:]))

    def trim(self, log_start: int) -> Iterator[None]:
        """Removes files whose records are all gone, except the last file; one file a step."""
        while len(self._files) > 1 and self._files[0].end_offset < log_start:
            self._remove(self._files[0])
            yield

    def _remove(self, file: IndexFile) -> None:
        self._files.remove(file)
        if file in self._unsynced_files:
            self._unsynced_files.remove(file)
        file.close()
        self._disk.remove(file.path)

    async def sync(self, *, is_thorough: bool = True) -> None:
        """Returns when all records applied before the call are in files on the disk.

        Args:
            is_thorough: False does nothing, because writes are spread over a whole file, which is
                costly to sync.

        Raises:
            OSError: the disk failed.
        """
        if not is_thorough:
            return
        self.catch_up()
        files, self._unsynced_files = self._unsynced_files, []
        unsynced, self._unsynced_from = self._unsynced_from, -1
        try:
            for file in files:
                await file.sync()
        except BaseException:  # cancelled, or failed: they are not known to be on the disk
            self._unsynced_files = [*files, *self._unsynced_files]
            self._unsynced_from = unsynced
            raise

    def unmap_idle(self) -> None:
        """Does nothing: the files are few, and stay mapped."""

    def close(self) -> None:
        """Closes its files."""
        for file in self._files:
            file.close()
        self._files.clear()
        self._unsynced_files.clear()
