"""The timers: a view of the timer's topic by due time.

A message of the topic is put on the wheel as soon as it is stored, or when the view catches up with
the topic. Slots are done one after the other: the messages of the current slot are on an agenda, in
the order of their due times. A message that comes too late for its slot joins the current one, so
that no message is left behind.

All lasting state is in the timers' files and in the log; only that of the current slot is here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CorruptRecord, OffsetOutOfRange, StoreError
from sprocket.delay.timers.delivery_history import read_history
from sprocket.delay.timers.pending import DueCounts, pending
from sprocket.delay.timers.timed import QUEUE, waiting
from sprocket.delay.timers.timer_check import TimerProgress
from sprocket.delay.timers.timer_intake import TimerIntake
from sprocket.delay.timers.timer_log import TimerUnit
from sprocket.delay.timers.timer_recovery import queue_offset_of, recover
from sprocket.message.properties import decode_bytes
from sprocket.message.record import parse
from sprocket.message.topic import TIMER

logger = logging.getLogger(__name__)

#: A slot with more messages left is not rewritten at a stop.
_REWRITTEN_MAX = 100_000
#: How long a save waits for a flush of the log, s.
_FLUSH_SECONDS = 5.0


class Timers(TimerIntake):
    """The messages that wait, and the current slot."""

    # The files.

    @property
    def progress(self) -> TimerProgress | None:
        """How far they are, for slaves; None if they are not in use."""
        return None if self._files is None else self._progress

    async def start(self) -> None:
        """Opens and recovers the files if there are any, or if the topic has messages.

        If they have followed a master's until now, only the current slot's deliveries are looked
        for in the log.

        Raises:
            StoreError, ConfigError: they cannot be opened.
        """
        if self._files is not None:
            self._recovered = await read_history(
                self._store, self._progress.delivered_from, by_key=False
            )
            return
        is_there = self._disk.size(f"{self._root}/timerwheel") or self._disk.size(
            f"{self._root}/config/timercheck"
        )
        if is_there or self._store.stored.max_offset(TIMER, QUEUE):
            await self._recover()

    async def _recover(self) -> None:
        try:
            self._open()
            recovered = await recover(
                self.files,
                self._store,
                self.counts,
                now_ms=self._clock.now_ms(),
                log_file_bytes=self._layout.log_file_bytes,
            )
        except OSError as error:
            raise StoreError(f"the timers in {self._root} cannot be opened: {error}") from error
        self._progress = recovered.progress
        self.queue_next = recovered.progress.queue_next
        self.current.begin(recovered.progress.slot_ms, self._layout.width_ms)
        self._recovered, self._replaced = recovered.history, recovered.replaced
        self._done_before = recovered.done_before
        await self.save()

    def close(self) -> None:
        """Closes the files."""
        if self._files is not None:
            self._files.close()
            self._files = None

    # At a slave.

    def follow(self, slot_ms: int, delivered_from: int, queue_then: int) -> None:
        """Goes to the current slot of a master's timers: what waited before it is done.

        `catch_up` then puts on the wheel what the log has of the topic. So `start` can continue
        where the master was.

        Args:
            slot_ms, delivered_from, queue_then: see `TimerProgress`.

        Raises:
            StoreError, OSError: the disk refuses it.
        """
        slot_ms -= slot_ms % self._layout.width_ms
        if self._files is None:
            if not self._store.max_offset(TIMER, QUEUE):
                return
            self._open()
            self.queue_next = int(self._store.min_offset(TIMER, QUEUE))
        elif slot_ms <= self.current.slot_ms:
            return
        else:
            self._leave_slots(slot_ms, queue_then)
        self._done_before = queue_then
        self.current.begin(slot_ms, self._layout.width_ms)
        self._progress = TimerProgress(slot_ms, 0, self.queue_next, delivered_from, queue_then)

    def _leave_slots(self, until_ms: int, queue_then: int) -> None:
        """Clears the slots from the current one on; what came too late for its slot joins the new
        one."""
        files, now_ms = self.files, self._clock.now_ms()
        slot_ms, late = self.current.slot_ms, list[TimerUnit]()
        while slot_ms < until_ms:
            is_late = True
            for unit in files.units_in(slot_ms):
                is_late = is_late and queue_offset_of(self._store, unit) >= queue_then
                if is_late or self._waits_on(unit, until_ms):
                    late.append(unit)
                else:
                    self.counts.add(unit.topic_hash, -unit.adds, now_ms)
                    self._replaced.discard(unit.log_offset)
            files.clear(slot_ms)
            slot_ms = files.wheel.next_used(slot_ms + files.wheel.width_ms, until_ms)
        for unit in reversed(late):
            files.enter(until_ms, unit.magic, unit.written_ms, unit[4:])

    # Each broker chooses the slot in which a message is rolled by the time at which it puts it on
    # its wheel, so the master's may be a later one.
    def _waits_on(self, unit: TimerUnit, until_ms: int) -> bool:
        """Whether a message of a slot that the master has left is to be rolled, and was not yet."""
        if not unit.rolls or unit.log_offset in self._replaced:
            return False
        try:
            record = parse(self._store.lookup(unit.log_offset))
        except (OffsetOutOfRange, CorruptRecord):
            return False
        place = (record.queue_offset, record.log_offset, record.size)
        message = waiting(decode_bytes(record.properties), place, width_ms=self._layout.width_ms)
        return message is not None and message.slot_ms >= until_ms

    # What goes out.

    def was_delivered(self, unit: TimerUnit, key: str) -> bool:
        """Whether a message was delivered before a crash, or at another broker; one that the log
        shows is removed from those known."""
        if unit.log_offset in self._replaced:
            self._replaced.discard(unit.log_offset)
            return True
        if unit.log_offset in self._elsewhere:
            return True
        if not len(self._recovered):
            return False
        return self._recovered.pop(unit.log_offset, key, is_rolled=unit.rolls)

    def was_rolled(self, log_offset: int) -> bool:
        """Whether another message was stored in place of this one, which may be on the wheel."""
        return log_offset in self._replaced

    def passed(self, unit: TimerUnit) -> None:
        """Takes a message out of the counts: it is delivered or rolled, or never can be."""
        self.counts.add(unit.topic_hash, -unit.adds, self._clock.now_ms())

    def advance(self, now_ms: int) -> bool:
        """Makes the next used slot the current one, if this one is done; whether it did so."""
        current = self.current
        if not current.is_loaded or len(current.agenda) or now_ms < current.end_ms:
            return False
        self._begin_slot(self.files.wheel.next_used(self._leave(), now_ms))
        return True

    def _leave(self) -> int:
        """Clears the current slot, which is done; returns the begin of the next one."""
        current = self.current
        for position in current.recalls:
            unit = self.files.log.read(position)
            self.counts.add(unit.topic_hash, 1, self._clock.now_ms())
        found = sum(current.recalled.values())
        if found:
            logger.info("%d messages were taken back in slot %d", found, current.slot_ms)
        self.files.clear(current.slot_ms)
        return current.end_ms

    async def pending(self, now_ms: int, spans_seconds: Sequence[int]) -> DueCounts:
        """Numbers of messages that wait by due time, with the precision of a slot."""
        return await pending(self._files, self.current, now_ms, spans_seconds)

    # What is kept.

    async def save(self, *, is_clean: bool = False) -> None:
        """Returns when the files are on the disk, after the records to which they refer.

        Raises:
            StoreError: the disk failed.
        """
        files = self.files
        progress = self._progress._replace(
            position=files.log.end,
            queue_next=self.queue_next,
            is_clean=is_clean,
            has_replaced=bool(self._replaced),
        )
        log_end = self._store.log_end
        if not await self._store.flushed.reach(log_end, Deadline.after(_FLUSH_SECONDS)):
            return
        files.log.forget_before(int(self._store.log_start))
        try:
            await files.sync(progress, self._clock.now_ms())
        except OSError as error:
            raise StoreError(f"the timers in {self._root} cannot be saved: {error}") from error

    async def stop(self) -> None:
        """Saves the files for an orderly stop, and closes them."""
        self._is_stopped = True
        if self._files is None:
            return
        try:
            self._tidy_slot()
            await self._store.sync()
            await self.save(is_clean=True)
        except (StoreError, OSError, OffsetOutOfRange) as error:
            logger.error("the timers are recovered at the next start: %s", error)
        finally:
            self.close()

    def _tidy_slot(self) -> None:
        """Rewrites the current slot with its remaining units, since Java knows only whole slots."""
        files, current = self.files, self.current
        if not current.is_loaded or len(current.agenda) > _REWRITTEN_MAX:
            return
        if not len(current.agenda):
            self._begin_slot(self._leave())
            return
        units = [files.log.read(position) for position in current.left()]
        files.clear(current.slot_ms)
        for unit in units:
            files.enter(unit.slot_ms, unit.magic, unit.written_ms, unit[4:])
