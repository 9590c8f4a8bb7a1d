"""Compares records with the entries of queues while the log is read.

The records of a queue come in its order, so their entries are adjacent, and are compared as bytes.
Entries that agree are not checked again. The others are checked one by one afterwards, to find out
what is wrong.
"""

from __future__ import annotations

from bisect import bisect_right

from sprocket.base.ports import FileBytes
from sprocket.store.inspection.inspected import InspectedStore
from sprocket.store.log.segments import NAME_DIGITS
from sprocket.store.views.consume_queue import ENTRY_BYTES
from sprocket.store.views.record_batch import QueueColumns

#: At most this many files of queues are open; some processes have only 1024 descriptors.
_OPEN_MAX = 256


class Agreed:
    """The entries of one queue that agree with their records, as runs in rising order.

    Attributes:
        folder: the folder of the queue's files.
        starts: offset of the first entry of each file.
        is_batch: whether it is a batch queue, which has no entries.
    """

    def __init__(self, store: InspectedStore, topic: str, number: int) -> None:
        self.folder = store.queue_folder(topic, number)
        self.is_batch = store.is_batch(topic, number)
        self.starts = sorted(
            int(name) // ENTRY_BYTES
            for name in store.disk.names(self.folder)
            if len(name) == NAME_DIGITS and name.isascii() and name.isdigit()
        )
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def add(self, first: int, end: int) -> None:
        """Adds entries [first, end), if they come after those that were added before."""
        if not self._ends or first > self._ends[-1]:
            self._firsts.append(first)
            self._ends.append(end)
        elif first == self._ends[-1]:
            self._ends[-1] = end

    def end_of(self, offset: int) -> int:
        """The end of the run that holds an offset; the offset itself if none does."""
        at = bisect_right(self._firsts, offset) - 1
        return max(offset, self._ends[at]) if at >= 0 else offset


class Agreement:
    """The entries that agree, by topic and number of the queue."""

    def __init__(self, store: InspectedStore) -> None:
        self._store = store
        self._queues: dict[tuple[str, int], Agreed] = {}
        self._open: dict[str, FileBytes] = {}

    def of(self, topic: str, number: int) -> Agreed:
        """The entries of one queue that agree."""
        agreed = self._queues.get((topic, number))
        if agreed is None:
            agreed = self._queues[topic, number] = Agreed(self._store, topic, number)
        return agreed

    def compare(self, topic: str, number: int, columns: QueueColumns) -> None:
        """Compares some records of a queue, as read from the log, with their entries.

        The units of a batch queue are checked one by one afterwards: they are few.
        """
        if self.of(topic, number).is_batch:
            return
        first = columns.queue_offsets[0]
        if columns.queue_offsets == list(range(first, first + len(columns.queue_offsets))):
            self._compare(self.of(topic, number), first, columns.packed())

    def _compare(self, agreed: Agreed, first: int, wanted: bytes) -> None:
        while wanted:
            at = bisect_right(agreed.starts, first) - 1
            if at < 0:
                return
            start = agreed.starts[at]
            place = (first - start) * ENTRY_BYTES
            found = self._file(agreed, start)[place : place + len(wanted)]
            if not found or found != wanted[: len(found)]:
                return
            count = -(-len(found) // ENTRY_BYTES)
            agreed.add(first, first + len(found) // ENTRY_BYTES)
            first += count
            wanted = wanted[count * ENTRY_BYTES :]

    def _file(self, agreed: Agreed, start: int) -> FileBytes:
        path = f"{agreed.folder}/{start * ENTRY_BYTES:0{NAME_DIGITS}d}"
        file = self._open.get(path)
        if file is None:
            if len(self._open) >= _OPEN_MAX:
                self._open.clear()
            try:
                file = self._store.disk.peek(path)
            except FileNotFoundError:  # a broker has removed it since
                file = b""
            self._open[path] = file
        return file
