"""The queues of all lite topics: one view, in which each entry leads to the one before it.

`litequeue/0/` holds files of the form of a consume queue: one entry for each message with a lite
topic, in the order of the log, so that a hundred thousand lite topics cost no file and no page of
their own. Where a consume queue has a tag's hash, the entry has the number of the entry before it
of the same lite topic, or -1. In memory there is for each lite topic its name, the number of its
last entry, and of every 64th one; a read begins at the nearest of these and goes backwards.

A start reads the entries, and of each lite topic one record, which has its name and the offset.
RocketMQ keeps these queues in RocksDB; the files here mean nothing to it, and are built from the
log.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.base.ports import Disk
from sprocket.message.lite import QUEUE_PREFIX, LiteName, LitePlace, place_of
from sprocket.message.properties import LITE_QUEUE, NAME_END
from sprocket.message.record import FIXED_BYTES
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.segments import OddFile, Segments
from sprocket.store.log.whole import checked
from sprocket.store.views.confirmed import ConfirmedOffsets
from sprocket.store.views.consume_queue import BLANK_SIZE, ENTRY, ENTRY_BYTES, ConsumeQueue
from sprocket.store.views.lite_queue import LiteQueue
from sprocket.store.views.record_batch import QUEUE_FIELDS, RecordBatch

logger = logging.getLogger(__name__)

#: The topic of the shared queue, in the confirmed offsets only: no folder has this name.
SHARED = "%LITE%"
#: Lite topics that are checked before others run on the loop.
_AT_ONCE = 4096
_RECENT_MAX = 4096
#: In the bytes of each record that has a lite topic, and in few others.
MARK = f"{LITE_QUEUE}{NAME_END}{QUEUE_PREFIX}".encode()


class LiteEntry(NamedTuple):
    """One message of a lite topic: its offset there, and the place and size of its record."""

    offset: int
    log_offset: int
    record_bytes: int


class LiteQueues:
    """The queues of lite topics, by parent topic and name.

    Args:
        directory: the folder of the files.
        file_bytes: size of a file.
        confirmed: how far readers see the log; None if they see all.
        deleted: gives the log offset before which a topic's records are deleted; 0 if none are.

    Attributes:
        shared: all their entries.
    """

    def __init__(
        self,
        disk: Disk,
        log: CommitLog,
        directory: str,
        file_bytes: int,
        *,
        confirmed: ConfirmedOffsets | None,
        deleted: Callable[[str], int],
    ) -> None:
        self._log = log
        self._confirmed = confirmed
        self._deleted = deleted
        segments = Segments(
            disk, f"{directory}/0", -(-file_bytes // ENTRY_BYTES) * ENTRY_BYTES,
            setting="mappedFileSizeConsumeQueue",
        )  # fmt: skip
        self.shared = ConsumeQueue(segments, SHARED, 0)
        self._by_parent: dict[str, dict[str, LiteQueue]] = {}
        self._count = 0
        self._has_removed = False
        #: The lite topics of the last entries: what tells consumers asks for them.
        self._recent: deque[LiteName] = deque(maxlen=_RECENT_MAX)

    def load(self) -> None:
        """Finds the files.

        Raises:
            OSError: the disk failed.
        """
        self.shared.files.load()

    @property
    def odd(self) -> list[OddFile]:
        """Files that are cut."""
        return self.shared.files.odd

    def drop_odd(self) -> None:
        """Removes files that are cut."""
        for odd in list(self.odd):
            self.shared.files.drop(odd)

    def __len__(self) -> int:
        return self._count

    def find(self, name: LiteName) -> LiteQueue | None:
        """The queue of a lite topic; None if it has none, or none any more."""
        return self._by_parent.get(name.parent, {}).get(name.lite)

    # A group's offset may outlive the messages, also over a kill: what comes then must not be below
    # it. The log's end only rises, and no log of this length has as many messages as that.
    def next_offset(self, name: LiteName) -> int:
        """The offset that the next message of a lite topic gets: 0 for one that is new; if its
        messages may have been removed, a number above all that they can have had."""
        queue = self.find(name)
        if queue is not None:
            return queue.max_offset
        is_first = self._log.start == 0 and not self._has_removed
        return 0 if is_first else self._log.end // FIXED_BYTES + 1

    def under(self, parent: str) -> list[LiteQueue]:
        """The queues under a parent topic."""
        return list(self._by_parent.get(parent, {}).values())

    def parents(self) -> list[str]:
        """The topics under which there are lite topics."""
        return list(self._by_parent)

    def low(self, queue: LiteQueue) -> int:
        """The offset of the first message that the log still has; the next one's if it has none."""
        return queue.low(self.shared.min_offset, self._before)

    def entries(self, queue: LiteQueue, offset: int, count: int, end: int) -> list[LiteEntry]:
        """The messages of a lite topic from an offset on that it has, at most `count`.

        Args:
            end: only those whose entries are before this one of the shared queue.
        """
        stop = min(offset + count, queue.max_offset)
        if stop <= offset:
            return []
        at, index = queue.near(stop - 1)
        found: list[LiteEntry] = []
        while at >= offset and index >= self.shared.min_offset:
            log_offset, size, before = self._entry(index)
            if at < stop and index < end:
                found.append(LiteEntry(at, log_offset, size))
            at, index = at - 1, before
        found.reverse()
        return found

    def high(self, queue: LiteQueue, end: int) -> int:
        """Where a queue ends for readers who see the shared one up to the entry `end`."""
        offset, index = queue.max_offset, queue.last
        while index >= end:
            offset, index = offset - 1, self._before(index)
        return offset

    def last_log_offset(self, queue: LiteQueue) -> int | None:
        """Where the record of the last message is; None if the log does not have it any more."""
        if queue.last < self.shared.min_offset:
            return None
        return self.shared.position(queue.last)[0]

    def name_at(self, index: int) -> LiteName | None:
        """The lite topic of an entry; None if its record is gone."""
        recent = self._recent
        if (at := index - self.shared.max_offset + len(recent)) >= 0:
            return recent[at]
        found = self._place_at(self.shared.position(index)[0])
        return None if found is None else found.name

    def _entry(self, index: int) -> tuple[int, int, int]:
        found: tuple[int, int, int] = ENTRY.unpack(self.shared.entries(index, 1))
        return found

    def _before(self, index: int) -> int:
        return self._entry(index)[2]

    def add(self, place: LitePlace, log_offset: int, record_bytes: int) -> None:
        """Adds the next message of a lite topic.

        Raises:
            DiskFull: there is no room for its entry, unless `shared.make_room` was called.
        """
        self._add(place, log_offset, record_bytes)
        self._hide(self.shared.max_offset - 1, log_offset + record_bytes)

    # Until the records are safe, readers do not see them; what recovery finds is hidden later.
    def _hide(self, first: int, log_end: int) -> None:
        if self._confirmed is not None:
            self._confirmed.hide((SHARED, 0), first, log_end, self.shared.max_offset)

    def _add(self, place: LitePlace, log_offset: int, record_bytes: int) -> None:
        name, offset = place
        queue = self.find(name)
        if queue is None or offset != queue.max_offset:
            queue = self._put(name, offset)
        index = self.shared.max_offset
        self.shared.add(ENTRY.pack(log_offset, record_bytes, queue.last), log_offset)
        queue.add(index)
        self._recent.append(name)

    def _put(self, name: LiteName, offset: int) -> LiteQueue:
        """A new queue, instead of one whose messages were deleted."""
        queues = self._by_parent.setdefault(name.parent, {})
        self._count += name.lite not in queues
        queue = queues[name.lite] = LiteQueue(name, offset)
        return queue

    def remove(self, name: LiteName) -> None:
        """Forgets a lite topic. Its messages come back with the next start, unless it gets others
        before: so this is for those that nobody needs."""
        queues = self._by_parent.get(name.parent, {})
        if queues.pop(name.lite, None) is not None:
            self._has_removed = True
            self._count -= 1
            if not queues:
                del self._by_parent[name.parent]

    def forget(self, parent: str) -> None:
        """Forgets the lite topics of a parent topic that is deleted."""
        self._count -= len(self._by_parent.pop(parent, {}))

    def forget_deleted(self) -> None:
        """The same for parent topics that a master has deleted."""
        for parent, queues in list(self._by_parent.items()):
            if not (end := self._deleted(parent)):
                continue
            for queue in list(queues.values()):
                if (last := self.last_log_offset(queue)) is None or last < end:
                    self.remove(queue.name)

    # A mark is searched for in the bytes of all records together, and only where it is found, in
    # each of them: a log without lite topics costs this view next to nothing.
    def apply_batch(self, batch: RecordBatch) -> None:
        """Adds those of some consecutive records that have a lite topic."""
        flats = [flat for queues in batch.queues.values() for flat in queues.values() if flat]
        if not flats:
            return
        first = min(flat[1] for flat in flats)
        segment = self._log.segments.at(first)
        data = bytes(segment.file[first - segment.start : batch.end - segment.start])
        if data.find(MARK) < 0:
            return
        rows = sorted(chain.from_iterable(_places(flat) for flat in flats))
        start = self.shared.max_offset
        for log_offset, size in rows:
            at = log_offset - first
            if data.find(MARK, at, at + size) >= 0:
                place = self._place_at(log_offset)
                if place is not None:
                    self._add(place, log_offset, size)
        if self.shared.max_offset > start:
            self._hide(start, batch.end)

    def _place_at(self, log_offset: int) -> LitePlace | None:
        try:
            segment = self._log.segments.at(log_offset)
            record = checked(
                segment.file, log_offset - segment.start, log_offset, checks_body=False
            )
        except (OffsetOutOfRange, CorruptRecord):
            return None
        return place_of(record.topic, bytes(record.properties))

    def cut(self, log_offset: int, *, is_torn: bool) -> int:
        """Drops the entries of records at or after a log offset, and reads those before.

        Returns:
            The log offset: it knows all records before that.
        """
        self.shared.cut(log_offset, is_torn=is_torn)
        self._read_all()
        return log_offset

    # The entries of a lite topic follow each other by the numbers in them. The first one whose
    # record is there gives name and offset; of two such rows with one name the later one counts.
    def _read_all(self) -> None:
        self._by_parent.clear()
        self._recent.clear()
        self._count = 0
        shared, log_start = self.shared, self._log.start
        tails: dict[int, LiteQueue | None] = {}
        index = shared.first_stored
        while index < shared.max_offset:
            data = shared.entries(index, shared.max_offset - index)
            for log_offset, size, before in ENTRY.iter_unpack(data):
                if log_offset >= log_start and size != BLANK_SIZE:
                    queue = tails.pop(before) if before in tails else self._begun(log_offset)
                    tails[index] = queue
                    if queue is not None:
                        queue.add(index)
                index += 1
        shared.unmap_idle()

    def _begun(self, log_offset: int) -> LiteQueue | None:
        place = self._place_at(log_offset)
        if place is None or self._deleted(place.name.parent) > log_offset:
            return None
        return self._put(*place)

    def discard_unwritten(self, log_start: int) -> None:
        """Does nothing: no entries wait here."""

    def trim(self, log_start: int) -> Iterator[None]:
        """Drops the entries of records that are gone, and the lite topics that have no others."""
        self.shared.set_log_start(log_start)
        first = self.shared.min_offset
        for parent in self.parents():
            for number, queue in enumerate(self.under(parent), 1):
                if queue.last < first:
                    self.remove(queue.name)
                if number % _AT_ONCE == 0:
                    yield
        yield

    @property
    def unsynced_log_offset(self) -> int:
        """Log offset of the first record whose entry may not be on the disk; -1 if all are."""
        return self.shared.unsynced_log_offset

    async def sync(self, *, is_thorough: bool = True) -> None:
        """Returns when all entries from before the call are on the disk.

        Raises:
            OSError: the disk failed.
        """
        if self.shared.unsynced_log_offset >= 0:
            await self.shared.sync()

    def unmap_idle(self) -> None:
        """Unmaps the files if they were not used since the last call."""
        if self.shared.is_used or self.shared.unsynced_log_offset >= 0:
            self.shared.is_used = False
        else:
            self.shared.unmap_idle()

    def close(self) -> None:
        """Closes the files, and forgets all lite topics."""
        self.shared.unmap_idle()
        self._by_parent.clear()
        self._count = 0


def _places(flat: list[int]) -> Iterator[tuple[int, int]]:
    return zip(flat[1::QUEUE_FIELDS], flat[2::QUEUE_FIELDS], strict=True)
