"""A store as tools see it: its folders, whether a broker has it open, and its checkpoint."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import DirectoryInUse, StoreError
from sprocket.base.ports import Disk
from sprocket.store.config import StoreConfig
from sprocket.store.inspection.walk import LogFiles
from sprocket.store.log.paths import LogPaths
from sprocket.store.state.checkpoint import marks_in

#: The folder of a store contains at least one of these; its log may be in other folders.
_PARTS = frozenset(
    [
        "commitlog",
        "consumequeue",
        "batchconsumequeue",
        "litequeue",
        "index",
        "config",
        "checkpoint",
        "lock",
    ]
)


class Finding(NamedTuple):
    """Something that the check of a store found.

    Attributes:
        what: `log`, `queue`, `index`, `checkpoint`, `state`, or `store` for the whole.
        path: the file.
        position: byte of the file.
        text: what is wrong.
        is_fault: whether something should be done; False for mere information.
        log_offset: the place in the log, if it is about one.
        end: log offset of the next whole record, for damage.
    """

    what: str
    path: str
    position: int
    text: str
    is_fault: bool = True
    log_offset: int | None = None
    end: int | None = None

    def __str__(self) -> str:
        return f"{self.path} at byte {self.position}: {self.text}"


class InspectedStore:
    """A store's folder, for reading only.

    Attributes:
        is_live: a process has it open now; what it writes meanwhile is not read.
        was_stopped: it was closed in order, so nothing may be incomplete.
        marks: what is known to be on the disk; None if that is unknown.
    """

    def __init__(self, disk: Disk, root: str, config: StoreConfig) -> None:
        """
        Raises:
            StoreError: there is no store.
        """
        self.disk = disk
        self.root = root = root.rstrip("/") or "/"
        self.config = config
        self.paths = LogPaths.of(root, config.log_paths, config.log_read_only_paths)
        if not any(map(disk.names, self.paths.every)) and _PARTS.isdisjoint(disk.names(root)):
            raise StoreError(f"there is no store in {root}")
        self.is_live = is_live(disk, root)
        self.was_stopped = disk.size(f"{root}/abort") is None
        self.marks = marks_in(disk.read(f"{root}/checkpoint") or b"")
        self.log = LogFiles(disk, self.paths.every)

    @property
    def until(self) -> int | None:
        """Log offset behind which a broker may be writing now; None if none is."""
        if not self.is_live:
            return None
        if self.marks is not None:
            return max(self.marks.flushed, self.log.start)
        return self.log.starts[-1] if self.log.starts else 0  # a Java broker: all but the last file

    def queues(self) -> list[tuple[str, int]]:
        """Topic and number of the queues that exist."""
        return [
            (topic, int(number))
            for root in (f"{self.root}/consumequeue", self._batch_root)
            for topic in self.disk.names(root)
            for number in self.disk.names(f"{root}/{topic}")
            if number.isascii() and number.isdigit()
        ]

    @property
    def _batch_root(self) -> str:
        return f"{self.root}/batchconsumequeue"

    def is_batch(self, topic: str, number: int) -> bool:
        """Whether a queue is a batch queue."""
        return bool(self.disk.names(f"{self._batch_root}/{topic}/{number}"))

    def queue_folder(self, topic: str, number: int) -> str:
        """The folder of a queue's files."""
        is_batch = self.is_batch(topic, number)
        root = self._batch_root if is_batch else f"{self.root}/consumequeue"
        return f"{root}/{topic}/{number}"


def is_live(disk: Disk, root: str) -> bool:
    """Whether a process has a store open."""
    if disk.size(f"{root}/lock") is None and disk.size(f"{root}/abort") is None:
        return False
    try:
        disk.lock(root).release()
    except DirectoryInUse:
        return True
    except OSError:  # we may not write here, so the lock cannot be tried
        return False
    return False
