"""Keeps room on the disk: removes old files, and refuses messages while there is none.

It looks every ten seconds. One file goes at a time, and after each the disk is looked at again, so
no more is forced out than must be. What the views know of removed records goes with them; readers
are told that the queue begins later now, and slices that are out stay valid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from sprocket.base.errors import DiskFull, OffsetOutOfRange
from sprocket.base.ports import Clock, Disk
from sprocket.store.log.commit_log import CommitLog
from sprocket.store.log.paths import LogPaths
from sprocket.store.views.view import View
from sprocket.store.writing.appending import Appending
from sprocket.store.writing.flush import Flush
from sprocket.store.writing.retention import Rules, Why

log = logging.getLogger(__name__)

#: So many views of queues follow at once; then others have their turn.
_STEPS = 16


class Place(NamedTuple):
    """Where a store's files are.

    Attributes:
        root: its folder, with the views.
        log: the folders of the log.
    """

    root: str
    log: LogPaths


class Room:
    """Watches over the disk of one store.

    Attributes:
        before_taking: is done before messages are taken again; raises `OSError` if it cannot be.
    """

    __slots__ = (
        "_appending", "_clock", "_disk", "_flush", "_log", "_paths", "_root", "_views",
        "before_taking", "rules",
    )  # fmt: skip

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        *,
        place: Place,
        rules: Rules,
        log: CommitLog,
        views: Sequence[View],
        flush: Flush,
        appending: Appending,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._root, self._paths = place
        self._log = log
        self._views = views
        self._flush = flush
        self._appending = appending
        self.rules = rules
        self.before_taking: Callable[[], None] = lambda: None

    async def run(self, pause_seconds: float) -> None:
        """Looks at the disk again and again, until cancelled.

        Raises:
            OSError: the disk failed.
        """
        while True:
            await asyncio.sleep(pause_seconds)
            await self.remove_old()
            self.look()

    def look(self) -> None:
        """Refuses messages from now on if the disk is full, or takes them again."""
        refusal = self._appending.refusal
        used = self._used_percent()
        if refusal is None and self.rules.is_full(used):
            ratio = f"{used / 100:.2f}"
            text = (
                f"the broker's disk is full [CL: {ratio} CQ: {ratio} INDEX: {ratio}]: "
                f"{self._root} is {used:.0f} % full, messages are taken "
                f"below {self.rules.full_percent} %"
            )
            log.error("%s", text)
            self._appending.refusal = DiskFull(text)
        elif isinstance(refusal, DiskFull) and not self.rules.is_full(used):
            try:
                self.before_taking()
            except OSError as error:
                log.error("messages are not taken yet: %s", error)
                return
            log.warning("the disk of %s has room again", self._root)
            self._appending.refusal = None

    def _used_percent(self) -> float:
        """How full the disk of the views is, or the least full of those of the log."""
        usage = self._disk.usage(self._root)
        if self._paths.every != (f"{self._root}/commitlog",):
            usage = max(usage, self._paths.usage(self._disk))
        return usage * 100

    async def remove_old(self) -> int:
        """Removes the files whose time has come. Returns how many.

        Raises:
            OSError: the disk failed.
        """
        count = 0
        while count < self.rules.files_max:
            why = self._verdict()
            if why is None:
                break
            first_end = self._log.start + self._log.segments.file_bytes
            if first_end > self._flush.replay_from:
                for view in self._views:
                    view.let_go(first_end)
                await self._flush.sync_views(is_thorough=True)
            if first_end > self._flush.replay_from:
                break
            self._remove_first(why)
            count += 1
            await self._follow()
        return count

    async def _follow(self) -> None:
        """Has the views forget what is gone, some queues at a time.

        Until they have, a reader of what is gone is told that it was removed.
        """
        for view in self._views:
            for step, _ in enumerate(view.follow(self._log.start)):
                if step % _STEPS == 0:
                    await asyncio.sleep(0)

    def _verdict(self) -> Why | None:
        newest_ms = self._newest_ms()
        if newest_ms is None:
            return None
        now_ms = self._clock.now_ms()
        return self.rules.verdict(
            newest_ms,
            now_ms=now_ms,
            hour=datetime.fromtimestamp(now_ms / 1000).hour,
            used_percent=self._used_percent(),
            log_bytes=len(self._log.segments.starts) * self._log.segments.file_bytes,
        )

    def _newest_ms(self) -> int | None:
        """When the newest message of the first file was stored; None if that file must stay.

        That is told by the first message of the next file, which is hardly newer.
        """
        start = self._log.start
        end = start + self._log.segments.file_bytes
        if not self._log.segments.starts or end > self._log.base:
            return None
        if end == self._log.end:
            return self._appending.newest_ms
        try:
            return self._log.stored_ms_at(end)
        except OffsetOutOfRange:  # a file is missing: what comes before it is as old as that
            return self._log.stored_ms_at(start)

    def _remove_first(self, why: Why) -> None:
        start = self._log.start
        self._log.remove_first()
        if why is Why.EXPIRED:
            log.info("removed the log's file %020d of %s: expired", start, self._root)
        elif why is Why.TOO_MUCH:
            log.warning(
                "removed the log's file %020d of %s before its time: the log has more than %d "
                "bytes. Messages that were not consumed are gone",
                start, self._root, self.rules.bytes_max,
            )  # fmt: skip
        else:
            log.warning(
                "removed the log's file %020d of %s before its time: the disk is %.0f %% full. "
                "Messages that were not consumed are gone",
                start, self._root, self._used_percent(),
            )  # fmt: skip
