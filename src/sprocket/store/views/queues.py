"""All consume queues of a store: the view that finds the messages of each queue in order.

`consumequeue/<topic>/<number>/` holds the files of one queue, `batchconsumequeue/…` those of a
batch queue. Other folders are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from sprocket.base.ports import Disk
from sprocket.store.log.drafts import check_queue
from sprocket.store.log.segments import OddFile, Segments, shows_other_size
from sprocket.store.state.queue_kinds import QueueKinds
from sprocket.store.views.batch_queue import BatchQueue
from sprocket.store.views.batch_unit import UNIT_BYTES
from sprocket.store.views.consume_queue import ENTRY_BYTES, ConsumeQueue
from sprocket.store.views.record_batch import RecordBatch

#: Bounds of how many queues keep files mapped. Some processes have only 1,024 descriptors, and a
#: process has 65,530 maps on Linux. To map a file takes some 40 us: where more queues than that are
#: written in turn, a send takes twice as long.
MAPPED_QUEUES_MIN, MAPPED_QUEUES_MAX = 256, 4096
#: A mapped file takes two descriptors, so queues take an eighth of them.
_FILES_OF_QUEUE = 16

#: A queue with fewer unsynced bytes waits for the next thorough sync: two pages.
_SYNC_BYTES_MIN = 8192


class BatchQueues(NamedTuple):
    """What batch queues need.

    Attributes:
        directory: the folder of their files.
        file_bytes: size of a file.
        kinds: which topics have them.
        newest_ms: when the record that is being appended is stored.
        stored_ms_at: when the record at a log offset was stored.
    """

    directory: str
    file_bytes: int
    kinds: QueueKinds
    newest_ms: Callable[[], int]
    stored_ms_at: Callable[[int], int]

    @property
    def unit_file_bytes(self) -> int:
        """Size of a file, rounded up to whole units."""
        return -(-self.file_bytes // UNIT_BYTES) * UNIT_BYTES


class ConsumeQueues:
    """The queues by topic and number."""

    __slots__ = (
        "_batches",
        "_directory",
        "_disk",
        "_file_bytes",
        "_mapped",
        "_mapped_max",
        "_misplaced",
        "by_name",
    )

    def __init__(
        self, disk: Disk, directory: str, file_bytes: int, batches: BatchQueues | None = None
    ) -> None:
        """
        Args:
            file_bytes: size of a queue's file; rounded up to whole entries, as in Java.
            batches: for batch queues; None if there are none.
        """
        self._batches = batches
        #: Files of queues that are batch queues by now.
        self._misplaced: list[Segments] = []
        self._disk = disk
        self._directory = directory
        self._file_bytes = -(-file_bytes // ENTRY_BYTES) * ENTRY_BYTES
        self.by_name: dict[tuple[str, int], ConsumeQueue] = {}
        #: Queues with mapped files, in the order they were first mapped.
        self._mapped: dict[ConsumeQueue, None] = {}
        wanted = disk.open_files_max // _FILES_OF_QUEUE
        self._mapped_max = min(max(wanted, MAPPED_QUEUES_MIN), MAPPED_QUEUES_MAX)

    def load(self) -> None:
        """Finds the queues that exist.

        Raises:
            ConfigError: the files were made with another size.
            OSError: the disk failed.
        """
        if self._batches is not None:
            self._load_batch_queues(self._batches)
        for topic, number in self._folders(self._directory):
            if self.is_batch(topic):
                segments = self._segments(self._directory, topic, number, self._file_bytes)
                segments.load()
                self._misplaced.append(segments)
            else:
                self.make(topic, number)
        odd = self.odd
        has_right = any(queue.has_files for queue in self.by_name.values())
        if odd and shows_other_size(odd, has_right=has_right, unit=ENTRY_BYTES):
            next(queue.files for queue in self.by_name.values() if queue.files.odd).refuse(odd[0])

    # The broker's file counts more than a folder, which may be left of a deleted topic of the same
    # name. A topic that the file does not have yet, at a slave, has what its folders show.
    def _load_batch_queues(self, batches: BatchQueues) -> None:
        for topic, number in self._folders(batches.directory):
            segments = self._segments(batches.directory, topic, number, batches.unit_file_bytes)
            segments.load()
            if not segments.starts and not segments.odd and not self.is_batch(topic):
                continue
            if batches.kinds.is_other(topic):
                self._misplaced.append(segments)
                continue
            batches.kinds.set(topic, is_batch=True)
            self.make(topic, number)

    def _folders(self, directory: str) -> list[tuple[str, int]]:
        return [
            (topic, int(number))
            for topic in self._disk.names(directory)
            for number in self._disk.names(f"{directory}/{topic}")
            if number.isascii() and number.isdigit()
        ]

    def is_batch(self, topic: str) -> bool:
        """Whether a topic has batch queues."""
        return self._batches is not None and self._batches.kinds.is_batch(topic)

    @property
    def misplaced(self) -> str | None:
        """A file in the form of the other kind of queue, which must be built again."""
        return next((each.path_of(each.start) for each in self._misplaced if each.starts), None)

    @property
    def odd(self) -> list[OddFile]:
        """Files that are cut: their queues must be built again."""
        return [odd for queue in self.by_name.values() for odd in queue.files.odd]

    def drop_odd(self) -> None:
        """Removes files that are cut, or in the form of another kind of queue."""
        for segments in self._misplaced:
            segments.remove_from(0)
        self._misplaced.clear()
        for queue in self.by_name.values():
            for odd in list(queue.files.odd):
                queue.files.drop(odd)

    def make(self, topic: str, number: int) -> ConsumeQueue:
        """The queue, made if it is new; its files are made when the first message comes.

        Raises:
            IllegalDraft: no queue can have that name.
        """
        queue = self.by_name.get((topic, number))
        if queue is None:
            check_queue(topic, number)
            batches = self._batches
            if batches is not None and batches.kinds.is_batch(topic):
                queue = self._batch_queue(batches, topic, number)
            else:
                segments = self._segments(self._directory, topic, number, self._file_bytes)
                segments.load()
                queue = ConsumeQueue(segments, topic, number)
            self.by_name[topic, number] = queue
        return queue

    def _segments(self, directory: str, topic: str, number: int, file_bytes: int) -> Segments:
        return Segments(
            self._disk,
            f"{directory}/{topic}/{number}",
            file_bytes,
            setting="mappedFileSizeConsumeQueue",
            on_map=partial(self._make_way, topic, number),
        )

    def _batch_queue(
        self, batches: BatchQueues, topic: str, number: int, replaced: ConsumeQueue | None = None
    ) -> BatchQueue:
        segments = self._segments(batches.directory, topic, number, batches.unit_file_bytes)
        segments.load()
        return BatchQueue(
            segments, topic, number, newest_ms=batches.newest_ms,
            stored_ms_at=batches.stored_ms_at, replaced=replaced,
        )  # fmt: skip

    def set_kind(self, topic: str, *, is_batch: bool) -> None:
        """Notes whether a topic has batch queues; queues that a slave has made as others, before it
        knew the topic, become batch queues.

        Raises:
            DiskFull, StoreError: the disk refuses their files.
        """
        batches = self._batches
        if batches is None or batches.kinds.is_batch(topic) == is_batch:
            return
        batches.kinds.set(topic, is_batch=is_batch)
        others = [
            queue
            for (name, _), queue in self.by_name.items()
            if name == topic and not isinstance(queue, BatchQueue)
        ]
        for queue in others if is_batch else ():
            self._mapped.pop(queue, None)
            new = self._batch_queue(batches, topic, queue.number, queue)
            new.take_from(queue)
            self.by_name[topic, queue.number] = new

    def _make_way(self, topic: str, number: int) -> None:
        """Records that a queue maps a file, and unmaps others if too many queues have mapped files.

        Each mapped file uses descriptors, of which a process has few. The queues that were used
        since the last time stay mapped, unless all of them were used.
        """
        mapped, queue = self._mapped, self.by_name[topic, number]
        mapped[queue] = None
        if len(mapped) <= self._mapped_max:
            return
        unused = [other for other in mapped if not other.is_used and other is not queue]
        for other in mapped:
            other.is_used = False
        for other in unused or [other for other in mapped if other is not queue]:
            self._rest(other)

    def _rest(self, queue: ConsumeQueue) -> None:
        queue.unmap_idle()
        self._mapped.pop(queue, None)

    def note_kinds(self, batch: RecordBatch) -> None:
        """Makes queues batch queues whose records hold batches.

        Raises:
            DiskFull, StoreError: the disk refuses their files.
        """
        for topic in batch.batch_topics() if batch.counts else ():
            self.set_kind(topic, is_batch=True)

    def apply_batch(self, batch: RecordBatch) -> None:
        """Writes the entries of records, queue by queue."""
        self.note_kinds(batch)
        for name, columns in batch.queue_columns():
            self.make(*name).apply_columns(columns)

    def cut(self, log_offset: int, *, is_torn: bool) -> int:
        """Drops the entries of records at or after a log offset.

        Returns:
            Log offset of the newest record left; -1 if none.
        """
        newest = -1
        for queue in self.by_name.values():
            newest = max(newest, queue.cut(log_offset, is_torn=is_torn))
            self._rest(queue)
        return newest

    def discard_unwritten(self, log_start: int) -> None:
        """Does nothing: no entries wait here."""

    def trim(self, log_start: int) -> Iterator[None]:
        """Moves each queue's `min_offset` to the first message in the log, one queue a step."""
        for queue in list(self.by_name.values()):
            if self.by_name.get((queue.topic, queue.number)) is queue:  # or removed meanwhile
                was_mapped = queue in self._mapped
                queue.set_log_start(log_start)
                if not was_mapped:
                    self._rest(queue)
            yield

    @property
    def unsynced_log_offset(self) -> int:
        """Log offset of the first record whose entry may not be on the disk; -1 if all are."""
        waiting = [q.unsynced_log_offset for q in self.by_name.values()]
        return min((offset for offset in waiting if offset >= 0), default=-1)

    async def sync(self, *, is_thorough: bool = True) -> None:
        """Returns when all entries from before the call are on the disk.

        Args:
            is_thorough: False leaves queues with few unsynced bytes for later.

        Raises:
            OSError: the disk failed.
        """
        for queue in list(self.by_name.values()):
            if queue.unsynced_log_offset >= 0 and (
                is_thorough or queue.unsynced_bytes >= _SYNC_BYTES_MIN
            ):
                await queue.sync()

    def unmap_idle(self) -> None:
        """Unmaps the queues that were not used since the last call."""
        for queue in self.by_name.values():
            if queue.is_used or queue.unsynced_log_offset >= 0:
                queue.is_used = False
            else:
                self._rest(queue)

    def remove(self, topic: str) -> None:
        """Removes all queues of a topic with their files."""
        for key in [key for key in self.by_name if key[0] == topic]:
            queue = self.by_name.pop(key)
            queue.remove()
            self._mapped.pop(queue, None)

    def remove_deleted(self, end_of: Callable[[str], int]) -> None:
        """Removes queues of deleted topics whose files are still there because of a crash.

        Args:
            end_of: gives the log offset before which a topic's records are deleted.
        """
        for topic in {topic for topic, _ in self.by_name if end_of(topic)}:
            queues = [queue for queue in self.by_name.values() if queue.topic == topic]
            for queue in queues:
                if not queue.has_entries or queue.position(queue.max_offset - 1)[0] < end_of(topic):
                    del self.by_name[topic, queue.number]
                    queue.remove()
                    self._mapped.pop(queue, None)

    def close(self) -> None:
        """Closes all files and forgets all queues."""
        for queue in self.by_name.values():
            queue.unmap_idle()
        self.by_name.clear()
        self._mapped.clear()
