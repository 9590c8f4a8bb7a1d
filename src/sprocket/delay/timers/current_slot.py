"""The current slot of the wheel: its messages by due time, and the recalls in it.

It is loaded in pieces; messages that are late, or arrive meanwhile, are added to it.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.delay.timers.due_heap import DueHeap
from sprocket.delay.timers.timer_files import TimerFiles
from sprocket.delay.timers.timer_log import TimerUnit
from sprocket.message import properties as names
from sprocket.message.properties import decode_bytes
from sprocket.message.record import parse
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: Units that are read before other tasks run on the loop.
_UNITS_MAX = 2048


class CurrentSlot:
    """The slot.

    Attributes:
        slot_ms, end_ms: its begin and end; all its messages are due by its end.
        agenda: its messages by due time.
        recalled: keys in its recalls, and whether a message was found for each.
        recalls: positions of the recalls.
        is_loaded: whether all its messages are on the agenda, or are being put there.
        is_loading: whether they are being put there; the agenda has no order meanwhile.
        sooner: set when a message arrives that is due before all others.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.slot_ms = self.end_ms = 0
        self.agenda = DueHeap()
        self.recalled: dict[str, bool] = {}
        self.recalls: list[int] = []
        self.is_loaded = self.is_loading = False
        self.sooner = asyncio.Event()

    def begin(self, slot_ms: int, width_ms: int) -> None:
        """Makes a slot the current one. Nothing may be left of the one before."""
        self.slot_ms, self.end_ms = slot_ms, slot_ms + width_ms
        self.recalled.clear()
        self.recalls.clear()
        self.is_loaded = False

    async def load(self, files: TimerFiles) -> None:
        """Puts the slot's messages on the agenda; `join` adds those that arrive meanwhile."""
        position = files.wheel.get(self.slot_ms).last
        self.is_loaded = self.is_loading = True
        while position >= 0:
            position = self._load_some(files, position)
            await asyncio.sleep(0)
        self.agenda.order()
        self.is_loading = False

    def done_until(self, now_ms: int) -> int:
        """Up to which time all messages on the wheel are delivered, ms."""
        if not self.is_loaded or self.is_loading:
            return self.slot_ms
        first_ms = self.agenda.next_ms()
        return min(now_ms, self.end_ms if first_ms is None else first_ms - 1)

    def _load_some(self, files: TimerFiles, position: int) -> int:
        """Adds some units, backwards from a position; returns the next position, -1 at the end.

        The units of a slot are chained backwards, so they come in reverse order: they are collected
        and become a heap once, at the end.
        """
        entries = []
        for _ in range(_UNITS_MAX):
            if position < 0:
                break
            try:
                unit = files.log.read(position)
            except OffsetOutOfRange as error:
                logger.error("messages of slot %d are gone: %s", self.slot_ms, error)
                position = -1
                break
            if unit.is_recall:
                self._take_back(position, unit)
            else:
                entries.append((unit.due_ms or self.end_ms, position))
            position = unit.previous
        self.agenda.extend(entries)
        return position

    def join(self, position: int, unit: TimerUnit) -> None:
        """Adds a unit that arrives while its slot is the current one."""
        if unit.is_recall:
            self._take_back(position, unit)
            return
        first, due_ms = self.agenda.next_ms(), unit.due_ms or self.end_ms
        self.agenda.put(due_ms, position)
        if first is None or due_ms < first:
            self.sooner.set()

    def _take_back(self, position: int, unit: TimerUnit) -> None:
        self.recalls.append(position)
        try:
            record = parse(self._store.lookup(unit.log_offset))
        except (OffsetOutOfRange, CorruptRecord) as error:
            logger.error("a recall is gone: %s", error)
            return
        key = decode_bytes(record.properties).get(names.TIMER_DELETE_KEY)
        if key:
            self.recalled.setdefault(key, False)

    def left(self) -> list[int]:
        """Positions of all units left in the slot, recalls first."""
        return [*self.recalls, *self.agenda.left()]
