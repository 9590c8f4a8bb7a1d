"""Delivers delayed messages when they are due: one loop for each level.

Within a level, messages are due in the order in which they were stored. So a loop reads the next
one, waits until it is due, stores it under its own topic, and continues with the one after it.
Progress never passes a message that could not be stored: the loop tries again. Progress that was
not saved before a crash is recovered from the log: each delivered message names the log offset of
the record in which it waited. So no message is lost and none is delivered twice.
Source: ScheduleMessageService.DeliverDelayedMessageTimerTask of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection

from sprocket.base.deadline import Deadline, loop_ms
from sprocket.base.errors import ClosedError, CorruptRecord, StoreError
from sprocket.base.ports import Clock
from sprocket.base.troubles import Troubles
from sprocket.delay.levels.delivered import delivered_since
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.levels.schedule import ScheduleProgress, due_draft, wait_ms
from sprocket.message.record import Draft, Record
from sprocket.message.topic import SCHEDULE
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.reading.queue_reader import ReadResult, ReadStatus
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended

logger = logging.getLogger(__name__)

#: Messages and bytes in one read.
_COUNT_MAX = 32
_BYTES_MAX = 1 << 20
#: Longest wait before the time is checked again, as the wall clock may jump, s.
_WAIT_SECONDS_MAX = 5.0
#: About how many bytes of the log are read after a crash to recover progress.
_LOOK_BACK_BYTES = 64 << 20
#: Pause before a message that could not be stored is tried again, s.
_AGAIN_SECONDS = 1.0


class LevelDelivery:
    """Moves due messages from the schedule topic to their own topics.

    Args:
        append: stores a due message in the log.
        elsewhere: log offsets of messages that were delivered at other brokers.
    """

    def __init__(
        self,
        store: Store,
        append: Callable[[Draft], Appended],
        *,
        levels: DelayLevels,
        progress: ScheduleProgress,
        clock: Clock,
        elsewhere: Collection[int] = (),
    ) -> None:
        self._elsewhere = elsewhere
        self._store = store
        self._append = append
        self._levels = levels
        self._progress = progress
        self._clock = clock
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        #: By level, when a clock that was set back was noticed, by the loop's time in ms, and where
        #: the log ended then.
        self._set_back: dict[int, tuple[int, int]] = {}

    # Progress is saved every ten seconds by default, so after a crash it is too low. The log has
    # what was delivered since: only its part behind the first waiting message, or behind the log
    # offset that was saved with the progress, needs to be read.
    def start(self) -> None:
        """Corrects progress that is outside its queue, and moves it past delivered messages."""
        for level in range(1, self._levels.highest + 1):
            queue = self._levels.queue_of(level)
            self._correct(
                level,
                low=self._store.min_offset(SCHEDULE, queue),
                high=self._store.max_offset(SCHEDULE, queue),
            )
        begin = self._first_waiting()
        if begin is not None:
            begin = max(begin, self._progress.log_offset or 0)
            for queue, offset in delivered_since(self._store, begin).items():
                level = queue + 1
                if level <= self._levels.highest and offset >= self._progress.at(level):
                    logger.info("delay level %d continues at %d, by the log", level, offset + 1)
                    self._progress.move(level, offset + 1)
        self._progress.log_offset = self._store.log_end

    def _first_waiting(self) -> int | None:
        """Log offset of the first message that waits according to progress; None if none does."""
        found = []
        for level in range(1, self._levels.highest + 1):
            queue, at = self._levels.queue_of(level), self._progress.at(level)
            read = self._store.read(SCHEDULE, queue, at, count_max=1, bytes_max=1)
            try:
                found += [record.log_offset for record in read.records()]
            except CorruptRecord:  # delivery logs it
                return 0
        return min(found, default=None)

    async def run(self) -> None:
        """Delivers all levels, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for level in range(1, self._levels.highest + 1):
                tasks.create_task(self._serve(level))

    async def _serve(self, level: int) -> None:
        queue = self._levels.queue_of(level)
        while True:
            pause: float | None = await self._load(level, queue)
            if not pause:
                pause = self._deliver(level)
            if pause is None:
                arrivals = self._store.arrivals(SCHEDULE, queue)
                await arrivals.reach(self._progress.at(level) + 1, Deadline.never())
            else:
                await asyncio.sleep(pause)

    async def _load(self, level: int, queue: int) -> float:
        """Loads into memory what is delivered next.

        Returns:
            0, or the seconds until the next try if that fails.
        """
        at = self._progress.at(level)
        if self._store.is_cold(SCHEDULE, queue, at, count=_COUNT_MAX, bytes_max=_BYTES_MAX):
            try:
                await self._store.load(SCHEDULE, queue, at, count=_COUNT_MAX, bytes_max=_BYTES_MAX)
            except StoreError as error:
                self._waits(level, error)
                return _AGAIN_SECONDS
        return 0.0

    def _deliver(self, level: int) -> float | None:
        """Delivers some of a level's messages that are due.

        Returns:
            Seconds until the next call; None if no message waits.
        """
        found = self._store.read(
            SCHEDULE,
            self._levels.queue_of(level),
            self._progress.at(level),
            count_max=_COUNT_MAX,
            bytes_max=_BYTES_MAX,
        )
        if found.status is not ReadStatus.FOUND:
            return self._go_on(level, found)
        try:
            return self._deliver_found(level, found)
        except CorruptRecord as error:
            logger.error("delay level %d: a message is left out: %s", level, error)
            self._progress.move(level, self._progress.at(level) + 1)
            return 0.0

    def _deliver_found(self, level: int, found: ReadResult) -> float:
        delay_ms = self._levels.delay_ms(level)
        for record in found.records():
            now_ms = self._clock.now_ms()
            waiting_ms = wait_ms(record.stored_ms + delay_ms, delay_ms=delay_ms, now_ms=now_ms)
            if record.stored_ms > now_ms:
                waiting_ms = min(waiting_ms, self._left_ms(level, record))
            if waiting_ms > 0:
                self._note_place()
                return min(waiting_ms / 1000, _WAIT_SECONDS_MAX)
            is_there = record.log_offset in self._elsewhere
            if not is_there and not self._store_again(level, record):
                return _AGAIN_SECONDS
            self._progress.move(level, record.queue_offset + 1)
            self._progress.log_offset = self._store.log_end
        return 0.0

    def _left_ms(self, level: int, record: Record) -> int:
        """How long a message may still wait that was stored later than it is now.

        All that was stored by then waits no longer than the level's delay from the moment in which
        the clock was found to be set back; what comes behind it in the queue is not held either.
        """
        noticed_ms, log_end = self._set_back.get(level, (0, 0))
        if record.log_offset >= log_end:
            noticed_ms, log_end = loop_ms(), self._store.log_end
            self._set_back[level] = noticed_ms, log_end
        return max(0, noticed_ms + self._levels.delay_ms(level) - loop_ms())

    def _note_place(self) -> None:
        """Moves the log offset of the progress on while nothing is due and other messages are
        stored, so that a start after a crash has little to read."""
        end = self._store.log_end
        if end - (self._progress.log_offset or 0) > _LOOK_BACK_BYTES:
            self._progress.log_offset = end
            self._progress.is_changed = True

    def _go_on(self, level: int, found: ReadResult) -> float | None:
        at = self._progress.at(level)
        if found.next_offset == at or found.max_offset == at:
            return None
        self._correct(level, low=found.min_offset, high=found.max_offset)
        if self._progress.at(level) == at:
            logger.error("delay level %d: messages %d to %d are gone", level, at, found.next_offset)
            self._progress.move(level, found.next_offset)
        return 0.0

    def _correct(self, level: int, *, low: int, high: int) -> None:
        correction = self._progress.clamp(level, low=low, high=high)
        if correction is not None:
            logger.warning(
                "delay level %d: the next offset was %d, but the queue has %d to %d; it continues "
                "at %d",
                level, correction.before, low, high, correction.after,
            )  # fmt: skip

    def _store_again(self, level: int, record: Record) -> bool:
        """Stores a due message. False if it must be tried again; True if it is stored, or is
        invalid and left out."""
        try:
            self._append(due_draft(record))
        except (CorruptRecord, IllegalDraft) as error:
            logger.error("delayed message at %d is left out: %s", record.log_offset, error)
        except (StoreError, ClosedError) as error:
            self._waits(level, error)
            return False
        if self._troubles.is_any:
            self._troubles.ended(f"{level}", f"delay level {level} waits no more")
        return True

    def _waits(self, level: int, error: Exception) -> None:
        self._troubles.failed(f"{level}", f"delay level {level} waits", error)
