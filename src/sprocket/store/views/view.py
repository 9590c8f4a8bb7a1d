"""What stands behind the log: a view is folded from the log's records, one after the other.

The log is the truth. A view may lag, be cut, or be gone: recovery replays it from the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:
    from sprocket.store.views.record_batch import Stretch

#: Bit of the system flag of a prepared or rolled back message: its record is in no queue.
IN_NO_QUEUE = 0x4


class Entry(msgspec.Struct, gc=False):
    """What a view learns of a record that has been written.

    Attributes:
        tag_code: hash of the tag, or the due time of a delayed message.
        sys_flag: RocketMQ's bits; with `IN_NO_QUEUE` the record is in no queue.
        keys, unique_key: words by which it can be found, and the id its sender gave it.
    """

    topic: str
    queue_number: int
    queue_offset: int
    log_offset: int
    record_bytes: int
    tag_code: int
    stored_ms: int
    sys_flag: int
    keys: str = ""
    unique_key: str = ""

    @property
    def end(self) -> int:
        """Log offset after the record; await `flushed` to reach it to know it on the disk."""
        return self.log_offset + self.record_bytes


class Fold(Protocol):
    """What is told of each record."""

    def apply_all(self, entries: Sequence[Entry]) -> None:
        """Takes in the records that follow what was applied before."""
        ...


class View(Protocol):
    """A fold over the log that has files."""

    def apply_stretch(self, stretch: Stretch) -> None:
        """Takes in many records at once, where the log is read again."""
        ...

    def cut(self, log_offset: int, *, is_torn: bool) -> int:
        """Forgets what came from records at or after a log offset.

        Args:
            is_torn: after a crash, when bytes beyond the cut may be anything.

        Returns:
            Log offset of the newest record that it still knows; -1 if none; the cut itself if it
            knows all that comes before but not where it begins.
        """
        ...

    def let_go(self, log_start: int) -> None:
        """Gives up what could not be written yet, of records before a log offset."""
        ...

    def follow(self, log_start: int) -> Iterator[None]:
        """Forgets records before the start of the log, in steps; others may go on in between."""
        ...

    @property
    def unsynced_log_offset(self) -> int:
        """Log offset of the first record that may not be in it on the disk; -1 if all are."""
        ...

    async def sync(self, *, is_thorough: bool = True) -> None:
        """Returns when all that was applied before the call is on the disk.

        Args:
            is_thorough: False may leave for later what is not worth it yet.

        Raises:
            OSError: the disk failed.
        """
        ...

    def rest(self) -> None:
        """Lets go of files that nobody has used since the last call."""
        ...

    def close(self) -> None:
        """Lets go of its files."""
        ...
