"""The timer wheel: the slots of time in which messages wait. Pure, over the bytes of its file.

Slots that are changed must have disk space; the others are read from the file, which may have none.

It has the slots of fourteen days at a width of one second, 32 bytes each, which are used in a ring:

`SLOT` declares a slot, and `docs/formats/timers.md` says what its fields mean.

A slot that has another time is empty. Java writes the last four bytes and never reads them.
Source: TimerWheel, Slot of RocketMQ 5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from sprocket.base.ports import FileBytes

SLOT = struct.Struct(">qqqii")
SLOT_BYTES = SLOT.size
SLOTS = 14 * 86_400
WHEEL_BYTES = SLOTS * SLOT_BYTES

_ROW_SLOTS = 2048
_ROW_BYTES = _ROW_SLOTS * SLOT_BYTES
_ZEROS = bytes(_ROW_BYTES)


class Slot(NamedTuple):
    """One slot.

    Attributes:
        first, last: positions in the timer log; -1 for an empty slot.
        waiting: how many messages wait.
        rolled: how many of them are rolled then.
    """

    first: int
    last: int
    waiting: int
    rolled: int


EMPTY = Slot(-1, -1, 0, 0)


class Wheel:
    """The slots in a file of `WHEEL_BYTES`.

    Attributes:
        buffer: the mapped bytes.
        width_ms: width of a slot.
    """

    __slots__ = ("_file", "buffer", "width_ms")

    def __init__(self, buffer: memoryview, width_ms: int, file: FileBytes | None = None) -> None:
        """
        Args:
            file: the same bytes, for slots that were never written; by default the buffer itself.
        """
        self._file: FileBytes = buffer if file is None else file
        self.buffer = buffer
        self.width_ms = width_ms

    @property
    def span_ms(self) -> int:
        """The longest time between the earliest and the latest used slot, ms."""
        return SLOTS * self.width_ms

    def place(self, time_ms: int) -> int:
        """Position of the slot of a time in the buffer."""
        return time_ms // self.width_ms % SLOTS * SLOT_BYTES

    def get(self, time_ms: int) -> Slot:
        """The slot that contains a time."""
        at = self.place(time_ms)
        number, *fields = SLOT.unpack(self._file[at : at + SLOT_BYTES])
        return Slot(*fields) if number == time_ms // self.width_ms else EMPTY

    def last(self, time_ms: int) -> int:
        """Position of the last unit in the slot of a time, which has disk space; -1 for none."""
        number = time_ms // self.width_ms
        stored, _, last, _, _ = SLOT.unpack_from(self.buffer, number % SLOTS * SLOT_BYTES)
        return last if stored == number else -1

    def add(self, time_ms: int, position: int, count: int = 1, rolled: int = 0) -> None:
        """Adds a unit at the end of its slot.

        Args:
            time_ms: a time in the slot.
            position: position of the unit in the timer log.
            count, rolled: its contributions to the slot's numbers.
        """
        number = time_ms // self.width_ms
        at = number % SLOTS * SLOT_BYTES
        stored, first, _, counted, rolling = SLOT.unpack_from(self.buffer, at)
        if stored != number or first < 0:
            first, counted, rolling = position, 0, 0
        SLOT.pack_into(self.buffer, at, number, first, position, counted + count, rolling + rolled)

    def clear(self, time_ms: int) -> None:
        """Empties a slot."""
        at = self.place(time_ms)
        self.buffer[at : at + SLOT_BYTES] = _ZEROS[:SLOT_BYTES]

    def next_used(self, from_ms: int, until_ms: int) -> int:
        """The first used slot from `from_ms` on; the slot of `until_ms` if there is none before.

        Rows without any used slot are skipped as a whole. A call checks at most `_ROW_SLOTS` single
        slots, and then returns the slot to continue with, so that it never holds the loop for long.
        """
        number, last = from_ms // self.width_ms, until_ms // self.width_ms
        checked = 0
        while number < last and checked < _ROW_SLOTS:
            at = number % SLOTS * SLOT_BYTES
            span = min(_ROW_BYTES - at % _ROW_BYTES, WHEEL_BYTES - at)
            if self._file[at : at + span] == _ZEROS[:span]:
                number += span // SLOT_BYTES
                continue
            if self.get(number * self.width_ms).last >= 0:
                break
            number += 1
            checked += 1
        return min(number, max(last, from_ms // self.width_ms)) * self.width_ms

    def used(self, from_ms: int) -> Iterator[tuple[int, Slot]]:
        """The used slots from a time on with their times, in no order."""
        for row in self.rows(from_ms):
            yield from row

    def rows(self, from_ms: int) -> Iterator[list[tuple[int, Slot]]]:
        """The same, in rows of 2048 slots, since a pass through all slots takes long."""
        first = from_ms // self.width_ms
        for row in range(0, WHEEL_BYTES, _ROW_BYTES):
            raw = bytes(self._file[row : row + _ROW_BYTES])
            found: list[tuple[int, Slot]] = []
            if raw != _ZEROS[: len(raw)]:
                for number, *fields in SLOT.iter_unpack(raw):
                    slot = Slot(*fields)
                    if first <= number < first + SLOTS and slot.last >= 0 and number:
                        found.append((number * self.width_ms, slot))
            yield found
