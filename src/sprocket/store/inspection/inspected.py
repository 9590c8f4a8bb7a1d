"""A store as tools see it: its folders, whether a broker has it, and what is known of it."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import DirectoryInUse, StoreError
from sprocket.base.ports import Disk
from sprocket.store.config import StoreConfig
from sprocket.store.inspection.walk import LogFiles
from sprocket.store.log.paths import LogPaths
from sprocket.store.state.checkpoint import marks_in

#: What a broker's folder has at least one of, besides its log, which may lie elsewhere.
_PARTS = frozenset(("commitlog", "consumequeue", "index", "config", "checkpoint", "lock"))


class Finding(NamedTuple):
    """Something that a look at a store found.

    Attributes:
        what: `log`, `queue`, `index`, `checkpoint` or `state`.
        path: the file.
        position: byte of the file.
        text: what is wrong.
        is_fault: whether something should be done; False: good to know.
        log_offset: where in the log, if it is about one place there.
        end: log offset at which the log goes on.
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
        is_live: a process has it open now; what it writes meanwhile is left out.
        was_stopped: it was closed in order, so that nothing may be torn.
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
        """Log offset behind which a broker may be writing now; None if nobody is."""
        if not self.is_live:
            return None
        if self.marks is not None:
            return max(self.marks.flushed, self.log.start)
        return self.log.starts[-1] if self.log.starts else 0  # Java's: all but its last file

    def queues(self) -> list[tuple[str, int]]:
        """Topic and number of the queues there are."""
        root = f"{self.root}/consumequeue"
        return [
            (topic, int(number))
            for topic in self.disk.names(root)
            for number in self.disk.names(f"{root}/{topic}")
            if number.isascii() and number.isdigit()
        ]

    def queue_folder(self, topic: str, number: int) -> str:
        """Where a queue's files lie."""
        return f"{self.root}/consumequeue/{topic}/{number}"


def is_live(disk: Disk, root: str) -> bool:
    """Whether a process has a store open."""
    if disk.size(f"{root}/lock") is None and disk.size(f"{root}/abort") is None:
        return False
    try:
        disk.lock(root).release()
    except DirectoryInUse:
        return True
    except OSError:  # not ours to write to: nobody can be told to keep out either
        return False
    return False
