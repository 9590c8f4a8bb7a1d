"""The parts of a store, and how they are connected. Only `load` uses the disk."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import Protocol

from sprocket.base.ports import Clock, Disk
from sprocket.base.watermark import Watermark
from sprocket.message.record import Encoder
from sprocket.store.config import StoreConfig
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.paths import LogPaths
from sprocket.store.state.abort import AbortFile
from sprocket.store.state.checkpoint import Checkpoint
from sprocket.store.state.deleted_topics import DeletedTopics
from sprocket.store.state.queue_kinds import QueueKinds
from sprocket.store.views.confirmed import ConfirmedOffsets
from sprocket.store.views.key_index import KeyIndex
from sprocket.store.views.lite_queues import SHARED, LiteQueues
from sprocket.store.views.queue_ends import QueueEnds
from sprocket.store.views.queues import BatchQueues, ConsumeQueues
from sprocket.store.views.replay import RecordScanner
from sprocket.store.views.tag_codes import TagCodes
from sprocket.store.views.view import Fold, View
from sprocket.store.writing.appender import Appender
from sprocket.store.writing.batch_topics import BatchTopics
from sprocket.store.writing.disk_space import DiskSpace, StorePaths
from sprocket.store.writing.flush import Flush
from sprocket.store.writing.lite_topics import LiteTopics
from sprocket.store.writing.replica_log import ReplicaLog
from sprocket.store.writing.running_flags import RunningFlags


class _HasFiles(Protocol):
    def load(self) -> None: ...


class StoreParts:
    """All parts of a store.

    Args:
        store_host: packed address of the broker.
        tag_codes: rules for the tag codes of records that are read from a log.
        safe: log offsets up to which records are safe in other ways than by the flush: readers see
            none beyond them. `replica.confirm` must be called after one has risen.
        is_copy: whether the log is a copy of a master's, and accepts no messages of its own.
        is_member: whether the store belongs to a member of a group with an elector. Then what
            recovery finds is not `safe` as a whole, but up to the confirmed offset, which is kept.

    Attributes:
        views: the views that have files; the queues come first.
        confirmed: how far readers see each queue; None if they see all messages.
        replica: the log as replication uses it.
    """

    __slots__ = (
        "abort", "appender", "batches", "checkpoint", "confirmed", "deleted", "disk_space", "ends",
        "flags", "flush", "index", "is_member", "kinds", "lite", "lite_topics", "log", "queues",
        "replica", "safe", "views",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        *,
        root: str,
        config: StoreConfig,
        store_host: bytes,
        tag_codes: TagCodes,
        safe: Sequence[Watermark] = (),
        is_copy: bool = False,
        is_member: bool = False,
    ) -> None:
        paths = LogPaths.of(root, config.log_paths, config.log_read_only_paths)
        full = config.disk_forced_percent
        self.log = CommitLog(disk, paths, config.log_file_bytes, full_percent=full)
        self.log.change(config)
        self.abort = AbortFile(disk, root)
        self.checkpoint = Checkpoint(disk, f"{root}/checkpoint")
        self.deleted = DeletedTopics(disk, root)
        self.kinds = QueueKinds(disk, root)
        self.queues = self._queues_in(disk, root, config)
        self.index = KeyIndex(
            disk, clock, directory=f"{root}/index", slots=config.index_slots,
            entries=config.index_entries,
        )  # fmt: skip
        # With synchronous flush, or synchronous replication, readers must not see what a loss of
        # power, or of this machine, could take away. So appends pass through the confirmed offset,
        # which follows the flush and the slaves. What is called is built before what calls it.
        flushed = Watermark()
        self.safe, self.is_member = tuple(safe), is_member
        marks = [flushed, *safe] if config.flush == "SYNC_FLUSH" else list(safe)
        self.confirmed = ConfirmedOffsets(marks) if marks else None
        self.lite = LiteQueues(
            disk, self.log, f"{root}/litequeue", config.queue_file_bytes,
            confirmed=self.confirmed, deleted=self.deleted.end_of,
        )  # fmt: skip
        indexes = (self.index,) if config.index_keys else ()
        every = ChainMap(self.queues.by_name, {(SHARED, 0): self.lite.shared})
        self.ends = QueueEnds(disk, root, every, *indexes)
        self.views: tuple[View, ...] = (self.queues, self.lite, *indexes)
        self.flush = Flush(
            self.log, self.views, self.checkpoint, self.ends, config=config, flushed=flushed,
            on_flushed=self.confirmed.advance if self.confirmed is not None else None,
            confirmed=self.confirmed if is_member else None,
        )  # fmt: skip
        self.flags = RunningFlags(is_copy=is_copy)
        self._write_with(clock, config, Encoder(store_host), tag_codes)
        self.disk_space = DiskSpace(
            disk,
            clock,
            paths=StorePaths(root, paths),
            config=config,
            log=self.log,
            views=self.views,
            flush=self.flush,
            flags=self.flags,
            before_accepting=self._before_accepting,
        )

    def _queues_in(self, disk: Disk, root: str, config: StoreConfig) -> ConsumeQueues:
        batches = BatchQueues(
            f"{root}/batchconsumequeue",
            config.batch_queue_file_bytes,
            self.kinds,
            newest_ms=lambda: self.log.newest_ms,
            stored_ms_at=self.log.stored_ms_at,
        )
        return ConsumeQueues(disk, f"{root}/consumequeue", config.queue_file_bytes, batches)

    def _write_with(
        self, clock: Clock, config: StoreConfig, encoder: Encoder, tag_codes: TagCodes
    ) -> None:
        """Makes what writes to the log: messages of its own, or copies of a master's."""
        folds: tuple[Fold, ...] = (self.index,) if config.index_keys else ()
        appended = Watermark()
        on_append = self.flush.want if config.flush == "SYNC_FLUSH" else None
        self.appender = Appender(
            self.log,
            self.queues,
            clock,
            encoder,
            flags=self.flags,
            body_max=config.message_bytes_max,
            appended=appended,
            views=folds if self.confirmed is None else (self.confirmed, *folds),
            on_append=on_append,
        )
        self.batches = BatchTopics(self.queues, self.appender)
        self.lite_topics = LiteTopics(self.log, self.lite, self.appender, self.confirmed)
        self.replica = ReplicaLog(
            self.log,
            self.queues,
            self.lite,
            self.views[1:],
            confirmed=self.confirmed,
            flush=self.flush,
            flags=self.flags,
            scanner=RecordScanner(tag_codes, checks_bodies=config.check_bodies),
            body_max=self.appender.body_max,
            appended=appended,
            deleted=self.deleted,
            on_append=on_append,
        )

    def _before_accepting(self) -> None:
        """Writes the files that must be on the disk before the first message is appended."""
        self.abort.create()
        self.deleted.lower(self.log.end)

    def change(self, config: StoreConfig) -> None:
        """Applies checked settings of which those differ that may change while it is open."""
        self.disk_space.change(config)
        self.flush.change(config)
        self.appender.change(config.message_bytes_max)
        self.log.change(config)

    def load(self) -> None:
        """Opens and reads the files of all parts.

        Raises:
            ConfigError: files were made with other sizes.
            StoreError: a file has invalid content.
            OSError: the disk failed.
        """
        parts: Sequence[_HasFiles] = (
            self.log, self.deleted, self.ends, self.kinds, self.queues, self.lite, self.index,
            self.checkpoint,
        )  # fmt: skip
        for part in parts:
            part.load()
