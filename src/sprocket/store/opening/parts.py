"""The parts of a store, and what each of them is given. Nothing happens here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sprocket.base.ports import Clock, Disk
from sprocket.base.watermark import Watermark
from sprocket.message.record import Encoder
from sprocket.store.config import StoreConfig
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.paths import LogPaths
from sprocket.store.state.checkpoint import Checkpoint
from sprocket.store.state.deleted_topics import DeletedTopics
from sprocket.store.views.confirmed import Confirmed
from sprocket.store.views.key_index import KeyIndex
from sprocket.store.views.queue_ends import QueueEnds, ends_of
from sprocket.store.views.queues import ConsumeQueues
from sprocket.store.views.view import Fold, View
from sprocket.store.writing.appending import Appending
from sprocket.store.writing.disk_space import Place, Room
from sprocket.store.writing.flush import Flush
from sprocket.store.writing.retention import Rules


class Parts:
    """Everything that a store is made of.

    Args:
        store_host: packed address of the broker.

    Attributes:
        views: what is folded from the log and has files; the queues come first.
        confirmed: what readers may see; None: all there is.
    """

    __slots__ = (
        "appending", "checkpoint", "confirmed", "deleted", "ends", "flush", "index", "log",
        "queues", "room", "views",
    )  # fmt: skip

    def __init__(
        self, disk: Disk, clock: Clock, *, root: str, config: StoreConfig, store_host: bytes
    ) -> None:
        paths = LogPaths.of(root, config.log_paths, config.log_read_only_paths)
        self.log = CommitLog(
            disk, paths, config.log_file_bytes, full_percent=config.disk_forced_percent
        )
        self.deleted = DeletedTopics(disk, root)
        self.ends = QueueEnds(disk, root)
        self.queues = ConsumeQueues(disk, f"{root}/consumequeue", config.queue_file_bytes)
        self.index = KeyIndex(
            disk,
            clock,
            directory=f"{root}/index",
            slots=config.index_slots,
            entries=config.index_entries,
        )
        self.views: tuple[View, ...] = (self.queues,)
        if config.index_keys:
            self.views += (self.index,)
        flushed = Watermark()
        self.confirmed = Confirmed([flushed]) if config.flush == "SYNC_FLUSH" else None
        told: tuple[Fold, ...] = (self.index,) if config.index_keys else ()
        self.appending = Appending(
            self.log,
            self.queues,
            clock,
            Encoder(store_host),
            body_max=config.message_bytes_max,
            views=told if self.confirmed is None else (self.confirmed, *told),
        )
        self.checkpoint = Checkpoint(disk, f"{root}/checkpoint")
        self.flush = Flush(
            self.log,
            self.views,
            self.checkpoint,
            config=config,
            appending=self.appending,
            flushed=flushed,
        )
        self.flush.noting = self._noting
        if self.confirmed is not None:
            self.appending.on_append = self.flush.want
            self.flush.on_flushed = self.confirmed.look
        self.room = Room(
            disk,
            clock,
            place=Place(root, paths),
            rules=Rules.of(config),
            log=self.log,
            views=self.views,
            flush=self.flush,
            appending=self.appending,
        )

    def _noting(self) -> Callable[[], None]:
        """Writes down how far queues are now, once they are on the disk that far."""
        return partial(self.ends.save, ends_of(self.queues.by_name), log_end=self.log.end)
