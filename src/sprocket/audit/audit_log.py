"""Writes the audit log: lines of JSON in a file that is replaced by a new one when it is full.

Recording never waits for the disk. Lines wait in memory, at most `WAITING_BYTES_MAX` of them, and
are written in the background; while the disk fails they are tried again. What has no place any more
is lost and counted, and a line says so once the disk works. Each write is on the disk before the
next one begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from types import TracebackType
from typing import Self

from sprocket.audit.config import AuditConfig
from sprocket.audit.entries import AuditEntry
from sprocket.audit.recorder import AuditRecorder
from sprocket.base.config import check
from sprocket.base.errors import StoreError
from sprocket.base.ports import Clock, Disk, Rotation
from sprocket.base.troubles import Troubles

logger = logging.getLogger(__name__)

#: Bytes of lines that wait for the disk, at most, and of one write.
WAITING_BYTES_MAX = 2 << 20
_WRITE_BYTES_MAX = 256 << 10
#: Pause before a write that failed is tried again, s.
_AGAIN_SECONDS = 1.0
#: How long a stop waits for the disk, s.
_CLOSE_SECONDS = 5.0
#: The name of the newest file.
FILE = "audit.jsonl"
_TROUBLE = "write"


class AuditLog(AuditRecorder):
    """The audit log of one server. Use it with `async with`.

    Args:
        server: the server's name in the lines.
        folder: where the files are.

    Attributes:
        lost: lines that were never written.
    """

    def __init__(
        self, config: AuditConfig, *, server: str, folder: str, disk: Disk, clock: Clock
    ) -> None:
        super().__init__(server, clock)
        self._rotation = Rotation(config.file_bytes, config.files_max)
        self._folder = folder
        self._disk = disk
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._unreported = 0
        self._task: asyncio.Task[None] | None = None
        self.lost = 0

    async def __aenter__(self) -> Self:
        """Makes the folder and locks it.

        Raises:
            DirectoryInUse: another process writes there.
            StoreError: it cannot be made.
        """
        loop = asyncio.get_running_loop()
        self._troubles = Troubles(loop.time, logger)
        try:
            self._disk.make_directory(self._folder)
        except OSError as error:
            raise StoreError(f"the audit log's folder {self._folder}: {error}") from error
        self._lock = self._disk.lock(self._folder)
        return self

    def put(self, entry: AuditEntry) -> None:
        """Keeps an entry; its line is written later."""
        self._put(entry.encode())

    def _put(self, line: bytes) -> None:
        if self._waiting_bytes + len(line) > WAITING_BYTES_MAX:
            self.lost += 1
            self._unreported += 1
            self._troubles.failed("loss", "entries of the audit log are lost", level=logging.ERROR)
            return
        self._waiting.append(line)
        self._waiting_bytes += len(line)
        if self._task is None:
            self._task = asyncio.create_task(self._write(), name="audit log")
            self._task.add_done_callback(self._written)

    def _written(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.critical("the audit log ended", exc_info=error)

    async def _write(self) -> None:
        while self._waiting:
            lines = self._next_lines()
            try:
                await self._disk.append_in_background(
                    f"{self._folder}/{FILE}", b"".join(lines), self._rotation
                )
            except OSError as error:
                text = f"the audit log {self._folder}/{FILE} cannot be written"
                self._troubles.failed(_TROUBLE, text, error, level=logging.ERROR)
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            self._troubles.ended(_TROUBLE, f"the audit log {self._folder}/{FILE} is written again")
            for line in lines:
                self._waiting.popleft()
                self._waiting_bytes -= len(line)
            self._report_losses()

    def _next_lines(self) -> list[bytes]:
        size = 0
        lines: list[bytes] = []
        for line in self._waiting:
            size += len(line)
            if lines and size > _WRITE_BYTES_MAX:
                break
            lines.append(line)
        return lines

    def _report_losses(self) -> None:
        if lost := self._unreported:
            self._unreported = 0
            self.record_event("ENTRIES_LOST", {"count": lost})
            self._troubles.ended("loss", f"{self.lost} entries of the audit log were lost")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Writes what waits, for some seconds at most, and unlocks the folder."""
        if (task := self._task) is not None:
            await asyncio.wait([task], timeout=_CLOSE_SECONDS)
            task.cancel()
            await asyncio.wait([task])
        if self._waiting:
            logger.error("%d entries of the audit log are lost", len(self._waiting))
            self.lost += len(self._waiting)
        self._lock.release()


def audit_log(
    config: AuditConfig | None, *, server: str, part: str, beside: str, disk: Disk, clock: Clock
) -> AuditLog | None:
    """The audit log that is set; None if none is.

    Args:
        part: what serves, `broker` or `nameserver`: the folder of its files.
        beside: the folder of the server's other files.
    """
    if config is None or not config.enabled:
        return None
    check(config)
    folder = f"{config.path or f'{beside}/audit'}/{part}"
    return AuditLog(config, server=server, folder=folder, disk=disk, clock=clock)
