"""Views: tables that are built from the log's records, one after the other.

The log is the only truth. A view may lag, be cut, or be missing: recovery rebuilds it from the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from sprocket.store.views.entry import Entry, EntryColumns
from sprocket.store.views.record_batch import RecordBatch


class Fold(Protocol):
    """What receives each record that is appended."""

    def apply_all(self, entries: Sequence[Entry] | EntryColumns) -> None:
        """Applies the records, at least one, that follow those applied before. They do not change
        any more, so a view may keep them.
        """
        ...


class View(Protocol):
    """A fold over the log that has files."""

    def apply_batch(self, batch: RecordBatch) -> None:
        """Applies many records at once, when the log is replayed."""
        ...

    def cut(self, log_offset: int, *, is_torn: bool) -> int:
        """Drops what came from records at or after a log offset.

        Args:
            is_torn: the store has crashed, so the files may hold any bytes behind the cut.

        Returns:
            Log offset of the newest record that it still knows; -1 if none; the cut itself if it
            knows all records before that, but not where the newest begins.
        """
        ...

    def discard_unwritten(self, log_start: int) -> None:
        """Drops what could not be written yet, for records before a log offset."""
        ...

    def trim(self, log_start: int) -> Iterator[None]:
        """Drops records before the start of the log, in steps; others may run between the steps."""
        ...

    @property
    def unsynced_log_offset(self) -> int:
        """Log offset of the first record that the view may lack on the disk; -1 if none."""
        ...

    async def sync(self, *, is_thorough: bool = True) -> None:
        """Returns when all records applied before the call are on the disk.

        Args:
            is_thorough: False may leave small amounts for later.

        Raises:
            OSError: the disk failed.
        """
        ...

    def unmap_idle(self) -> None:
        """Unmaps files that were not used since the last call."""
        ...

    def close(self) -> None:
        """Closes its files."""
        ...
