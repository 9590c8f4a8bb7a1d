"""The files of the timers together: wheel, timer log, and the checkpoint `timercheck`.

They are a view of the timer's topic. They are made when the first message asks for a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sprocket.base.errors import OffsetOutOfRange, StoreError
from sprocket.base.ports import Disk, MappedFile
from sprocket.delay.timers.counts import Counts
from sprocket.delay.timers.timer_check import TimerCheck, TimerProgress
from sprocket.delay.timers.timer_log import NORMAL, RECALLS, ROLLS, UNIT_BYTES, TimerLog, TimerUnit
from sprocket.delay.timers.wheel import EMPTY, SLOT, SLOT_BYTES, SLOTS, WHEEL_BYTES, Wheel
from sprocket.store.config import FOLDER_SETTINGS

_ROW_SHIFT = 16
_ROW_BYTES = 1 << _ROW_SHIFT


class TimerFiles:
    """The open files of a store.

    Attributes:
        wheel, log, check: the three files.
        had_wheel: whether the wheel's file existed before.
    """

    def __init__(
        self, check: TimerCheck, log: TimerLog, file: MappedFile, *, width_ms: int, had_wheel: bool
    ) -> None:
        """
        Args:
            check, log: open.
            file: of the wheel.
        """
        self.check = check
        self.log = log
        self.had_wheel = had_wheel
        self._file = file
        self.wheel = Wheel(file.buffer, width_ms, file)
        #: Rows of the wheel that have room on the disk.
        self._has_room = bytearray(WHEEL_BYTES // _ROW_BYTES + 1)
        self._unsynced_rows: set[int] = set()
        self._synced_to = self.log.end

    @classmethod
    def open(cls, disk: Disk, root: str, *, width_ms: int, log_file_bytes: int) -> TimerFiles:
        """Opens the files; creates those that are missing.

        Raises:
            ConfigError: the timer log was made with another file size.
            StoreError: the disk refuses it.
        """
        try:
            return cls._opened(disk, root, width_ms=width_ms, log_file_bytes=log_file_bytes)
        except OSError as error:
            raise StoreError(
                f"the timers in {root} cannot be opened: {error}; {FOLDER_SETTINGS}"
            ) from error

    @classmethod
    def _opened(cls, disk: Disk, root: str, *, width_ms: int, log_file_bytes: int) -> TimerFiles:
        path = f"{root}/timerwheel"
        check = TimerCheck(disk, f"{root}/config/timercheck")
        log = TimerLog(disk, f"{root}/timerlog", log_file_bytes)
        log.load()
        size = disk.size(path)
        had_wheel = size == WHEEL_BYTES
        if size is not None and not had_wheel:
            disk.remove(path)
        file = disk.map(path, WHEEL_BYTES)
        check.open()
        return cls(check, log, file, width_ms=width_ms, had_wheel=had_wheel)

    def enter(
        self, slot_ms: int, magic: int, written_ms: int, message: tuple[int, int, int, int]
    ) -> int:
        """Puts a unit into the timer log and its slot; returns its position.

        Args:
            slot_ms: its slot.
            magic, written_ms: fields of the unit.
            message: its last four fields.

        Raises:
            DiskFull, StoreError: the disk refuses it; nothing has changed.
            OSError: the disk refuses space for the wheel; nothing has changed.
        """
        self._touch(slot_ms)
        wheel = self.wheel
        fields = (magic, written_ms, slot_ms - written_ms, *message)
        position = self.log.append(wheel.last(slot_ms), fields)
        wheel.add(slot_ms, position, -1 if magic & RECALLS else 1, 1 if magic & ROLLS else 0)
        return position

    def enter_plain(self, written_ms: int) -> Callable[[int, tuple[int, int, int, int]], None]:
        """`enter` in fewer steps, for many plain messages written in the same slot of time.

        Every timed send passes here. Attributes are looked up once for all messages, and a slot is
        read and written without a `Slot` between.
        """
        wheel, append, unsynced, has_room = (
            self.wheel,
            self.log.append,
            self._unsynced_rows,
            self._has_room,
        )
        buffer, width_ms, read, write = (
            wheel.buffer,
            wheel.width_ms,
            SLOT.unpack_from,
            SLOT.pack_into,
        )

        def enter(slot_ms: int, message: tuple[int, int, int, int]) -> None:
            number = slot_ms // width_ms
            at = number % SLOTS * SLOT_BYTES
            row = at >> _ROW_SHIFT
            if not has_room[row]:
                self._touch(slot_ms)
            unsynced.add(row)
            stored, first, last, waiting, rolled = read(buffer, at)
            if stored != number or first < 0:
                first = last = -1
                waiting = rolled = 0
            position = append(last, (NORMAL, written_ms, slot_ms - written_ms, *message))
            write(
                buffer, at, number, position if first < 0 else first, position, waiting + 1, rolled
            )

        return enter

    def units_in(self, slot_ms: int) -> Iterator[TimerUnit]:
        """The units of a slot, the newest first; the rest is left out if the timer log lacks it."""
        position = self.wheel.get(slot_ms).last
        while position >= 0:
            try:
                unit = self.log.read(position)
            except OffsetOutOfRange:
                return
            yield unit
            position = unit.previous

    def clear(self, slot_ms: int) -> None:
        """Empties a slot whose messages are delivered."""
        if self.wheel.get(slot_ms) is not EMPTY:
            self._touch(slot_ms)
            self.wheel.clear(slot_ms)

    def _touch(self, slot_ms: int) -> None:
        row = self.wheel.place(slot_ms) >> _ROW_SHIFT
        if not self._has_room[row]:
            start = row << _ROW_SHIFT
            self._file.reserve(start, min(start + _ROW_BYTES, WHEEL_BYTES))
            self._has_room[row] = 1
        self._unsynced_rows.add(row)

    def rebuild(self, from_ms: int, counts: Counts, now_ms: int) -> TimerUnit | None:
        """Builds the wheel from the timer log, for slots from a time on.

        The log is cut behind its last unit. Units are a chain for each slot, and a slot that was
        rewritten at an orderly stop begins a new chain: a unit without a previous one replaces
        everything that was in its slot.

        Returns:
            The last unit; None if there is none.
        """
        self._file.clear_from(0)
        self._has_room = bytearray(len(self._has_room))
        self._unsynced_rows = set(range(len(self._has_room)))
        counts.clear()
        last = None
        end = self.log.start
        for position, unit in self.log.scan(self.log.start):
            last, end = unit, position + UNIT_BYTES
            if unit.slot_ms >= from_ms:
                self._touch(unit.slot_ms)
                if unit.previous < 0:
                    self._uncount(unit.slot_ms, counts, now_ms)
                    self.wheel.clear(unit.slot_ms)
                self.wheel.add(unit.slot_ms, position, unit.adds, int(unit.rolls))
                counts.add(unit.topic_hash, unit.adds, now_ms)
        self.log.cut(end)
        self._synced_to = min(self._synced_to, end)
        return last

    def _uncount(self, slot_ms: int, counts: Counts, now_ms: int) -> None:
        """Takes the units of a slot out of the counts, before a new chain replaces them."""
        for unit in self.units_in(slot_ms):
            counts.add(unit.topic_hash, -unit.adds, now_ms)

    async def sync(self, progress: TimerProgress, now_ms: int) -> None:
        """Returns when all files are on the disk, with `progress` in the checkpoint.

        Raises:
            OSError: the disk failed.
        """
        rows, self._unsynced_rows = self._unsynced_rows, set()
        await self.log.sync(min(self._synced_to, progress.position), progress.position)
        self._synced_to = progress.position
        for first, last in _stretches(sorted(rows)):
            end = (last + 1) << _ROW_SHIFT
            await self._file.sync(first << _ROW_SHIFT, min(end, WHEEL_BYTES))
        await self.check.save(progress, now_ms)

    def close(self) -> None:
        """Closes the files."""
        self.check.close()
        self._file.close()
        self.log.close()


def _stretches(rows: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of adjacent rows: a rebuilt wheel is one sync, not 591."""
    found: list[tuple[int, int]] = []
    for row in rows:
        if found and row == found[-1][1] + 1:
            found[-1] = (found[-1][0], row)
        else:
            found.append((row, row))
    return found
