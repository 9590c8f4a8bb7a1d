"""The timer log: one unit for each message on the wheel, chained backwards by slot.

`UNIT` declares a unit, and `docs/formats/timers.md` says what its fields mean.

All files have one size; the rest at the end of a file is marked blank. A unit is never changed.
Positions count through all files.
Source: TimerLog, TimerMessageStore.doEnqueue of RocketMQ 5.3, which reserves the last 8 bytes.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from sprocket.base.errors import OffsetOutOfRange
from sprocket.base.ports import Disk
from sprocket.message.record import BLANK_MAGIC
from sprocket.store.log.segments import Segment, Segments, shows_other_size

logger = logging.getLogger(__name__)

UNIT = struct.Struct(">iqiqiqiiq")
UNIT_BYTES = UNIT.size
NORMAL, ROLLS, RECALLS = 1, 2, 4

_BLANK = struct.Struct(">iqi")
_MAGIC_MAX = 0xF
#: Disk space is reserved in pieces of this size.
_ROOM_BYTES = 1 << 18
#: So many bytes are read at once when the log is scanned.
_SCANNED_BYTES = 5000 * UNIT_BYTES


class TimerUnit(NamedTuple):
    """One unit of the log.

    Attributes:
        previous: position of the unit before it in its slot; -1 for none.
        magic: its bits.
        written_ms: when it was written.
        slot_ms: the slot's time.
        log_offset, record_bytes: position and size of the message's record in the log.
        topic_hash: hash of the message's own topic.
        due_ms: when the message is due; 0 if only the slot is known.
    """

    previous: int
    magic: int
    written_ms: int
    slot_ms: int
    log_offset: int
    record_bytes: int
    topic_hash: int
    due_ms: int

    @property
    def adds(self) -> int:
        """Its contribution to the number of messages that wait: -1 for a recall, else 1."""
        return -1 if self.magic & RECALLS else 1

    @property
    def rolls(self) -> bool:
        """Whether its message is rolled, and not delivered, in its slot."""
        return bool(self.magic & ROLLS)

    @property
    def is_recall(self) -> bool:
        """Whether it recalls another message in its slot."""
        return self.magic & (RECALLS | ROLLS) == RECALLS


class TimerLog:
    """The files.

    Attributes:
        end: position of the next unit.
    """

    def __init__(self, disk: Disk, directory: str, file_bytes: int) -> None:
        self._segments = Segments(disk, directory, file_bytes, setting="mappedFileSizeTimerLog")
        self._segment: Segment | None = None
        self._room_to = 0
        self.end = 0

    def load(self) -> None:
        """Finds the files that are there.

        From a file on that is cut or missing they are removed: what waits is then put on the wheel
        again from its topic.

        Raises:
            ConfigError: they were made with another size.
            OSError: the disk failed.
        """
        segments = self._segments
        segments.load()
        starts, odd = segments.starts, list(segments.odd)
        if odd and shows_other_size(odd, has_right=bool(starts)):
            segments.refuse(odd[0])
        broken = [each.start for each in odd]
        broken += [
            start + segments.file_bytes
            for start, following in pairwise(starts)
            if following - start != segments.file_bytes
        ]
        if broken:
            logger.warning(
                "the timer log in %s is cut or lacks files from position %d on",
                segments.directory, min(broken),
            )  # fmt: skip
            for each in odd:
                segments.drop(each)
            segments.remove_from(min(broken))
        self.end = self._segments.limit

    @property
    def start(self) -> int:
        """Position of the first unit."""
        return self._segments.start

    @property
    def limit(self) -> int:
        """Position behind the last file; 0 without files."""
        return self._segments.limit

    def append(self, previous: int, fields: tuple[int, ...]) -> int:
        """Appends a unit; returns its position.

        Args:
            previous: position of the unit before it in its slot; -1 for none.
            fields: its other fields, as they are written in the file.

        Raises:
            DiskFull, StoreError: the disk refuses it.
        """
        segment = self._segment
        end = self.end
        if segment is None or end + UNIT_BYTES + _BLANK.size > segment.end:
            segment = self._next_segment()
            end = self.end
        if end + UNIT_BYTES > self._room_to:
            room_to = min(end + _ROOM_BYTES, segment.end)
            segment.reserve(end, room_to)
            self._room_to = room_to
        UNIT.pack_into(segment.buffer, end - segment.start, UNIT_BYTES, previous, *fields)
        self.end = end + UNIT_BYTES
        return end

    def _next_segment(self) -> Segment:
        """Returns the file for the next unit, and moves `end` to the unit's position in it."""
        segment = self._segments.make(self.end)
        if self.end + UNIT_BYTES + _BLANK.size > segment.end:
            at = self.end - segment.start
            left = segment.end - self.end
            segment.reserve(self.end, segment.end)
            following = self._segments.make(segment.end)
            if left >= _BLANK.size:
                _BLANK.pack_into(segment.buffer, at, left, 0, BLANK_MAGIC)
            self.end = segment.end
            segment = following
        self._segment = segment
        self._room_to = self.end
        return segment

    def read(self, position: int) -> TimerUnit:
        """The unit at a position.

        Raises:
            OffsetOutOfRange: there is no unit.
        """
        segment = self._segments.at(position)
        at = position - segment.start
        if position < 0 or position >= self.end or at + UNIT_BYTES > len(segment.buffer):
            raise OffsetOutOfRange(f"no unit of the timer log at {position}")
        unit = _unit(UNIT.unpack_from(segment.buffer, at))
        if unit is None or unit.previous >= position:
            raise OffsetOutOfRange(f"the bytes in the timer log at {position} are no unit")
        return unit

    def scan(self, position: int) -> Iterator[tuple[int, TimerUnit]]:
        """The units with their positions, from the begin of the file that has `position`.

        Ends at the first position without a unit.
        """
        for start in [s for s in self._segments.starts if s + self._segments.file_bytes > position]:
            for at, fields in _units(self._segments.at(start)):
                unit = _unit(fields)
                if unit is None and fields[2] == BLANK_MAGIC:
                    break
                if unit is None or at >= self.end:
                    return
                yield at, unit

    def cut(self, position: int) -> None:
        """Removes all units from a position on.

        Raises:
            OSError: the disk refuses it.
        """
        self._segment = None
        self._segments.remove_from(position)
        if self._segments.has(position):
            segment = self._segments.at(position)
            segment.file.clear_from(position - segment.start)
        self.end = position

    async def sync(self, start: int, end: int) -> None:
        """Returns when all units between two positions are on the disk.

        Raises:
            OSError: the disk failed.
        """
        await self._segments.sync(start, end)

    def forget_before(self, log_start: int) -> None:
        """Removes files whose last message has left the commit log, which begins at `log_start`."""
        while len(self._segments.starts) > 1:
            following = self._segments.starts[1]
            last = (self._segments.file_bytes - _BLANK.size) // UNIT_BYTES - 1
            try:
                unit = self.read(following - self._segments.file_bytes + last * UNIT_BYTES)
            except OffsetOutOfRange:
                return
            if unit.log_offset >= log_start:
                return
            self._segments.remove_before(following)

    def close(self) -> None:
        """Closes the files."""
        self._segment = None
        self._segments.close()


def _units(segment: Segment) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Positions and fields of the units that a file has room for."""
    whole = len(segment.file) - len(segment.file) % UNIT_BYTES
    for first in range(0, whole, _SCANNED_BYTES):
        part = segment.file[first : min(first + _SCANNED_BYTES, whole)]
        for number, fields in enumerate(UNIT.iter_unpack(part)):
            yield segment.start + first + number * UNIT_BYTES, fields


def _unit(fields: tuple[int, ...]) -> TimerUnit | None:
    size, previous, magic, written_ms, delay_ms, *rest = fields
    if size != UNIT_BYTES or not 0 < magic <= _MAGIC_MAX:
        return None
    return TimerUnit(previous, magic, written_ms, written_ms + delay_ms, *rest)
