"""What is due within the slot of the wheel whose turn it is, in the order of its time. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

_POSITION_BITS = 56
_POSITION_MASK = (1 << _POSITION_BITS) - 1


class Agenda:
    """Positions in the timer log by due time; equal times in the order of the log.

    One number each, time and position in one: a million take some 50 MB while their second lasts.
    """

    def __init__(self) -> None:
        self._heap: list[int] = []

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, due_ms: int, position: int) -> None:
        """Notes when the message of a unit is due."""
        heapq.heappush(self._heap, due_ms << _POSITION_BITS | position)

    def extend(self, entries: Iterable[tuple[int, int]]) -> None:
        """Notes many. Afterwards call `order`, before anything is asked."""
        self._heap += [due_ms << _POSITION_BITS | position for due_ms, position in entries]

    def order(self) -> None:
        """Brings them into order."""
        heapq.heapify(self._heap)

    def first(self, now_ms: int) -> int | None:
        """The position of the first one that is due, if one is. It stays until `drop`."""
        if not self._heap or self._heap[0] >> _POSITION_BITS > now_ms:
            return None
        return self._heap[0] & _POSITION_MASK

    def drop(self) -> None:
        """Takes the first one out."""
        heapq.heappop(self._heap)

    def next_ms(self) -> int | None:
        """When the first one is due."""
        return self._heap[0] >> _POSITION_BITS if self._heap else None

    def left(self) -> list[int]:
        """The positions of all that are left, in their order."""
        return [entry & _POSITION_MASK for entry in sorted(self._heap)]
