"""Records that wait until their keys are added to the key index, in the order of the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sprocket.store.views.entry import Entry, EntryColumns
from sprocket.store.views.record_batch import KeyColumns, keys_of, keys_of_columns


class PendingKeys:
    """A queue of records. To add some costs the same for one as for many."""

    __slots__ = ("_count", "_runs")

    def __init__(self) -> None:
        #: Each as it was appended.
        self._runs: deque[Sequence[Entry] | EntryColumns] = deque()
        self._count = 0

    def __len__(self) -> int:
        """How many records wait."""
        return self._count

    @property
    def first_log_offset(self) -> int:
        """Where the first of them begins; there must be one."""
        first = self._runs[0]
        return first.log_offsets[0] if isinstance(first, EntryColumns) else first[0].log_offset

    def add(self, run: Sequence[Entry] | EntryColumns) -> None:
        """Adds records, at least one, that were appended together and do not change any more."""
        self._runs.append(run)
        self._count += len(run)

    def take(self, count: int) -> KeyColumns:
        """Removes the first records, of one run at least and then as long as there are fewer than
        `count`. Returns their keys.
        """
        found = KeyColumns([], [], [], [])
        entries: list[Entry] = []
        taken = 0
        while self._runs and taken < count:
            run = self._runs.popleft()
            taken += len(run)
            if isinstance(run, EntryColumns):
                found.extend(keys_of(entries))
                found.extend(keys_of_columns(run))
                entries = []
            else:
                entries += run
        self._count -= taken
        found.extend(keys_of(entries))
        return found

    def clear(self) -> None:
        """Removes all."""
        self._runs.clear()
        self._count = 0
