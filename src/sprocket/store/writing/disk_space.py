"""Keeps space free on the disk: removes old files, and refuses messages while the disk is full.

It checks every ten seconds. Files are removed one at a time, and the disk is checked after each, so
that no more are removed than necessary. The views drop the records of a removed file. Readers see
that the queue begins later now, and slices that were given out stay valid.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from sprocket.base.believed_time import BelievedTime
from sprocket.base.deadline import loop_ms
from sprocket.base.errors import DiskFull, OffsetOutOfRange
from sprocket.base.ports import Clock, Disk
from sprocket.store.config import StoreConfig
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.paths import LogPaths
from sprocket.store.log.segments import is_no_room
from sprocket.store.views.view import View
from sprocket.store.writing.flush import Flush
from sprocket.store.writing.retention import DeletionReason, RetentionRules
from sprocket.store.writing.running_flags import RunningFlags

logger = logging.getLogger(__name__)

#: After this many queues have dropped removed records, other tasks get a turn.
_STEPS = 16


class StorePaths(NamedTuple):
    """Where a store's files are.

    Attributes:
        root: its folder, with the views.
        log: the folders of the log.
    """

    root: str
    log: LogPaths


class DiskSpace:
    """Watches the disk of one store.

    Attributes:
        rules: which files are removed, and when messages are refused.
    """

    __slots__ = (
        "_asked", "_before_accepting", "_believed", "_clock", "_disk", "_flags", "_flush", "_log",
        "_paths", "_pause_ms", "_root", "_views", "rules",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        *,
        paths: StorePaths,
        config: StoreConfig,
        log: CommitLog,
        views: Sequence[View],
        flush: Flush,
        flags: RunningFlags,
        before_accepting: Callable[[], None],
    ) -> None:
        """
        Args:
            flags: receive whether the disk is full.
            before_accepting: is called before messages are accepted; they are not if it raises
                `OSError`.
        """
        self._disk = disk
        self._clock = clock
        self._root, self._paths = paths
        self._log = log
        self._views = views
        self._flush = flush
        self._flags = flags
        self._before_accepting = before_accepting
        #: The time by which files are old; in the first hour after a start none is.
        self._believed = BelievedTime(0, 0)
        self._asked = asyncio.Event()
        self.change(config)

    def change(self, config: StoreConfig) -> None:
        """Applies the rules of other settings from the next check on."""
        self.rules = RetentionRules.of(config)
        self._pause_ms = config.disk_check_interval_ms

    def remove_expired(self) -> None:
        """Has all expired files removed soon, whatever the hour is."""
        self._asked.set()

    def pause(self) -> float:
        """Pause between two checks, s."""
        return self._pause_ms / 1000

    async def run(self) -> None:
        """Checks the disk after each pause, and when it is asked to, until cancelled.

        Raises:
            OSError: the disk failed.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.pause()):
                    await self._asked.wait()
            is_asked = self._asked.is_set()
            self._asked.clear()
            while await self.remove_old(at_any_hour=is_asked) and is_asked:
                pass
            self.check()

    def begin(self) -> None:
        """Accepts messages, as the store is recovered; not yet if the disk is full.

        Raises:
            OSError: what must be written first cannot be, for another reason.
        """
        try:
            self._before_accepting()
        except OSError as error:
            if not is_no_room(error):
                raise
            full = DiskFull(f"the broker's disk is full: {error}")
            logger.error("%s; messages are accepted once there is room", full)
            self._flags.fill(full)
            self._flags.open()
        else:
            self._flags.open()
            self.check()

    def check(self) -> None:
        """Refuses messages if the disk is full; accepts them again if it is not."""
        used = self._used_percent()
        if self._flags.blocked is None and self.rules.is_full(used):
            ratio = f"{used / 100:.2f}"
            text = (
                f"the broker's disk is full [CL: {ratio} CQ: {ratio} INDEX: {ratio}]: "
                f"{self._root} is {used:.0f} % full, messages are accepted "
                f"below {self.rules.full_percent} %"
            )
            logger.error("%s", text)
            self._flags.fill(DiskFull(text))
        elif self._flags.is_full and not self.rules.is_full(used):
            try:
                self._before_accepting()
            except OSError as error:
                logger.error("messages are not accepted yet: %s", error)
                return
            logger.warning("the disk of %s has room again, messages are accepted", self._root)
            self._flags.free()

    def _used_percent(self) -> float:
        """How full the disk is, percent: that of the views, or the least full one of the log.

        The higher of the two counts.
        """
        usage = self._disk.usage(self._root)
        if self._paths.every != (f"{self._root}/commitlog",):
            usage = max(usage, self._paths.usage(self._disk))
        return usage * 100

    async def remove_old(self, *, at_any_hour: bool = False) -> int:
        """Removes files of the log that the rules no longer keep. Returns how many.

        Args:
            at_any_hour: whether expired files are removed at hours that are not set for that too.

        Raises:
            OSError: the disk failed.
        """
        count = 0
        while count < self.rules.files_max:
            why = self._verdict(at_any_hour=at_any_hour)
            if why is None:
                break
            first_end = self._log.start + self._log.segments.file_bytes
            if first_end > self._flush.replay_from:
                for view in self._views:
                    view.discard_unwritten(first_end)
                await self._flush.sync_views(is_thorough=True)
            if first_end > self._flush.replay_from:
                break
            self._remove_first(why)
            count += 1
            await self._trim_views()
        return count

    async def _trim_views(self) -> None:
        """Has the views drop removed records, some queues at a time.

        Until then a read of such a record gives the status `MESSAGE_WAS_REMOVING`.
        """
        for view in self._views:
            for step, _ in enumerate(view.trim(self._log.start)):
                if step % _STEPS == 0:
                    await asyncio.sleep(0)

    # A jump of the wall clock that is taken back must remove nothing, also if the broker starts
    # again meanwhile.
    def _verdict(self, *, at_any_hour: bool) -> DeletionReason | None:
        now_ms = self._clock.now_ms()
        believed_ms = self._believed.at(now_ms, loop_ms())
        newest_ms = self._newest_ms(now_ms)
        if newest_ms is None:
            return None
        return self.rules.verdict(
            newest_ms,
            now_ms=believed_ms,
            hour=None if at_any_hour else datetime.fromtimestamp(now_ms / 1000).hour,
            used_percent=self._used_percent(),
            log_bytes=len(self._log.segments.starts) * self._log.segments.file_bytes,
        )

    def _newest_ms(self, now_ms: int) -> int | None:
        """When the newest message of the first file was stored; None if that file must be kept.

        The first message of the next file gives the time, because it is hardly newer. If its time
        has not come yet, the clock was ahead when it was stored: then a later file's gives it,
        which was stored after it. Otherwise no file could be removed for as long as it was ahead.
        """
        start = self._log.start
        end = start + self._log.segments.file_bytes
        if not self._log.segments.starts or end > self._log.base:
            return None
        try:
            found_ms = self._log.stored_ms_at(end)
        except OffsetOutOfRange:  # the next file is missing: the first one gives the time
            found_ms = self._log.stored_ms_at(start)
        if found_ms <= now_ms:
            return found_ms
        later = [each for each in self._log.segments.starts if end < each < self._log.end]
        times_ms = (*(self._log.stored_ms_at(each) for each in later), self._log.newest_ms)
        return next((each for each in times_ms if each <= now_ms), found_ms)

    def _remove_first(self, why: DeletionReason) -> None:
        start = self._log.start
        self._log.remove_first()
        if why is DeletionReason.EXPIRED:
            logger.info("removed the log's file %020d of %s: expired", start, self._root)
        elif why is DeletionReason.TOO_MUCH:
            logger.warning(
                "removed the log's file %020d of %s before its time: the log has more than %d "
                "bytes. Messages that were not consumed are gone",
                start, self._root, self.rules.bytes_max,
            )  # fmt: skip
        else:
            logger.warning(
                "removed the log's file %020d of %s before its time: the disk is %.0f %% full. "
                "Messages that were not consumed are gone",
                start, self._root, self._used_percent(),
            )  # fmt: skip
