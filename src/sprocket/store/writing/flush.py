"""Flushes log and views to the disk in the background, and reports how far the log is there.

The log is synced every few hundred milliseconds, or at once in synchronous mode, where all waiting
senders share one sync. The views are synced less often; then the checkpoint saves the log offset
from which recovery has to replay them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

from sprocket.base.errors import StoreError
from sprocket.base.watermark import Watermark
from sprocket.store.config import StoreConfig
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.segments import is_out_of_files
from sprocket.store.state.checkpoint import Checkpoint
from sprocket.store.views.confirmed import ConfirmedOffsets
from sprocket.store.views.queue_ends import QueueEnds
from sprocket.store.views.view import View

logger = logging.getLogger(__name__)

#: After this many passes over the views, a pass is thorough: it also syncs small amounts.
_THOROUGH_PASSES = 5
#: After this many passes, a thorough pass also saves where all queues end.
_NOTED_PASSES = 12 * _THOROUGH_PASSES
#: Size of a page in settings, whatever the machine's page size is.
_PAGE_BYTES = 4096
#: Pause before the next attempt to open a file while too many are open.
_FILES_SECONDS = 1.0
#: Least time between two log lines about it.
_REPORT_SECONDS = 60.0


class Flush:
    """Syncs one store.

    Attributes:
        flushed: log offset up to which the log is on the disk.
        replay_from: log offset from which a start would replay the log, as saved on the disk.
    """

    __slots__ = (
        "_checkpoint",
        "_config",
        "_confirmed",
        "_ends",
        "_has_begun",
        "_is_wanted",
        "_log",
        "_on_flushed",
        "_passes",
        "_reported_at",
        "_views",
        "flushed",
        "replay_from",
    )  # fmt: skip

    def __init__(
        self,
        log: CommitLog,
        views: Sequence[View],
        checkpoint: Checkpoint,
        ends: QueueEnds,
        *,
        config: StoreConfig,
        flushed: Watermark,
        on_flushed: Callable[[], None] | None,
        confirmed: ConfirmedOffsets | None = None,
    ) -> None:
        """
        Args:
            ends: saved regularly, each time when the log is on the disk up to that point.
            flushed: is raised to the log offset up to which the log is on the disk.
            on_flushed: is called after it was raised.
            confirmed: its log offset is saved with the checkpoint; None to keep what is there.
        """
        self._log = log
        self._views = views
        self._checkpoint = checkpoint
        self._ends = ends
        self._config = config
        self._is_wanted = asyncio.Event()
        self._reported_at = -_REPORT_SECONDS
        self._passes = 0
        self._has_begun = False
        self._on_flushed = on_flushed
        self._confirmed = confirmed
        self.flushed = flushed
        self.replay_from = 0

    def change(self, config: StoreConfig) -> None:
        """Applies other pauses from the next one on."""
        self._config = config

    def want(self) -> None:
        """Requests a sync of the log at once, for senders that wait for it."""
        self._is_wanted.set()

    def begin(self, newest_ms: int) -> None:
        """Records that the whole log, as recovery found it, is on the disk.

        Args:
            newest_ms: when its last record was stored.
        """
        self._log.newest_ms = self._checkpoint.log_ms = newest_ms
        self._has_flushed(self._log.end)

    def has_nothing_before(self, start: int) -> None:
        """Records that the log begins at this log offset: nothing before it has to be flushed."""
        self._has_begun = True
        self._has_flushed(start)

    async def sync_log(self) -> None:
        """Returns when all records written before the call are on the disk.

        Raises:
            OSError: the disk failed.
        """
        # The checkpoint of a log that has just begun at an offset still says 0: a start would take
        # its files for ones that were never synced. So it is saved before anything counts.
        if self._has_begun:
            await self.sync_views(is_thorough=False)
            self._has_begun = False
        end, newest_ms = self._log.end, self._log.newest_ms
        if end > self.flushed.value:
            await self._log.sync(self.flushed.value, end)
            self._checkpoint.log_ms = max(self._checkpoint.log_ms, newest_ms)
            self._has_flushed(end)

    def _has_flushed(self, end: int) -> None:
        """Reports that the log is on the disk up to a log offset."""
        self.flushed.rise(end)
        if self._on_flushed is not None:
            self._on_flushed()

    async def sync_views(self, *, is_thorough: bool) -> None:
        """Syncs the views and saves the checkpoint.

        Raises:
            OSError: the disk failed.
        """
        newest_ms = self._log.newest_ms
        end = self._log.end
        replay_from = min(end, self.flushed.value)
        for view in self._views:
            await view.sync(is_thorough=is_thorough)
            if view.unsynced_log_offset >= 0:
                replay_from = min(replay_from, view.unsynced_log_offset)
        if replay_from == end:
            self._checkpoint.queues_ms = max(self._checkpoint.queues_ms, newest_ms)
            self._checkpoint.index_ms = max(self._checkpoint.index_ms, newest_ms)
        self._checkpoint.replay_from = replay_from
        self._checkpoint.flushed = self.flushed.value
        if self._confirmed is not None:
            self._checkpoint.confirmed = self._confirmed.end
        await self._checkpoint.save()
        self.replay_from = replay_from

    async def finish(self) -> None:
        """Flushes everything to the disk, and saves where all queues end.

        Raises:
            OSError: the disk failed.
        """
        await self.sync_log()
        await self.sync_views(is_thorough=True)
        self._ends.save(self._ends.note(self._log.end))

    async def run_log(self) -> None:
        """Syncs the log until cancelled.

        Raises:
            OSError: the disk failed.
        """
        is_synchronous = self._config.flush == "SYNC_FLUSH"
        loop = asyncio.get_running_loop()
        synced_at = loop.time()
        while True:
            if is_synchronous:
                await self._is_wanted.wait()
                self._is_wanted.clear()
            else:
                await asyncio.sleep(self._config.flush_interval_ms / 1000)
            if is_synchronous or self._is_worth_it(loop.time() - synced_at):
                await self._until_files(self.sync_log)
                synced_at = loop.time()
            with contextlib.suppress(StoreError):  # the append that needs the file will raise it
                self._log.prepare_next()

    async def _until_files(self, sync: Callable[[], Coroutine[None, None, None]]) -> None:
        """Syncs; retries as long as no file can be opened for it.

        Raises:
            OSError: the disk failed.
        """
        while True:
            try:
                await sync()
            except (OSError, StoreError) as error:
                if not is_out_of_files(error):
                    raise
                now = asyncio.get_running_loop().time()
                if now - self._reported_at >= _REPORT_SECONDS:
                    logger.error("messages cannot be brought to the disk for now: %s", error)
                    self._reported_at = now
                await asyncio.sleep(_FILES_SECONDS)
            else:
                return

    def _is_worth_it(self, seconds: float) -> bool:
        """Whether the log is synced in this round.

        Args:
            seconds: since the last sync.
        """
        waiting_bytes = self._log.end - self.flushed.value
        return (
            waiting_bytes >= self._config.flush_least_pages * _PAGE_BYTES
            or seconds * 1000 >= self._config.flush_thorough_interval_ms
        )

    async def run_preallocation(self) -> None:
        """Prepares room behind the end of the log whenever it is low, until cancelled."""
        while True:
            await self._log.is_low.wait()
            self._log.is_low.clear()
            with contextlib.suppress(StoreError):  # the append that needs the room will raise it
                await self._log.prepare()

    async def run_views(self) -> None:
        """Syncs the views until cancelled.

        Raises:
            OSError: the disk failed.
        """
        while True:
            await asyncio.sleep(self._config.queue_flush_interval_ms / 1000)
            self._passes += 1
            is_thorough = self._passes % _THOROUGH_PASSES == 0
            is_noted = self._passes % _NOTED_PASSES == 0
            noted = self._ends.note(self._log.end) if is_noted else None
            await self._until_files(partial(self.sync_views, is_thorough=is_thorough))
            if noted is not None:
                await self._until_files(self.sync_log)
                self._ends.save(noted)
            if is_thorough:
                for view in self._views:
                    view.unmap_idle()
