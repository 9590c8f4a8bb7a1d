"""Which topics were deleted, and when, so that they do not come back when views are rebuilt.

The records of a deleted topic stay in the log until their files are removed. The state file
`config/deletedTopics.json` keeps, by topic, the log offset at which it was deleted; its records
before that offset are not put into any view again. RocketMQ has no such file.

    {"deletedTopics":{topic:log offset}}
"""

from __future__ import annotations

from collections.abc import Mapping

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
            StoreError: it is broken, or does not contain such a table.
        """
        table = self._snapshot.load().get(_TABLE, {})
        try:
            self._offsets = {str(topic): int(offset) for topic, offset in table.items()}
        except (AttributeError, TypeError, ValueError) as error:
            raise StoreError(f"{self._snapshot.path} is no such table: {error}") from error

    def __bool__(self) -> bool:
        return bool(self._offsets)

    def names(self) -> list[str]:
        """The topics that were deleted, also those that were made again."""
        return list(self._offsets)

    def end_of(self, topic: str) -> int:
        """The log offset before which a topic's records are deleted; 0 if none are."""
        return self._offsets.get(topic, 0)

    def record(self, topic: str, log_end: int, *, log_start: int) -> None:
        """Saves that a topic is deleted now.

        Args:
            log_start, log_end: where the log begins and ends; topics that were deleted before its
                start are dropped from the file.

        Raises:
            OSError: the disk refuses it.
        """
        self.record_all({topic: log_end}, log_start=log_start)

    def record_all(self, log_ends: Mapping[str, int], *, log_start: int) -> None:
        """The same for several topics, each with where the log ended when it was deleted.

        Raises:
            OSError: the disk refuses it.
        """
        kept = {name: offset for name, offset in self._offsets.items() if offset > log_start}
        self._offsets = {**kept, **log_ends}
        self._snapshot.save({_TABLE: self._offsets})

    def lower(self, log_end: int) -> None:
        """Lowers the offsets to the end of the log, which a loss of power may have moved back.

        Otherwise records that are appended from there on would count as deleted.

        Raises:
            OSError: the disk refuses it.
        """
        if any(offset > log_end for offset in self._offsets.values()):
            lowered = {name: min(offset, log_end) for name, offset in self._offsets.items()}
            self._snapshot.save({_TABLE: lowered})
            self._offsets = lowered
