"""One file of the key index: a hash table from keys to log offsets, of fixed size.

It contains a header, the slots and the entries: `docs/formats/key-index.md` has the byte tables,
which a test compares with `HEADER`, `SLOT` and `ENTRY`. A slot holds the number of its newest
entry, and each entry holds the number of the previous entry of the same slot.

Source: IndexFile and IndexHeader of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import contextlib
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from operator import lt

from sprocket.base.errors import StoreError
from sprocket.base.ports import FileBytes, MappedFile
from sprocket.store.log.segments import refused
from sprocket.store.views.columns import INT, LONG, big_endian, rows

HEADER = struct.Struct(">qqqqii")
SLOT = struct.Struct(">i")
ENTRY = struct.Struct(">iqii")
_SLOTS_AT = HEADER.size
#: So many entries are checked at a start.
_SAMPLES = 32
_SECONDS_MAX = 2**31 - 1
#: Disk space is allocated for this many entries at a time: 160 KiB.
_RESERVED_ENTRIES = 8192


def file_bytes(slots: int, entries: int) -> int:
    """Size of a file with this number of slots and entries."""
    return _SLOTS_AT + slots * SLOT.size + entries * ENTRY.size


def name_of(made_ms: int) -> str:
    """The name of a file made then: `yyyyMMddHHmmssSSS`, in UTC."""
    made = datetime.fromtimestamp(made_ms // 1000, UTC)
    return f"{made:%Y%m%d%H%M%S}{made_ms % 1000:03d}"


def is_cut(file: FileBytes, slots: int) -> bool:
    """Whether a file of another size was made with this number of slots, and is shorter now.

    Its first entry is then where it must be. Too short for that, it is cut if it cannot even hold
    its head, or ends within a number.
    """
    if len(file) < HEADER.size or (len(file) - HEADER.size) % SLOT.size:
        return True
    _, _, begin_offset, _, _, count = HEADER.unpack(file[: HEADER.size])
    at = _SLOTS_AT + slots * SLOT.size + ENTRY.size
    if count <= 1 or len(file) < at + ENTRY.size:
        return False
    hashed, log_offset, _, _ = ENTRY.unpack(file[at : at + ENTRY.size])
    return bool(log_offset == begin_offset and (hashed or log_offset))


class IndexFile:
    """One file; it holds the entries 1 to `count` - 1.

    Attributes:
        begin_ms, end_ms: when its first and last record were stored.
        begin_offset, end_offset: log offsets of these two records.
        count: number of the next entry.
    """

    __slots__ = (
        "_buffer", "_entries", "_entries_at", "_file", "_reserved", "_slots", "_slots_used",
        "_table", "begin_ms", "begin_offset", "count", "end_ms", "end_offset",
    )  # fmt: skip

    def __init__(self, file: MappedFile, slots: int, entries: int) -> None:
        self._file = file
        self._buffer = file.buffer
        self._slots = slots
        self._entries = entries
        self._entries_at = _SLOTS_AT + slots * SLOT.size
        #: The slots, as numbers in the byte order of the machine.
        self._table = self._buffer[_SLOTS_AT : self._entries_at].cast(INT)
        #: Disk space is allocated for the slots and this many entries; 0 if that is not known.
        self._reserved = 0
        (
            self.begin_ms, self.end_ms, self.begin_offset, self.end_offset, self._slots_used, count,
        ) = HEADER.unpack(file[: HEADER.size])  # fmt: skip
        self.count: int = min(max(count, 1), entries)

    @property
    def path(self) -> str:
        """Where the file is."""
        return self._file.path

    @property
    def is_full(self) -> bool:
        """Whether it takes no more entries."""
        return self.count >= self._entries

    def put(
        self, hashes: Sequence[int], log_offsets: Sequence[int], times_ms: Sequence[int]
    ) -> int:
        """Adds entries as far as there is room. Returns how many were added.

        Args:
            hashes: of the keys.
            log_offsets, times_ms: where the record of each key is, and when it was stored.

        Raises:
            DiskFull, StoreError: the disk has no room for them; none was added.
        """
        first = self.count
        room = min(self._entries - first, len(hashes))
        if not room:
            return 0
        self._reserve(first + room)
        if len(hashes) > room:
            hashes, log_offsets, times_ms = hashes[:room], log_offsets[:room], times_ms[:room]
        if first == 1:
            self.begin_offset, self.begin_ms = log_offsets[0], times_ms[0]
        at = self._entries_at + first * ENTRY.size
        self._buffer[at : at + room * ENTRY.size] = rows(
            big_endian(INT, hashes),
            big_endian(LONG, log_offsets),
            big_endian(INT, self._seconds(times_ms)),
            self._lead(hashes, first),
        )
        self.count = first + room
        self.end_offset, self.end_ms = log_offsets[-1], times_ms[-1]
        self._save_header()
        return room

    def _seconds(self, times_ms: Sequence[int]) -> list[int]:
        """Times as entries hold them: in seconds after `begin_ms`."""
        begin_ms = self.begin_ms
        newest = (max(times_ms) - begin_ms) // 1000
        if 0 <= newest <= _SECONDS_MAX and newest == (min(times_ms) - begin_ms) // 1000:
            return [newest] * len(times_ms)
        return [min(max((each - begin_ms) // 1000, 0), _SECONDS_MAX) for each in times_ms]

    def _lead(self, hashes: Sequence[int], first: int) -> array[int]:
        """Points slots to the entries from number `first` on; returns what they pointed to."""
        count = len(hashes)
        slots, size = self._table, self._slots
        before: list[int] = []
        # The table holds numbers in the byte order of the file, so new ones are converted first.
        for hashed, number in zip(
            hashes, big_endian(INT, range(first, first + count)), strict=True
        ):
            slot = hashed % size
            before.append(slots[slot])
            slots[slot] = number
        column = array(INT, before)
        # Read without sign, negative numbers are too high, so one comparison finds all bad numbers.
        unsigned = array("I", column.tobytes())
        if sys.byteorder == "little":
            unsigned.byteswap()
        if max(unsigned) >= first and not all(map(lt, unsigned, range(first, first + count))):
            known = [
                found if 0 < found < number else 0
                for found, number in zip(unsigned, range(first, first + count), strict=True)
            ]
            column = big_endian(INT, known)
        self._slots_used += column.count(0)
        return column

    def _reserve(self, count: int) -> None:
        """Allocates disk space for all slots and this many entries."""
        if count <= self._reserved:
            return
        start = self._entries_at + self._reserved * ENTRY.size if self._reserved else 0
        more = min(max(count, self.count + _RESERVED_ENTRIES), self._entries)
        try:
            try:
                self._file.reserve(start, self._entries_at + more * ENTRY.size)
            except OSError:  # there may still be room for `count` entries
                more = count
                self._file.reserve(start, self._entries_at + more * ENTRY.size)
        except OSError as error:
            raise refused(f"cannot write to {self.path}", error) from error
        self._reserved = more

    def repair(self, log_offset: int) -> bool:
        """Makes the file whole after a crash. Entries from a log offset on may hold any bytes.

        Entries before it are whole. If only the process died, the others are whole too, and are
        kept. If not, they are dropped, and slots that point to them get the newest whole entry.

        Returns:
            False if no entry is left.

        Raises:
            DiskFull, StoreError: the disk has no room for its slots.
        """
        # Slots and entries are in different pages, and a crash can keep either without the other.
        # Slots that point to kept entries are still right. Only the others need a search, backwards
        # through the entries, because a slot points to its newest entry.
        first_lost = 1 + bisect_left(
            range(1, self._entries), True, key=lambda number: self._is_lost(number, log_offset)
        )
        slots = array("i", bytes(self._file[_SLOTS_AT : self._entries_at]))
        if sys.byteorder == "little":
            slots.byteswap()
        is_whole = first_lost <= self.count > max(slots) and not any(
            each[1] < 0 or not (each[0] or each[1]) for each in self._stored(first_lost)
        )
        if is_whole:
            with contextlib.suppress(StoreError):  # without, each slot is read by a call of its own
                self._reserve(self.count)
            return self.count > 1
        self._reserve(first_lost)
        self._lead_back(
            {slot for slot, number in enumerate(slots) if not 0 <= number < first_lost}, first_lost
        )
        self.count = first_lost
        if first_lost == 1:
            return False
        self._slots_used = sum(1 for number in slots if 0 < number < first_lost)
        _, self.begin_offset, _, _ = self._entry(1)
        _, self.end_offset, seconds, _ = self._entry(first_lost - 1)
        self.end_ms = self.begin_ms + seconds * 1000
        self._save_header()
        return True

    def sampled(self) -> tuple[list[tuple[int, int]], bool]:
        """Hashes and log offsets of some entries, and whether all of them can be found.

        An entry can be found if its slot leads to it or to a later one, and it to earlier ones.
        """
        numbers = {*range(1, self.count, self.count // _SAMPLES + 1), self.count - 1} - {0}
        found: list[tuple[int, int]] = []
        is_sound = True
        for number in sorted(numbers):
            at = self._entries_at + number * ENTRY.size
            hashed, log_offset, _, before = ENTRY.unpack(self._file[at : at + ENTRY.size])
            at = _SLOTS_AT + hashed % self._slots * SLOT.size
            (newest,) = SLOT.unpack(self._file[at : at + SLOT.size])
            is_entry = hashed >= 0 and log_offset >= 0 and (hashed or log_offset)
            is_sound = is_sound and bool(is_entry) and 0 <= before < number <= newest < self.count
            found.append((hashed, log_offset))
        return found, is_sound

    def _entry(self, number: int) -> tuple[int, int, int, int]:
        entry: tuple[int, int, int, int] = ENTRY.unpack_from(
            self._buffer, self._entries_at + number * ENTRY.size
        )
        return entry

    def _stored(self, first: int) -> Iterator[tuple[int, ...]]:
        """The entries from a number on, also those that may have no disk space."""
        for number in range(first, self.count, _RESERVED_ENTRIES):
            end = min(number + _RESERVED_ENTRIES, self.count)
            at = self._entries_at
            yield from ENTRY.iter_unpack(
                self._file[at + number * ENTRY.size : at + end * ENTRY.size]
            )

    def _is_lost(self, number: int, log_offset: int) -> bool:
        """Whether an entry is empty, or its record is at or after a log offset."""
        at = self._entries_at + number * ENTRY.size
        hashed, found, _, _ = ENTRY.unpack(self._file[at : at + ENTRY.size])
        return bool(found >= log_offset or found < 0 or (found == 0 and hashed == 0))

    def _lead_back(self, slots: set[int], end: int) -> None:
        """Points each slot to its newest entry before number `end`, or to none."""
        for number in range(end - 1, 0, -1):
            if not slots:
                return
            slot = self._entry(number)[0] % self._slots
            if slot in slots:
                slots.remove(slot)
                SLOT.pack_into(self._buffer, _SLOTS_AT + slot * SLOT.size, number)
        for slot in slots:
            SLOT.pack_into(self._buffer, _SLOTS_AT + slot * SLOT.size, 0)

    def set_end(self, log_offset: int) -> None:
        """Sets the log offset of the last record; entries of later records may remain.

        Raises:
            DiskFull, StoreError: the disk has no room for the file's head.
        """
        self._reserve(self.count)
        self.end_offset = log_offset
        self._save_header()

    def _save_header(self) -> None:
        HEADER.pack_into(
            self._buffer,
            0,
            self.begin_ms,
            self.end_ms,
            self.begin_offset,
            self.end_offset,
            self._slots_used,
            self.count,
        )

    def walk(self, hashed: int) -> Iterator[tuple[int, int]]:
        """Log offset and time, to the second, of the entries with a hash, newest first.

        Entries of other hashes in the same slot are included, with log offset -1, so that the
        caller can count and limit its steps.
        """
        highest = self.count
        at = _SLOTS_AT + hashed % self._slots * SLOT.size
        if self._reserved:
            (number,) = SLOT.unpack_from(self._buffer, at)
        else:  # the slot may have no disk space yet
            (number,) = SLOT.unpack(self._file[at : at + SLOT.size])
        while 0 < number < highest:
            found, log_offset, seconds, before = ENTRY.unpack_from(
                self._buffer, self._entries_at + number * ENTRY.size
            )
            yield (log_offset if found == hashed else -1), self.begin_ms + seconds * 1000
            number, highest = before, number

    def touched(self, hashed: int) -> Iterator[tuple[MappedFile, int, int]]:
        """File, first byte and end of what `walk` reads for a hash; load each before the next."""
        at = _SLOTS_AT + hashed % self._slots * SLOT.size
        yield self._file, at, at + SLOT.size
        (number,) = SLOT.unpack(self._file[at : at + SLOT.size])
        highest = self.count
        while 0 < number < highest:
            at = self._entries_at + number * ENTRY.size
            yield self._file, at, at + ENTRY.size
            _, _, _, before = ENTRY.unpack_from(self._buffer, at)
            number, highest = before, number

    async def sync(self) -> None:
        """Returns when the file is on the disk.

        Raises:
            OSError: the disk failed.
        """
        await self._file.sync(0, len(self._buffer))

    def close(self) -> None:
        """Closes the file."""
        self._table.release()
        self._file.close()
