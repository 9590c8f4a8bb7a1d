"""Watches over what others may do to a store's files while it is open.

A mapped file that is removed can be written on, and all of it goes with the process. So the log's
files are looked at now and then. If one is not what it was, the store ends with an error, and what
was removed is written anew from memory: the next start recovers it. The views need no watch: a
start builds them from the log.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.errors import StoreError
from sprocket.base.ports import DirectoryLock
from sprocket.store.log.commit_log import CommitLog

logger = logging.getLogger(__name__)


async def watch(commit_log: CommitLog, lock: DirectoryLock, *, pause_seconds: float) -> None:
    """Looks at lock and log after each pause, until cancelled.

    Raises:
        StoreError: they are not what they were.
    """
    while True:
        await asyncio.sleep(pause_seconds)
        for file, fault in commit_log.segments.faults():
            raise StoreError(f"{file.path} {fault} while it was in use")
        if not lock.is_held:
            raise StoreError("the lock was taken away: another process may use the folder")


async def put_back(commit_log: CommitLog) -> None:
    """Writes the files of the log anew that were removed; nothing may be appended any more."""
    for file, fault in commit_log.segments.faults():
        try:
            await file.put_back()
        except OSError as error:
            logger.critical("%s %s and cannot be written anew: %s", file.path, fault, error)
        else:
            logger.critical("%s %s; what was in memory has been written anew", file.path, fault)
