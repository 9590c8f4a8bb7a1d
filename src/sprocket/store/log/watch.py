"""Checks whether others have changed a store's files while it is open.

A mapped file that somebody removes can still be written to, and its content is lost when the
process ends. So the log's files are checked regularly. If one has been removed or changed, the
store stops with an error, and removed files are written again from memory: the next start recovers
them. The views need no such check, because a start rebuilds them from the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sprocket.base.errors import StoreError
from sprocket.base.ports import DirectoryLock
from sprocket.store.log.commit_log import CommitLog

logger = logging.getLogger(__name__)


async def watch(commit_log: CommitLog, lock: DirectoryLock, pause: Callable[[], float]) -> None:
    """Checks the lock and the log's files after each pause, in s, until cancelled.

    Raises:
        StoreError: one of them was removed or changed.
    """
    while True:
        await asyncio.sleep(pause())
        for file, fault in commit_log.segments.faults():
            raise StoreError(f"{file.path} {fault} while it was in use")
        if not lock.is_held:
            raise StoreError("the lock was taken away: another process may use the folder")


async def put_back(commit_log: CommitLog) -> None:
    """Writes removed files of the log again; nothing may be appended any more."""
    for file, fault in commit_log.segments.faults():
        try:
            await file.put_back()
        except OSError as error:
            logger.critical("%s %s and cannot be written again: %s", file.path, fault, error)
        else:
            logger.critical("%s %s; it has been written again from memory", file.path, fault)
