"""Which topics were deleted, and when: so that they do not come back when views are built anew.

The records of a deleted topic stay in the log until their files go. The state file
`config/deletedTopics.json` keeps, by topic, the log offset at which it was deleted; what lies
before that goes into no view again. RocketMQ has no such file.

    {"deletedTopics":{topic:log offset}}
"""

from __future__ import annotations

from sprocket.base.errors import StoreError
from sprocket.base.ports import Disk
from sprocket.store.state.snapshot import Snapshot

_TABLE = "deletedTopics"


class DeletedTopics:
    """The log offsets at which topics were deleted."""

    __slots__ = ("_offsets", "_snapshot")

    def __init__(self, disk: Disk, root: str) -> None:
        self._snapshot = Snapshot(disk, f"{root}/config/deletedTopics.json")
        self._offsets: dict[str, int] = {}

    def load(self) -> None:
        """Reads the file.

        Raises:
            StoreError: it is broken, or holds something else.
        """
        table = self._snapshot.load().get(_TABLE, {})
        try:
            self._offsets = {str(topic): int(offset) for topic, offset in table.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise StoreError(f"{self._snapshot.path} is no such table: {error}") from error

    def __bool__(self) -> bool:
        return bool(self._offsets)

    def end_of(self, topic: str) -> int:
        """Records of a topic before this log offset were deleted with it; 0 if there are none."""
        return self._offsets.get(topic, 0)

    def record(self, topic: str, log_end: int, *, log_start: int) -> None:
        """Writes down that a topic is deleted now.

        Args:
            log_start, log_end: where the log begins and ends; what was deleted before it begins is
                forgotten.

        Raises:
            OSError: the disk refuses it.
        """
        kept = {name: offset for name, offset in self._offsets.items() if offset > log_start}
        self._offsets = {**kept, topic: log_end}
        self._snapshot.save({_TABLE: self._offsets})

    def lower(self, log_end: int) -> None:
        """Notes that the log ends there, after a loss of power: what comes next is not deleted.

        Raises:
            OSError: the disk refuses it.
        """
        if any(offset > log_end for offset in self._offsets.values()):
            lowered = {name: min(offset, log_end) for name, offset in self._offsets.items()}
            self._snapshot.save({_TABLE: lowered})
            self._offsets = lowered
