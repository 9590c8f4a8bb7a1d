"""Where the files of the log are: in one folder, or spread over several.

With several folders, new files take turns over the writable ones that are not too full. Files are
found in any of the folders, so folders may be added, made read-only, or left out once they are
empty.

Source: MultiPathMappedFileQueue of RocketMQ 5.x.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.base.ports import Disk


class LogPaths(NamedTuple):
    """The folders of a log.

    Attributes:
        writable: those that get new files.
        read_only: those whose files are only read, and removed when they expire.
    """

    writable: tuple[str, ...]
    read_only: tuple[str, ...] = ()

    @classmethod
    def of(cls, root: str, paths: tuple[str, ...], read_only: tuple[str, ...]) -> LogPaths:
        """The folders that the settings name; `<root>/commitlog` if they name none.

        Raises:
            ConfigError: a folder is named twice, or all are read-only.
        """
        named = tuple(path.rstrip("/") for path in paths) or (f"{root}/commitlog",)
        barred = tuple(path.rstrip("/") for path in read_only)
        writable = tuple(path for path in named if path not in barred)
        if len(set(named)) < len(named):
            raise ConfigError(f"storePathCommitLog names a folder twice: {', '.join(named)}")
        if not writable:
            raise ConfigError("storePathCommitLog names no folder that is not read-only")
        return cls(writable, barred)

    @property
    def every(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.writable, *self.read_only)

    def home(self, disk: Disk, number: int, *, full_percent: int) -> str:
        """The folder for a new file.

        Args:
            number: how many files come before it in the whole log.
            full_percent: a disk fuller than this gets no new file, if another is less full.
        """
        if len(self.writable) == 1:
            return self.writable[0]
        usages = {path: usage_of(disk, path) * 100 for path in self.writable}
        free = [path for path in self.writable if usages[path] <= full_percent]
        return (free or self.writable)[number % len(free or self.writable)]

    def usage(self, disk: Disk) -> float:
        """How full the least full of their disks is, from 0 to 1."""
        return min(usage_of(disk, path) for path in self.writable)


def usage_of(disk: Disk, path: str) -> float:
    """How full the disk of a folder is, from 0 to 1. A missing folder is made."""
    disk.make_directory(path)
    return disk.usage(path)
