"""Delivers messages at the time that their senders chose: one loop over the timers.

A due message is stored under its own topic, and only then removed from the agenda: if the store
refuses it, it is tried again, and no later message overtakes it. The clock is read at least once a
second, so that a jump of the clock is noticed.
Source: TimerMessageStore.TimerDequeuePutMessageService of RocketMQ 5.3, which gives up after three
tries.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from sprocket.base.errors import ClosedError, CorruptRecord, OffsetOutOfRange, StoreError
from sprocket.base.ports import Clock
from sprocket.base.troubles import Troubles
from sprocket.delay.timers import timed
from sprocket.delay.timers.timer_log import TimerUnit
from sprocket.delay.timers.timers import Timers
from sprocket.message import properties as names
from sprocket.message.properties import decode_bytes
from sprocket.message.record import Draft, parse
from sprocket.message.topic import TIMER
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended

logger = logging.getLogger(__name__)

#: Messages that are delivered before other tasks run on the loop.
_ROUND_MAX = 64
_PAUSE_SECONDS_MAX = 1.0
#: Messages that become due within this time are delivered together.
_PAUSE_SECONDS_MIN = 0.002
#: Pause before another try to store a message, s.
_AGAIN_SECONDS = 1.0
#: The files are saved after so many pauses even if nothing was delivered.
_IDLE_ROUNDS = 5


class TimedDelivery:
    """The loop.

    Args:
        timers: the messages that wait.
        store: the store of their records.
        append: stores a due message; every message is stored through it.
        save_ms: gives the pause between two saves of the timers' files.

    Attributes:
        count: messages delivered since the start.
    """

    def __init__(
        self,
        timers: Timers,
        store: Store,
        append: Callable[[Draft], Appended],
        *,
        clock: Clock,
        save_ms: Callable[[], int],
    ) -> None:
        self._timers = timers
        self._store = store
        self._append = append
        self._clock = clock
        self._save_ms = save_ms
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        self.count = 0

    async def run(self) -> None:
        """Delivers due messages until it is cancelled.

        Raises:
            StoreError: the disk failed.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._serve())
            tasks.create_task(self._keep())

    async def _serve(self) -> None:
        timers = self._timers
        while True:
            pause = await self._round()
            if pause <= 0:
                await asyncio.sleep(0)
                continue
            timers.current.sooner.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await timers.current.sooner.wait()

    # A read of a cold record suspends, and meanwhile messages may arrive that are due earlier. So
    # the first entry is checked again after each read: everything from there to its removal runs
    # without a suspension, and an entry is removed only when its message is stored.
    async def _round(self) -> float:
        """Delivers some messages; returns the pause until the next round, s."""
        # Catching up comes first, because a message that is not on the wheel yet may be the next
        # one due. Loading a cold record lets others run, and one of them may store a message that
        # is due earlier: so the first of the agenda is asked for again before anything is
        # delivered.
        timers = self._timers
        try:
            if timers.catch_up():
                return 0.0
        except (StoreError, OSError) as error:
            self._troubles.failed("late", "messages that wait are put on the wheel later", error)
            return _AGAIN_SECONDS
        self._troubles.ended("late", "messages that wait are put on the wheel again")
        if not timers.is_in_use:
            return _PAUSE_SECONDS_MAX
        if not timers.current.is_loaded:
            await timers.current.load(timers.files)
        now_ms = self._clock.now_ms()
        for _ in range(_ROUND_MAX):
            position = timers.current.agenda.first(now_ms)
            if position is None:
                break
            try:
                unit = timers.files.log.read(position)
                await self._store.cold.load_record(unit.log_offset)
            except OffsetOutOfRange as error:
                logger.error("a message that waited is gone: %s", error)
                timers.current.agenda.drop()
                continue
            except StoreError as error:
                self._troubles.failed("due", "messages that are due wait", error)
                return _AGAIN_SECONDS
            if timers.current.agenda.first(now_ms) != position:  # an earlier one arrived meanwhile
                continue
            if not self._deliver(unit):
                return _AGAIN_SECONDS
            timers.current.agenda.drop()
        return self._pause(now_ms)

    def _pause(self, now_ms: int) -> float:
        timers = self._timers
        due_ms = timers.current.agenda.next_ms()
        if due_ms is None:
            if timers.advance(now_ms):
                return 0.0
            due_ms = timers.current.end_ms
        if due_ms <= now_ms:
            return 0.0
        return min(max((due_ms - now_ms) / 1000, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX)

    def _deliver(self, unit: TimerUnit) -> bool:
        """Stores a due message; False if the store refuses it now and it must be tried again."""
        timers = self._timers
        try:
            draft = self._draft(unit)
            if draft is not None:
                appended = self._append(draft)
                self.count += 1
                if unit.rolls:
                    timers.on_rolled(decode_bytes(draft.properties), appended)
        except (OffsetOutOfRange, CorruptRecord, IllegalDraft) as error:
            logger.error("a message that waited is left out: %s", error)
        except (StoreError, ClosedError) as error:
            self._troubles.failed("due", "messages that are due wait", error)
            return False
        self._troubles.ended("due", "messages that were due are delivered again")
        timers.passed(unit)
        return True

    def _draft(self, unit: TimerUnit) -> Draft | None:
        """The message to store for a unit; None if it is recalled or was delivered before.

        Raises:
            OffsetOutOfRange: its record has left the log.
            CorruptRecord: its record is another one, or names no topic and queue.
        """
        timers = self._timers
        record = parse(self._store.lookup(unit.log_offset))
        if record.topic != TIMER:
            raise CorruptRecord(f"the record at {unit.log_offset} has not waited")
        properties = decode_bytes(record.properties)
        key = timed.key_of(properties)
        if timers.was_delivered(unit, key):
            return None
        now_ms = self._clock.now_ms()
        if unit.rolls:
            return timed.rolled(record, properties, entered_ms=unit.written_ms, now_ms=now_ms)
        if key in timers.current.recalled and names.UNIQUE_KEY in properties:
            timers.current.recalled[key] = True
            return None
        return timed.delivered(record, properties, entered_ms=unit.written_ms, now_ms=now_ms)

    async def _keep(self) -> None:
        """Saves the files in each round with deliveries or new messages, else in every fifth."""
        saved, idle = (0, 0), 0
        while True:
            await asyncio.sleep(self._save_ms() / 1000)
            done = (self._timers.entered, self.count)
            idle += 1
            if self._timers.is_in_use and (done != saved or idle >= _IDLE_ROUNDS):
                await self._timers.save()
                saved, idle = done, 0
