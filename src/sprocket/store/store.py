"""The store of one broker: a log of records, and the queues through which they are found.

    <root>/commitlog/       the log
    <root>/consumequeue/    the queues; batchconsumequeue/: of batches; litequeue/: of lite topics
    <root>/index/           where to find messages by key
    <root>/checkpoint       how far log and views are on the disk
    <root>/abort            exists while the store is open, so a crash leaves it behind
    <root>/lock             held while the store is open
    <root>/config/          state files of the broker, see `snapshot`

Other files there are ignored. Appending and reading are plain calls: between two awaits the caller
has the store to itself. Source: DefaultMessageStore, StorePathConfigHelper of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from sprocket.base.errors import StoreError
from sprocket.base.ports import Clock, DirectoryLock, Disk
from sprocket.base.watermark import Watermark
from sprocket.message.draft_batch import DraftBatch
from sprocket.message.offsets import LONG_MAX, LogOffset, QueueOffset
from sprocket.message.record import Draft
from sprocket.store.config import FOLDER_SETTINGS, StoreConfig
from sprocket.store.log.watch import put_back, watch
from sprocket.store.opening.opening import recover_and_open
from sprocket.store.opening.parts import StoreParts
from sprocket.store.reading.by_time import NO_TIME, Boundary, offset_at, time_of
from sprocket.store.reading.cold import ColdReads, ReadPlan
from sprocket.store.reading.finding import KeySearchRange, find
from sprocket.store.reading.queue_reader import NO_QUEUE, ReadFilter, ReadResult, read_queue
from sprocket.store.reading.stored_queues import StoredQueues
from sprocket.store.views.consume_queue import ConsumeQueue
from sprocket.store.views.entry import EntryColumns
from sprocket.store.views.tag_codes import TagCodes
from sprocket.store.writing.appender import Appended, Kernel, Stored


class Store:
    """Made by `open`; `run` must be running for anything to reach the disk before `close`.

    Attributes:
        cold: loads old messages into memory before they are read.
        replica: the log as replication uses it: its bytes, and copies of a master's.
        batches: the topics that keep each batch as one record.
        flags: whether messages are accepted, and why not.
        lite: the lite topics.
        disk_space: removes old files.
        stored: the queues with what readers do not see yet, for the broker's own parts.
    """

    def __init__(
        self, disk: Disk, *, root: str, config: StoreConfig, parts: StoreParts, lock: DirectoryLock
    ) -> None:
        self._disk = disk
        self._root, self._config = root, config
        self._lock = lock
        self._log = parts.log
        self.replica = parts.replica
        self.batches = parts.batches
        self.lite = parts.lite_topics
        self.cold = ColdReads(parts.log, parts.queues.by_name, parts.index)
        self.stored = StoredQueues(parts.log, parts.queues.by_name)
        self._abort, self._deleted = parts.abort, parts.deleted
        self._queues, self._by_name = parts.queues, parts.queues.by_name
        self._index, self._views = parts.index, parts.views
        self._confirmed, self._appender = parts.confirmed, parts.appender
        self._checkpoint, self._flush = parts.checkpoint, parts.flush
        self.flags = parts.flags
        self.disk_space = parts.disk_space
        self._apply = parts.change

    @classmethod
    async def open(
        cls,
        *,
        disk: Disk,
        clock: Clock,
        root: str,
        config: StoreConfig,
        store_host: bytes,
        tag_codes: TagCodes,
        safe: Sequence[Watermark] = (),
        is_copy: bool = False,
        is_member: bool = False,
        cut_at: int | None = None,
    ) -> Store:
        """Opens the store in a folder, which is made if it is missing, and recovers it.

        Args:
            store_host: packed address of the broker, 8 or 20 bytes, which its records carry.
            tag_codes: rules for tag codes that are no tag's hash; `TAGS_ONLY` if there are none.
            safe, is_copy, is_member, cut_at: see `StoreParts` and `recover_and_open`.

        Raises:
            DirectoryInUse: another process has the store open.
            ConfigError: its files were made with other sizes.
            DamagedLog: its log is damaged, not only at its end.
            StoreError: it cannot be opened.
        """
        try:
            disk.make_directory(root)
            lock = disk.lock(root)
        except OSError as error:
            raise StoreError(f"cannot use {root}: {error}; {FOLDER_SETTINGS}") from error
        try:
            parts = StoreParts(
                disk, clock, root=root, config=config, store_host=store_host, tag_codes=tag_codes,
                safe=safe, is_copy=is_copy, is_member=is_member,
            )  # fmt: skip
            store = cls(disk, root=root, config=config, parts=parts, lock=lock)
            await recover_and_open(parts, config, root=root, tag_codes=tag_codes, cut_at=cut_at)
        except OSError as error:
            lock.release()
            text = f"cannot open the store in {root}: {error}; {FOLDER_SETTINGS}"
            raise StoreError(text) from error
        except BaseException:  # the lock is released whatever the error is
            lock.release()
            raise
        return store

    def change(self, config: StoreConfig) -> None:
        """Applies checked settings of which those differ that may change while it is open."""
        self._config = config
        self._apply(config)

    async def close(self) -> None:
        """Flushes everything to the disk and unlocks the folder. Appending ends at once.

        Raises:
            StoreError: the disk failed; the next `open` recovers the store.
        """
        if self.flags.is_closed:
            return
        self.flags.close()
        try:
            if not self.flags.has_failed:
                await self._flush.finish()
                self._abort.remove()
        except OSError as error:
            raise StoreError(f"cannot close the store in {self._root}: {error}") from error
        finally:
            await put_back(self._log)
            self._queues.close()
            self._index.close()
            self._log.close()
            self._checkpoint.close()
            self._lock.release()

    async def run(self) -> None:
        """Does the background work, until cancelled.

        Raises:
            StoreError: the disk failed. Nothing is appended any more; close the store.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._flush.run_log())
                tasks.create_task(self._flush.run_preallocation())
                tasks.create_task(self._flush.run_views())
                tasks.create_task(self._index.run())
                tasks.create_task(self.disk_space.run())
                tasks.create_task(watch(self._log, self._lock, self.disk_space.pause))
        except* (OSError, StoreError) as errors:
            failure = self._failed(errors.exceptions[0])
            await put_back(self._log)
            raise failure from errors

    def _failed(self, error: Exception) -> StoreError:
        """Ends appends and waits: it is unknown which writes since the last good sync were kept."""
        failure = StoreError(f"the disk of {self._root} failed: {error}")
        self.flags.fail(failure)
        self.flushed.fail(failure)
        return failure

    def append(self, draft: Draft) -> Appended:
        """Writes a message to the end of the log and of its queue.

        Raises:
            IllegalDraft: body or properties are too large, or the names cannot be stored.
            DiskFull: there is no room.
            StoreError: the disk has failed.
            ClosedError: the store is closed.
        """
        return self._appender.append(draft)

    def append_all(self, drafts: Sequence[Draft]) -> list[Appended]:
        """Writes messages one after the other, and stops before the first that is refused.

        Raises:
            IllegalDraft, DiskFull, StoreError, ClosedError: as `append`, if the first is refused.
        """
        return self._appender.append_all(drafts)

    def append_run(self, kernel: Kernel) -> Stored | None:
        """Has a kernel write messages; None if it writes none, or may write none now."""
        return self._appender.append_run(kernel)

    def append_batch(self, drafts: Sequence[Draft]) -> list[Appended]:
        """As `append_all`, but writes all of them, or none if one is refused."""
        return self._appender.append_batch(drafts)

    def append_batches(self, batches: Sequence[DraftBatch]) -> list[EntryColumns]:
        """As `append_all` for batches: of each, all messages are written, or none."""
        return self._appender.append_batches(batches)

    def read(
        self,
        topic: str,
        queue_number: int,
        offset: int,
        *,
        count_max: int,
        bytes_max: int,
        wants: ReadFilter | None = None,
    ) -> ReadResult:
        """Messages of a queue from an offset on; of a batch queue whole batches.

        Args:
            count_max: at most this many messages; one is returned even if this is 0.
            bytes_max: at most this many bytes together; the first message may be longer.
            wants: which of them; None for all. If set, a call checks a limited number of entries;
                if `next_offset` is below `max_offset`, there are more.
        """
        queue = self._by_name.get((topic, queue_number))
        if queue is None:
            return NO_QUEUE
        return read_queue(
            self._log, queue, offset, end=self._end_of(queue),
            count_max=count_max, bytes_max=bytes_max, wants=wants,
        )  # fmt: skip

    def is_cold(
        self, topic: str, queue_number: int, offset: int, *, count: int, bytes_max: int
    ) -> bool:
        """Whether a read of `count` entries from an offset on would wait for the disk."""
        queue = self._by_name.get((topic, queue_number))
        return queue is not None and self.cold.is_cold(ReadPlan(queue, offset, count, bytes_max))

    async def load(
        self, topic: str, queue_number: int, offset: int, *, count: int, bytes_max: int
    ) -> None:
        """Loads what such a read will use, and some of what comes next.

        Raises:
            StoreError: the disk failed.
        """
        queue = self._by_name.get((topic, queue_number))
        if queue is not None:
            await self.cold.load(ReadPlan(queue, offset, count, bytes_max))

    def _end_of(self, queue: ConsumeQueue) -> int:
        """Where a queue ends for readers."""
        return queue.max_offset if self._confirmed is None else self._confirmed.end_of(queue)

    def lookup(self, log_offset: int) -> memoryview:
        """The record that begins at a log offset, even if readers do not see it yet.

        Raises:
            OffsetOutOfRange: no record begins there.
        """
        return self._log.record_at(log_offset)

    def find(
        self,
        topic: str,
        key: str,
        *,
        count_max: int,
        begin_ms: int = 0,
        end_ms: int = LONG_MAX,
        end: int | None = None,
    ) -> list[memoryview]:
        """Records of a topic that carry a key or unique id, stored between two times, newest first;
        only those before the log offset `end`, which is `readable_end` for readers."""
        span = KeySearchRange(begin_ms, end_ms, end)
        return find(self._log, self._index, topic, key=key, count_max=count_max, span=span)

    @property
    def readable_end(self) -> LogOffset:
        """Log offset up to which readers see messages; later ones may still be lost."""
        return LogOffset(self._log.end if self._confirmed is None else self._confirmed.end)

    @property
    def index_end(self) -> tuple[int, int]:
        """Time and log offset of the newest record in the key index; zeros if there is none."""
        return self._index.end

    def arrivals(self, topic: str, queue_number: int) -> Watermark:
        """The watermark at the offset where a queue ends for readers. It need not have messages.

        Call it again after every wait: a topic that is deleted and made again has a new watermark.

        Raises:
            IllegalDraft: no queue can have that name.
        """
        queue = self._queues.make(topic, queue_number)
        if self._confirmed is not None:
            return self._confirmed.arrivals(queue)
        if queue.arrival is None:
            queue.arrival = Watermark(queue.max_offset)
        return queue.arrival

    @property
    def flushed(self) -> Watermark:
        """The log offset up to which the log is on the disk."""
        return self._flush.flushed

    async def sync(self) -> None:
        """Returns when all messages appended before the call are on the disk; `flushed` rises.

        Raises:
            StoreError: the disk failed. Nothing is appended any more; close the store.
        """
        try:
            await self._flush.sync_log()
        except OSError as error:
            raise self._failed(error) from error

    @property
    def log_file_bytes(self) -> int:
        """Size of a file of the log; no record crosses the end of a file."""
        return self._config.log_file_bytes

    @property
    def log_start(self) -> LogOffset:
        """Log offset of the first record."""
        return self._log.start

    @property
    def log_end(self) -> LogOffset:
        """Log offset after the last record."""
        return LogOffset(self._log.end)

    @property
    def newest_ms(self) -> int:
        """When the newest record was stored, ms since 1970 UTC; 0 if there is none."""
        return self._log.newest_ms

    @property
    def oldest_ms(self) -> int:
        """When the first record of the log was stored, ms; -1 if there is none."""
        start = self._log.start
        return self._log.stored_ms_at(start) if self._log.end > start else -1

    @property
    def disk_usage(self) -> float:
        """How full the disk is, from 0 to 1."""
        return self._disk.usage(self._root)

    def queues(self) -> Mapping[str, list[int]]:
        """Topics that have or had messages, with the numbers of their queues."""
        found: dict[str, list[int]] = {}
        for topic, number in (name for name, queue in self._by_name.items() if queue.has_files):
            found.setdefault(topic, []).append(number)
        return found

    def min_offset(self, topic: str, queue_number: int) -> QueueOffset:
        """The offset of a queue's first message; 0 for a queue that never had messages."""
        queue = self._by_name.get((topic, queue_number))
        return QueueOffset(0 if queue is None else queue.min_offset)

    def max_offset(self, topic: str, queue_number: int) -> QueueOffset:
        """The offset after the last message that readers see; 0 for a queue without messages."""
        queue = self._by_name.get((topic, queue_number))
        return QueueOffset(0 if queue is None else self._end_of(queue))

    def offset_at_time(
        self, topic: str, queue_number: int, time_ms: int, boundary: Boundary = Boundary.LOWER
    ) -> QueueOffset:
        """The offset of the message for a time; 0 for a queue that does not exist."""
        queue = self._by_name.get((topic, queue_number))
        if queue is None:
            return QueueOffset(0)
        return offset_at(self._log, queue, time_ms, boundary, end=self._end_of(queue))

    def time_of(self, topic: str, queue_number: int, offset: int) -> int:
        """When a message was stored, ms; -1 if it is not there."""
        queue = self._by_name.get((topic, queue_number))
        if queue is None or offset >= self._end_of(queue):
            return NO_TIME
        return time_of(self._log, queue, offset)

    def delete_topic(self, topic: str) -> None:
        """Removes the queues of a topic. Its records stay in the log until their files expire.

        Raises:
            StoreError: the disk refuses the file of deleted topics; the topic still exists.
        """
        if any(name == topic for name, _ in self._by_name):
            try:
                self._deleted.record(topic, self._log.end, log_start=self._log.start)
            except OSError as error:
                raise StoreError(f"topic {topic} cannot be deleted: {error}") from error
        self._queues.remove(topic)
        self.lite.forget(topic)
        if self._confirmed is not None:
            self._confirmed.forget(topic)
