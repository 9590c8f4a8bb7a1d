"""The wheel: which messages wait in which slot of time. Pure, over the bytes of the file.

Fourteen days' worth of slots at one second's width, 32 bytes each, used again and again:

`SLOT` declares a slot, and `docs/formats/timers.md` says what its fields mean.

A slot whose time is another one is empty. Java keeps the last four bytes and never reads them.
Source: TimerWheel, Slot of RocketMQ 5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

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
        first, last: positions in the timer log; -1 if nothing waits.
        waiting: how many wait.
        rolled: how many of them are to be stored anew then.
    """

    first: int
    last: int
    waiting: int
    rolled: int


EMPTY = Slot(-1, -1, 0, 0)


class Wheel:
    """Slots over a buffer of `WHEEL_BYTES`.

    Attributes:
        buffer: its bytes.
        width_ms: of a slot.
    """

    __slots__ = ("buffer", "width_ms")

    def __init__(self, buffer: memoryview, width_ms: int) -> None:
        self.buffer = buffer
        self.width_ms = width_ms

    @property
    def span_ms(self) -> int:
        """How far apart the earliest and the latest slot in use may be."""
        return SLOTS * self.width_ms

    def place(self, time_ms: int) -> int:
        """Where in the buffer a slot stands."""
        return time_ms // self.width_ms % SLOTS * SLOT_BYTES

    def get(self, time_ms: int) -> Slot:
        """The slot of a time."""
        number, *fields = SLOT.unpack_from(self.buffer, self.place(time_ms))
        return Slot(*fields) if number == time_ms // self.width_ms else EMPTY

    def last(self, time_ms: int) -> int:
        """Position of the last unit in the slot of a time; -1 for none."""
        number = time_ms // self.width_ms
        told, _, last, _, _ = SLOT.unpack_from(self.buffer, number % SLOTS * SLOT_BYTES)
        return last if told == number else -1

    def add(self, time_ms: int, position: int, count: int = 1, rolled: int = 0) -> None:
        """Puts a unit behind the others of its slot.

        Args:
            position: of the unit in the timer log.
            count, rolled: what it adds to the slot's numbers.
        """
        number = time_ms // self.width_ms
        at = number % SLOTS * SLOT_BYTES
        told, first, _, counted, rolling = SLOT.unpack_from(self.buffer, at)
        if told != number or first < 0:
            first, counted, rolling = position, 0, 0
        SLOT.pack_into(self.buffer, at, number, first, position, counted + count, rolling + rolled)

    def clear(self, time_ms: int) -> None:
        """Empties a slot."""
        at = self.place(time_ms)
        self.buffer[at : at + SLOT_BYTES] = _ZEROS[:SLOT_BYTES]

    def next_used(self, from_ms: int, until_ms: int) -> int:
        """The first slot from a time on in which something waits, or that of `until_ms`.

        A span of empty slots is passed over in one go; a call looks at `_ROW_SLOTS` others at most.
        """
        number, last = from_ms // self.width_ms, until_ms // self.width_ms
        looked = 0
        while number < last and looked < _ROW_SLOTS:
            at = number % SLOTS * SLOT_BYTES
            span = min(_ROW_BYTES - at % _ROW_BYTES, WHEEL_BYTES - at)
            if self.buffer[at : at + span] == _ZEROS[:span]:
                number += span // SLOT_BYTES
                continue
            if self.get(number * self.width_ms).last >= 0:
                break
            number += 1
            looked += 1
        return min(number, max(last, from_ms // self.width_ms)) * self.width_ms

    def used(self, from_ms: int) -> Iterator[tuple[int, Slot]]:
        """The slots from a time on in which something waits, in no order, with their times."""
        for row in self.rows(from_ms):
            yield from row

    def rows(self, from_ms: int) -> Iterator[list[tuple[int, Slot]]]:
        """The same, some two thousand slots at a time: looking at all of them takes long."""
        first = from_ms // self.width_ms
        for row in range(0, WHEEL_BYTES, _ROW_BYTES):
            raw = bytes(self.buffer[row : row + _ROW_BYTES])
            found: list[tuple[int, Slot]] = []
            if raw != _ZEROS[: len(raw)]:
                for number, *fields in SLOT.iter_unpack(raw):
                    slot = Slot(*fields)
                    if first <= number < first + SLOTS and slot.last >= 0 and number:
                        found.append((number * self.width_ms, slot))
            yield found
