"""What falls due at an acting master, read from the copy that it has: the log and the wheel.

Nothing is changed: the wheel stays where the master's timers were, and so does the progress of the
delay levels. So a slave goes on following its master when that is back, or becomes the master, as
if it had delivered nothing; what it did deliver is in `EscapedTable`.

Records about popped messages wait for the master: it alone knows which of them belong together.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.base.ports import Clock
from sprocket.broker.members.escape_send import DueMessage
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.levels.schedule import ScheduleProgress, due_draft, wait_ms
from sprocket.delay.timers import timed
from sprocket.delay.timers.delivery_history import DeliveryHistory, read_history
from sprocket.delay.timers.timer_log import TimerUnit
from sprocket.delay.timers.timers import Timers
from sprocket.message import properties as names
from sprocket.message.drafting import copy_draft
from sprocket.message.properties import decode_bytes
from sprocket.message.record import Draft, Record, parse
from sprocket.message.topic import HALF, SCHEDULE, TIMER
from sprocket.store.reading.queue_reader import ReadStatus
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended
from sprocket.transaction import half as halves
from sprocket.transaction.check import CheckRules
from sprocket.transaction.check import wait_ms as check_wait_ms
from sprocket.transaction.ledger import Ledger
from sprocket.transaction.settle import Settlement

logger = logging.getLogger(__name__)

#: A queue at its end is read again after so long, ms: the log may still grow.
_END_MS = 1_000
#: Messages on the wheel that are read before others run on the loop, and as how many a slot counts.
_UNITS_MAX, _SLOT_COSTS = 2_048, 16
#: Progress of the timers that is so old is surely on the disk, ms.
_CERTAIN_MS = 60_000


class DueSource(Protocol):
    """One kind of messages that fall due."""

    async def begin(self) -> None:
        """Finds where the master was."""
        ...

    async def take(self) -> DueMessage | None:
        """The next message that is due; None if none is due now. Each is taken once.

        Raises:
            StoreError: the disk failed; then it is not taken.
        """
        ...


class LevelSource:
    """Messages with a delay level.

    Args:
        correct: moves the progress past what the log shows as delivered.
    """

    def __init__(
        self,
        store: Store,
        levels: DelayLevels,
        progress: ScheduleProgress,
        clock: Clock,
        *,
        correct: Callable[[], None],
    ) -> None:
        self._store = store
        self._levels = levels
        self._progress = progress
        self._clock = clock
        self._correct = correct
        self._next: dict[int, int] = {}
        #: By level, when it is read again, ms since 1970.
        self._due_ms: dict[int, int] = {}

    async def begin(self) -> None:
        """See `DueSource`."""
        self._correct()
        every = range(1, self._levels.highest + 1)
        self._next = {level: self._progress.at(level) for level in every}
        self._due_ms = {}

    async def take(self) -> DueMessage | None:
        """See `DueSource`."""
        for level in self._next:
            if self._due_ms.get(level, 0) > self._clock.now_ms():
                continue
            if (found := await self._take(level)) is not None:
                return found
        return None

    async def _take(self, level: int) -> DueMessage | None:
        place = (SCHEDULE, self._levels.queue_of(level), self._next[level])
        if self._store.is_cold(*place, count=1, bytes_max=1):
            await self._store.load(*place, count=1, bytes_max=1)
        now_ms = self._clock.now_ms()
        found = self._store.read(*place, count_max=1, bytes_max=1)
        if found.status is not ReadStatus.FOUND:
            self._next[level] = max(self._next[level], int(found.min_offset))
            self._due_ms[level] = now_ms + _END_MS
            return None
        try:
            record = next(iter(found.records()))
            delay_ms = self._levels.delay_ms(level)
            waiting = wait_ms(record.stored_ms + delay_ms, delay_ms=delay_ms, now_ms=now_ms)
            if waiting > 0:
                self._due_ms[level] = now_ms + waiting
                return None
            draft = due_draft(record)
        except CorruptRecord as error:
            logger.error("delay level %d: a message is left to the master: %s", level, error)
            self._next[level] += 1
            return None
        self._next[level] = record.queue_offset + 1
        return DueMessage(record.log_offset, draft, decode_bytes(draft.properties))


class _Waiting(NamedTuple):
    due_ms: int
    position: int


class TimerSource:
    """Messages for a time that their senders chose.

    Args:
        own_topics: whether a topic is the broker's own: such messages are left to the master.
    """

    def __init__(
        self, timers: Timers | None, store: Store, clock: Clock, own_topics: Callable[[str], bool]
    ) -> None:
        self._timers = timers
        self._store = store
        self._clock = clock
        self._is_own = own_topics
        self._slot_ms = 0
        self._history: DeliveryHistory | None = None
        #: Messages of the slots that have begun, by due time.
        self._agenda: list[_Waiting] = []
        self._recalled: set[str] = set()

    async def begin(self) -> None:
        """See `DueSource`."""
        self._agenda, self._history, self._slot_ms = [], None, 0
        self._recalled.clear()

    async def take(self) -> DueMessage | None:
        """See `DueSource`."""
        timers = self._timers
        if timers is None or timers.progress is None or timers.lag:
            return None
        if self._history is None:
            begin = timers.progress.delivered_from
            self._history = await read_history(self._store, begin, by_key=False)
            self._slot_ms = timers.current.slot_ms
        now_ms = self._clock.now_ms()
        await self._load(timers, now_ms)
        while self._agenda and self._agenda[0].due_ms <= now_ms:
            try:
                unit = timers.files.log.read(self._agenda[0].position)
                await self._store.cold.load_record(unit.log_offset)
            except OffsetOutOfRange as error:
                logger.error("a message that waited is gone: %s", error)
                heapq.heappop(self._agenda)
                continue
            heapq.heappop(self._agenda)
            if (found := self._message(timers, unit)) is not None:
                return found
        return None

    async def _load(self, timers: Timers, now_ms: int) -> None:
        """Puts the messages of the slots on the agenda that have begun."""
        wheel, count = timers.files.wheel, 0
        while self._slot_ms <= now_ms:
            count += _SLOT_COSTS
            for unit, position in _units(timers, self._slot_ms):
                count += 1
                if count > _UNITS_MAX:
                    count = 0
                    await asyncio.sleep(0)
                if unit.is_recall:
                    self._take_back(unit)
                else:
                    due_ms = self._due_ms(timers, unit)
                    heapq.heappush(self._agenda, _Waiting(due_ms, position))
            self._slot_ms = wheel.next_used(self._slot_ms + wheel.width_ms, now_ms)

    def _due_ms(self, timers: Timers, unit: TimerUnit) -> int:
        """When a message is due: one that the master would roll waits on."""
        slot_end_ms = unit.slot_ms + timers.files.wheel.width_ms
        if not unit.rolls:
            return unit.due_ms or slot_end_ms
        record = self._record(unit)
        if record is None:
            return slot_end_ms
        place = (record.queue_offset, record.log_offset, record.size)
        width_ms = timers.files.wheel.width_ms
        message = timed.waiting(decode_bytes(record.properties), place, width_ms=width_ms)
        return slot_end_ms if message is None else message.due_ms

    def _take_back(self, unit: TimerUnit) -> None:
        if (record := self._record(unit)) is not None:
            key = decode_bytes(record.properties).get(names.TIMER_DELETE_KEY)
            self._recalled.add(key or "")

    def _record(self, unit: TimerUnit) -> Record | None:
        try:
            record = parse(self._store.lookup(unit.log_offset))
        except (OffsetOutOfRange, CorruptRecord) as error:
            logger.error("a message that waited is left to the master: %s", error)
            return None
        return record if record.topic == TIMER else None

    def _message(self, timers: Timers, unit: TimerUnit) -> DueMessage | None:
        """The message of a unit; None if it is not to be delivered here."""
        assert self._history is not None
        if unit.log_offset in self._history.origins or timers.was_rolled(unit.log_offset):
            return None
        record = self._record(unit)
        if record is None:
            return None
        properties = decode_bytes(record.properties)
        key = timed.key_of(properties)
        is_recalled = key in self._recalled and names.UNIQUE_KEY in properties
        if is_recalled or self._is_own(properties.get(names.REAL_TOPIC, "")):
            return None
        try:
            draft = timed.delivered(
                record, properties, entered_ms=unit.written_ms, now_ms=self._clock.now_ms()
            )
        except CorruptRecord as error:
            logger.error("a message that waited is left to the master: %s", error)
            return None
        return DueMessage(record.log_offset, draft, properties)


def _units(timers: Timers, slot_ms: int) -> Iterator[tuple[TimerUnit, int]]:
    """The units of a slot with their positions."""
    position = timers.files.wheel.get(slot_ms).last
    for unit in timers.files.units_in(slot_ms):
        yield unit, position
        position = unit.previous


class _Reading:
    """What a settlement needs that only reads."""

    def __init__(self, offsets: ConsumerOffsets) -> None:
        self._offsets = offsets

    def accept_committed(self, draft: Draft, properties: dict[str, str]) -> Appended:
        raise NotImplementedError

    def accept_due(self, draft: Draft) -> Appended:
        raise NotImplementedError

    def open_parking(self) -> None:
        """Nothing is parked here."""

    def committed(self, group: str, topic: str, queue_number: int) -> int | None:
        return self._offsets.committed(group, topic, queue_number)

    def put(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """The positions stay the master's."""


class HalfSource:
    """Undecided transactions: another broker asks how they ended.

    Args:
        rules: how long a producer has to end one by itself.
    """

    def __init__(
        self,
        store: Store,
        offsets: ConsumerOffsets,
        *,
        rules: Callable[[], CheckRules],
        clock: Clock,
    ) -> None:
        self._store = store
        self._reading = _Reading(offsets)
        self._rules = rules
        self._clock = clock
        self._settlement: Settlement | None = None
        #: By the loop's time in ms: the log offset of each half.
        self._agenda: list[tuple[int, int]] = []

    async def begin(self) -> None:
        """See `DueSource`."""
        ledger = Ledger()
        settlement = self._settlement = Settlement(
            self._store, self._reading, ledger=ledger, offsets=self._reading, clock=self._clock,
            host=b"",
        )  # fmt: skip
        settlement.start()
        rules, now_ms = self._rules(), self._clock.now_ms()
        self._agenda = [
            (loop_ms() + check_wait_ms(half, rules, now_ms=now_ms), half.log_offset)
            for half in ledger.since(0)
        ]
        heapq.heapify(self._agenda)

    async def take(self) -> DueMessage | None:
        """See `DueSource`."""
        while self._agenda and self._agenda[0][0] <= loop_ms():
            log_offset = heapq.heappop(self._agenda)[1]
            assert self._settlement is not None
            try:
                found = self._settlement.read(log_offset)
                topic, queue = halves.belongs_to(found.record, found.properties)
            except (OffsetOutOfRange, CorruptRecord) as error:
                logger.error("half message at %d is left to the master: %s", log_offset, error)
                continue
            if not self._settlement.is_committed(found):
                draft = copy_draft(found.record, found.properties, topic, queue_number=queue)
                return DueMessage(log_offset, draft, found.properties, is_half=True)
        return None


def is_waiting(
    store: Store,
    log_offset: int,
    *,
    progress: ScheduleProgress,
    timers: Timers | None,
    offsets: ConsumerOffsets,
) -> bool:
    """Whether somebody may still want to deliver the message of a record: the progress of its kind
    has not passed it, and nor would it after a crash that loses the newest progress."""
    try:
        record = parse(store.lookup(log_offset))
    except (OffsetOutOfRange, CorruptRecord):
        return False
    if record.topic == SCHEDULE:
        return record.queue_offset >= progress.at(record.queue_number + 1)
    if record.topic == HALF:
        done = offsets.committed(halves.SYSTEM_GROUP, HALF, halves.QUEUE) or 0
        return record.queue_offset >= done
    if record.topic != TIMER or timers is None or timers.progress is None:
        return record.topic == TIMER
    place = (record.queue_offset, record.log_offset, record.size)
    message = timed.waiting(decode_bytes(record.properties), place, width_ms=1)
    return message is None or message.slot_ms > timers.progress.slot_ms - _CERTAIN_MS
