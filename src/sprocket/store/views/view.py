"""What stands behind the log: a view is folded from the log's records, one after the other.

The log is the truth. A view may lag, be cut, or be gone: recovery replays it from the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from sprocket.store.views.entry import Entry
from sprocket.store.views.record_batch import RecordBatch


class Fold(Protocol):
    """What is told of each record."""

    def apply_all(self, entries: Sequence[Entry]) -> None:
        """Takes in the records that follow what was applied before."""
        ...


class View(Protocol):
    """A fold over the log that has files."""

    def apply_batch(self, batch: RecordBatch) -> None:
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

    def discard_unwritten(self, log_start: int) -> None:
        """Gives up what could not be written yet, of records before a log offset."""
        ...

    def trim(self, log_start: int) -> Iterator[None]:
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

    def unmap_idle(self) -> None:
        """Lets go of files that nobody has used since the last call."""
        ...

    def close(self) -> None:
        """Lets go of its files."""
        ...
