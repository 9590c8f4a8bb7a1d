"""The messages of the current slot of the wheel, ordered by due time. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

_POSITION_BITS = 56
_POSITION_MASK = (1 << _POSITION_BITS) - 1


class DueHeap:
    """Positions in the timer log by due time; equal times are in the order of the log.

    Each entry is one integer of time and position, since a million entries may be due within a
    second: they take about 50 MB.
    """

    def __init__(self) -> None:
        self._heap: list[int] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, due_ms: int, position: int) -> None:
        """Adds the unit at a position, which is due at a time (ms)."""
        heapq.heappush(self._heap, due_ms << _POSITION_BITS | position)

    def extend(self, entries: Iterable[tuple[int, int]]) -> None:
        """Adds many (due time, position). Call `order` afterwards, before any other method."""
        self._heap += [due_ms << _POSITION_BITS | position for due_ms, position in entries]

    def order(self) -> None:
        """Restores the order after `extend`."""
        heapq.heapify(self._heap)

    def first(self, now_ms: int) -> int | None:
        """The position of the first entry that is due; None if none is. `drop` removes it."""
        if not self._heap or self._heap[0] >> _POSITION_BITS > now_ms:
            return None
        return self._heap[0] & _POSITION_MASK

    def drop(self) -> None:
        """Removes the first entry."""
        heapq.heappop(self._heap)

    def next_ms(self) -> int | None:
        """Due time of the first entry, ms; None if there is none."""
        return self._heap[0] >> _POSITION_BITS if self._heap else None

    def left(self) -> list[int]:
        """The positions of all entries, in order."""
        return [entry & _POSITION_MASK for entry in sorted(self._heap)]
