"""Gives back what was popped and not acknowledged in time: one loop over the revive queues.

A check point is due when its time is over and all acknowledgements that came before that are read:
the timers have delivered everything up to its time, and a slot's width more, since Java's brokers
know times to that only. A message that comes again is stored in its group's retry topic, and an
acknowledgement of the old one beside it, in the same step: a start after a crash reads both.
Source: PopReviveService of RocketMQ 5.3, which waits for three seconds without a record instead.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.errors import ReplyError, SprocketError, StoreError
from sprocket.base.ports import Clock
from sprocket.base.troubles import Troubles
from sprocket.broker.pop.held import HeldPops
from sprocket.broker.pop.journal import PopJournal
from sprocket.broker.pop.replay import PopReplay
from sprocket.broker.pop.revive_window import OpenPop, ReviveWindow
from sprocket.broker.pop.revived import RevivalRules, revived
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.broker.tables.topics import Topics
from sprocket.delay.timers.timers import Timers
from sprocket.message import properties as names
from sprocket.message.lite import LiteName
from sprocket.message.properties import value_in
from sprocket.message.record import Draft, Record
from sprocket.message.topic import (
    REVIVE_GROUP,
    TIMER,
    is_dead_letter_topic,
    is_retry_topic,
    popped_topic,
)
from sprocket.protocol.bodies.pop import AckRecord, CheckPoint, read_record
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

_PAUSE_SECONDS_MAX, _PAUSE_SECONDS_MIN = 1.0, 0.02
_AGAIN_SECONDS = 1.0
_TIDY_SECONDS = 600.0
#: Check points that are revived, and records that are read, before others run on the loop.
_REVIVED_MAX = 16
_READ_COUNT, _READ_BYTES = 128, 128 * 1024


class Revival:
    """The loop.

    Args:
        held, notified: the pops, and the notifications, that wait for messages.
    """

    def __init__(
        self,
        store: Store,
        journal: PopJournal,
        orders: OrderTable,
        timers: Timers | None,
        *,
        replay: PopReplay,
        offsets: ConsumerOffsets,
        topics: Topics,
        groups: Groups,
        held: HeldPops,
        notified: HeldPops,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        self._store = store
        self._journal = journal
        self._orders = orders
        self._timers = timers
        self._replay = replay
        self._offsets = offsets
        self._topics = topics
        self._groups = groups
        self._held = held
        self._notified = notified
        self._settings = settings
        self._clock = clock
        self._windows: dict[int, ReviveWindow] = {}
        self._troubles = Troubles(lambda: asyncio.get_running_loop().time(), logger)
        #: Up to which time the timers had delivered, and the end of the log at that moment.
        self._delivered = (0, 0)
        self._until_ms = 0
        self._tidy_at = 0.0
        #: Topic, body and properties of the message at the end of the log, if it comes again and
        #: the acknowledgement behind it was lost: it must not come again once more.
        self._unfinished: tuple[str, bytes, bytes] | None = None

    def prepare(self) -> None:
        """Finds what was begun and not finished, before anything is stored."""
        self._unfinished = self._last_given_back()

    async def run(self) -> None:
        """Revives messages until it is cancelled."""
        if self._timers is None:
            return
        self._windows = {number: self._begin(number) for number in self._journal.queues()}
        while True:
            try:
                self._replay.finish()
                pause = await self._round(self._timers)
                self._troubles.ended("late", "popped messages come again")
            except (StoreError, ReplyError) as error:
                self._troubles.failed("late", "popped messages come again later", error)
                pause = _AGAIN_SECONDS
            await asyncio.sleep(pause)

    def _begin(self, number: int) -> ReviveWindow:
        done = self._offsets.committed(REVIVE_GROUP, self._journal.topic, number)
        start = max(
            -1 if done is None else done + 1, self._store.min_offset(self._journal.topic, number)
        )
        end = self._store.stored.max_offset(self._journal.topic, number)
        return ReviveWindow(self._journal.broker, min(start, end))

    def _last_given_back(self) -> tuple[str, bytes, bytes] | None:
        """The last message of the log, if it is in a retry topic or is a dead letter."""
        queues, stored = self._store.queues(), self._store.stored
        if self._journal.topic not in queues:
            return None
        for topic, numbers in queues.items():
            may_be = is_retry_topic(topic) or is_dead_letter_topic(topic)
            for number in numbers if may_be else ():
                last = max(stored.max_offset(topic, number) - 1, 0)
                found = stored.read(topic, number, last, count_max=1, bytes_max=1)
                for record in found.records(on_damage=_left_out):
                    if record.log_offset + record.size == self._store.log_end:
                        return topic, bytes(record.body), bytes(record.properties)
        return None

    async def _round(self, timers: Timers) -> float:
        """Reads and revives what there is; returns the pause until the next round, s."""
        until_ms = self._until(timers)
        for number, window in self._windows.items():
            await self._read(number, window)
            revived_count = 0
            while (pop := window.first_due(until_ms)) is not None:
                await self._revive(number, pop)
                window.done(pop)
                await self._read(number, window)
                revived_count += 1
                if revived_count % _REVIVED_MAX == 0:
                    await asyncio.sleep(0)
            self._commit(number, window)
        self._journal.mark_all()
        self._tidy()
        return self._pause()

    def _tidy(self) -> None:
        """Forgets from time to time what nobody can need any more."""
        time = asyncio.get_running_loop().time()
        if time < self._tidy_at:
            return
        self._tidy_at = time + _TIDY_SECONDS
        now_ms, longest_ms = self._clock.now_ms(), self._settings.store.timer_delay_seconds_max
        self._offsets.popped.forget_voids(now_ms - 2000 * longest_ms)
        self._orders.keep(
            lambda topic, group: (
                _own_topic(topic) in self._topics.by_name and self._groups.get(group) is not None
            ),
            now_ms,
        )

    # An acknowledgement that replicas do not have yet is not read, so what the timers had delivered
    # counts once readers see the log up to where it ended then.
    def _until(self, timers: Timers) -> int:
        """The time up to which check points are due, ms."""
        self._confirm()
        if self._store.readable_end >= self._delivered[1]:
            now_ms = self._clock.now_ms()
            delivered_ms = timers.current.done_until(now_ms) if timers.is_in_use else now_ms
            if timers.lag:  # what is not on the wheel yet is due after it was stored
                stored_ms = self._store.time_of(TIMER, 0, timers.queue_next)
                delivered_ms = min(delivered_ms, stored_ms - 1)
            if timers.rolled_ms is not None:
                delivered_ms = min(delivered_ms, timers.rolled_ms - 1)
            self._delivered = (delivered_ms, int(self._store.log_end))
            self._confirm()
        return self._until_ms - self._settings.store.timer_slot_ms

    def _confirm(self) -> None:
        delivered_ms, log_end = self._delivered
        if self._store.readable_end >= log_end:
            self._until_ms = delivered_ms

    def _pause(self) -> float:
        dues = [each.next_ms for each in self._windows.values() if each.next_ms is not None]
        if not dues:
            return _PAUSE_SECONDS_MAX
        left_ms = min(dues) + self._settings.store.timer_slot_ms - self._clock.now_ms() + 1
        return min(max(left_ms / 1000, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX)

    async def _read(self, number: int, window: ReviveWindow) -> None:
        """Reads all records of a queue that are there."""
        topic = self._journal.topic
        while window.next_offset < self._store.max_offset(topic, number):
            at = max(window.next_offset, self._store.min_offset(topic, number))
            if self._store.is_cold(topic, number, at, count=_READ_COUNT, bytes_max=_READ_BYTES):
                await self._store.load(topic, number, at, count=_READ_COUNT, bytes_max=_READ_BYTES)
            found = self._store.read(
                topic, number, at, count_max=_READ_COUNT, bytes_max=_READ_BYTES
            )
            for record in found.records(on_damage=_left_out):
                window.take(record.queue_offset, _read(record))
            if window.next_offset < found.next_offset:
                window.take(int(found.next_offset) - 1, None)
            await asyncio.sleep(0)

    def _commit(self, number: int, window: ReviveWindow) -> None:
        done, topic = window.done_offset, self._journal.topic
        known = self._offsets.committed(REVIVE_GROUP, topic, number)
        if done >= 0 and (known is None or done > known):
            self._offsets.put(REVIVE_GROUP, topic, queue_number=number, offset=done)

    async def _revive(self, revive_queue: int, pop: OpenPop) -> None:
        """Gives back the messages of a check point; those that are done leave it at once.

        Raises:
            StoreError, ReplyError: one cannot be stored now.
        """
        key = pop.key
        for offset in list(pop.left):
            record = await self._message(pop, offset)
            if record is not None:
                self._give_back(revive_queue, pop, offset, record)
            elif not self._is_void(pop):
                logger.info("message %d of %s %d is gone", offset, key.topic, key.queue_number)
                self._offsets.popped.add(key.group, key.topic, key.queue_number, -1)
            pop.left.pop(offset, None)

    def _is_void(self, pop: OpenPop) -> bool:
        """Whether its group was reset since, or its topic or group is deleted."""
        key = pop.key
        return (
            key.pop_ms <= self._offsets.popped.void_ms(key.group, key.topic, key.queue_number)
            or self._topics.get(popped_topic(key.topic, key.group)) is None
            or self._groups.get(key.group) is None
        )

    async def _message(self, pop: OpenPop, offset: int) -> Record | None:
        """The message to give back; None if there is none any more."""
        key = pop.key
        if self._is_void(pop):
            return None
        place = (key.topic, key.queue_number, offset)
        if self._store.is_cold(*place, count=1, bytes_max=1):
            await self._store.load(*place, count=1, bytes_max=1)
        found = self._store.read(*place, count_max=1, bytes_max=1)
        for record in found.records(on_damage=_left_out):
            if record.queue_offset == offset and not self._is_void(pop):
                return record
        return None

    def _is_there(self, draft: Draft) -> bool:
        """Whether a message came again just before this broker's start; it is asked once."""
        if self._unfinished is None:
            return False
        if self._unfinished != (draft.topic, bytes(draft.body), bytes(draft.properties)):
            return False
        self._unfinished = None
        return True

    def _give_back(self, revive_queue: int, pop: OpenPop, offset: int, record: Record) -> None:
        key = pop.key
        group = self._groups.get(key.group)
        rules = RevivalRules(
            0 if group is None else group.retry_max_times, self._settings.config.pop_retry_v2
        )
        draft = revived(record, key.group, pop_ms=key.pop_ms, rules=rules)
        self._topics.make_for_group(draft.topic, queues=1)
        is_retry = is_retry_topic(draft.topic)
        if is_retry and self._offsets.committed(key.group, draft.topic, 0) is None:
            self._offsets.put(key.group, draft.topic, queue_number=0, offset=0)
        done = AckRecord(
            offset=offset, broker=key.broker, group=key.group, pop_ms=key.pop_ms,
            queue_number=key.queue_number, start_offset=key.start_offset, topic=key.topic,
        )  # fmt: skip
        try:
            self._journal.give_back([] if self._is_there(draft) else [draft], done, revive_queue)
        except IllegalDraft as error:
            logger.error("message %d of %s cannot come again: %s", offset, key.topic, error)
            self._journal.give_back([], done, revive_queue)
        for held in (self._held, self._notified):
            held.wake_any(popped_topic(key.topic, key.group), key.group)


def _read(record: Record) -> CheckPoint | AckRecord | None:
    """The record about popped messages in a record of the log; None if it is none."""
    try:
        return read_record(value_in(bytes(record.properties), names.TAGS), record.body)
    except SprocketError as error:
        logger.error("a record about popped messages is left out: %s", error)
        return None


def _left_out(error: Exception) -> None:
    logger.error("a record cannot be read: %s", error)


def _own_topic(topic: str) -> str:
    """The topic that exists for what was popped: of a lite topic the parent topic."""
    name = LiteName.of_queue(topic)
    return topic if name is None else name.parent
