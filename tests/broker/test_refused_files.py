"""A start that may not use one of its files or folders says which, in one line."""

from __future__ import annotations

import errno
import os
import posixpath
from dataclasses import replace

import pytest

from sprocket.base.errors import SprocketError
from sprocket.testing.clock import EPOCH_MS
from sprocket.testing.disk import FaultyDisk, MemoryLock, MemoryMappedFile
from sprocket.testing.loop import simulate
from tests.broker.parts import ROOT, STORE, serving

SMALL = replace(STORE, log_file_bytes=4096, timer_file_bytes=4096)


class BarredDisk(FaultyDisk):
    """A disk on which some paths give an error.

    Attributes:
        barred: the path; it and what is below give the error.
        error: its number.
    """

    barred = ""
    error = errno.EACCES

    def _bar(self, path: str) -> None:
        path = posixpath.normpath(path)
        if self.barred and f"{path}/".startswith(f"{self.barred}/"):
            raise OSError(self.error, os.strerror(self.error), path)

    def make_directory(self, path: str) -> None:
        self._bar(path)
        super().make_directory(path)

    def names(self, path: str) -> list[str]:
        self._bar(path)
        return super().names(path)

    def map(self, path: str, size: int) -> MemoryMappedFile:
        self._bar(path)
        return super().map(path, size)

    def read(self, path: str) -> bytes | None:
        self._bar(path)
        return super().read(path)

    def replace(self, path: str, content: bytes, *, backup: bool = True) -> None:
        self._bar(path)
        super().replace(path, content, backup=backup)

    def lock(self, directory: str) -> MemoryLock:
        self._bar(f"{directory}/lock")
        return super().lock(directory)


def state_of(disk: BarredDisk) -> dict[str, bytes | None]:
    """All state files that are replaced as a whole."""
    folder = f"{ROOT}/config"
    names = [name for name in disk.names(folder) if name != "timercheck"]
    return {name: disk.read(f"{folder}/{name}") for name in names}


#: Every file and folder that a start opens, below the store's folder.
PATHS = (
    "", "lock", "abort", "checkpoint", "commitlog", "consumequeue", "consumequeue/T/0", "index",
    "config", "config/topics.json", "config/subscriptionGroup.json", "config/consumerOffset.json",
    "config/delayOffset.json", "config/queueLocks.json", "config/transactionMetrics",
    "config/timermetrics", "config/deletedTopics.json", "config/timercheck", "timerlog",
    "timerwheel",
)  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_a_start_names_what_it_may_not_use(path: str) -> None:
    async def main() -> None:
        disk = BarredDisk()
        async with serving(disk, store=SMALL) as asker:
            await asker.send("T", KEYS="k", UNIQ_KEY="u")
            await asker.send("T", TIMER_DELIVER_MS=str(EPOCH_MS + 500_000))
        before = state_of(disk)
        assert len(before) >= 8
        disk.barred = f"{ROOT}/{path}".rstrip("/")
        for error in (errno.EACCES, errno.EROFS, errno.ENOTDIR):
            disk.error = error
            with pytest.raises(SprocketError) as refused:
                async with serving(disk, store=SMALL):
                    pass
            text = str(refused.value)
            assert "\n" not in text
            assert disk.barred in text
            assert os.strerror(error) in text
            assert "storePathRootDir" in text
            barred, disk.barred = disk.barred, ""
            assert state_of(disk) == before, "no state file is saved before all are loaded"
            disk.barred = barred
        disk.barred = ""
        async with serving(disk, store=SMALL) as asker:
            assert await asker.bodies("T") == [b"x"]

    simulate(lambda _: main())
