"""Writes the records about popped messages to the log.

A pop writes a check point, an acknowledgement writes a record of its own; both wait in the timers
and come into one of the revive queues when the messages' time is near (a check point, a second
before it) or there. So all that is in flight lies in the log and in the timers' files, as RocketMQ
keeps it, and slaves have it through the log; nothing of it is kept in memory but its number.

The group's offset moves in the same step as its check point is written. The offsets are saved later
than that, so a start reads the records since then, and moves them again (`replay`). What is
popped in order is one row for each queue: each change of one is a record too, of a kind that Java's
brokers read past.
Source: PopMessageProcessor.appendCheckPoint, AckMessageProcessor.appendAck of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

import msgspec

from sprocket.base.ports import Clock
from sprocket.broker.sending.destination import Destination, Intake
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderedPop, OrderTable
from sprocket.delay.timers.timed import TimedWait, slot_of
from sprocket.message import properties as names
from sprocket.message.drafting import drafted
from sprocket.message.hashing import tag_code
from sprocket.message.properties import encode
from sprocket.message.record import Draft
from sprocket.message.topic import TIMER, revive_topic
from sprocket.protocol.bodies.pop import (
    ACK,
    ACK_BATCH,
    CHECK_POINT,
    IN_ORDER,
    AckRecord,
    CheckPoint,
    OrderRecord,
    unique_key,
)
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended

#: A check point comes so long before its messages' time, ms. Source: PopAckConstants.
CHECK_POINT_EARLY_MS = 1000


class DueAck(NamedTuple):
    """An acknowledgement, its revive queue, and the time of its check point's messages."""

    record: AckRecord
    revive_queue: int
    due_ms: int


class OrderRow(NamedTuple):
    """What a group has popped in order from a queue; None if nothing is known any more."""

    group: str
    topic: str
    queue_number: int
    row: OrderedPop | None


_due_ms = attrgetter("due_ms")
_TAG_CODES = {tag: tag_code(tag) for tag in (ACK, ACK_BATCH, IN_ORDER)}
_IN_ORDER_TEXT = encode({names.TAGS: IN_ORDER}).encode()
_encode = msgspec.json.Encoder().encode


class PopJournal:
    """The records about popped messages.

    Args:
        host: the broker's address in binary form.
        save_orders: saves the pops in order in their file, and the log before; raises `StoreError`
            or `ClosedError`.

    Attributes:
        topic: the topic of the records.
        has_orders: whether a start finds in the file from where on records of pops in order count.
    """

    def __init__(
        self,
        store: Store,
        ingress: Ingress,
        offsets: ConsumerOffsets,
        orders: OrderTable,
        *,
        settings: BrokerSettings,
        clock: Clock,
        host: bytes,
        save_orders: Callable[[], Awaitable[None]],
    ) -> None:
        self._save_orders = save_orders
        self._store = store
        self._ingress = ingress
        self._offsets = offsets
        self._orders = orders
        self._settings = settings
        self._clock = clock
        self._host = host
        self.topic = revive_topic(settings.config.cluster)
        self._turn = 0
        self._queues_before = 0
        self.has_orders = False

    @property
    def broker(self) -> str:
        """The broker's name."""
        return self._settings.config.name

    def queues(self) -> range:
        """The numbers of all revive queues, also those of a folder that had more."""
        return range(max(self._settings.config.revive_queues, self._queues_before))

    def count_queues(self) -> None:
        """Counts the revive queues that are in the folder."""
        known = self._store.queues().get(self.topic, ())
        self._queues_before = max(known, default=-1) + 1

    def has_queue(self, number: int) -> bool:
        """Whether there is a revive queue of this number."""
        return 0 <= number < max(self._settings.config.revive_queues, self._queues_before)

    def next_queue(self) -> int:
        """The revive queue of the next pop: each in turn."""
        self._turn = (self._turn + 1) % self._settings.config.revive_queues
        return self._turn

    def give_out(
        self, topic: str, group: str, queue_number: int, offsets: Sequence[int], *, start: int,
        pop_ms: int, invisible_ms: int, revive_queue: int, instead_of: AckRecord | None = None,
        instead_due_ms: int = 0,
    ) -> Appended:  # fmt: skip
        """Writes the check point of messages that are given out.

        Args:
            offsets: their queue offsets.
            start: the offset from which the pop read.
            instead_of: the acknowledgement of another check point, due at `instead_due_ms`; both
                are stored, or none.

        Raises:
            ReplyError, StoreError, DiskFull: the store refuses it; nothing is given out.
        """
        point = CheckPoint(
            broker=self.broker,
            group=group,
            diffs=[offset - start for offset in offsets],
            invisible_ms=invisible_ms,
            count=len(offsets),
            pop_ms=pop_ms,
            queue_number=queue_number,
            revive_ms=pop_ms + invisible_ms,
            start_offset=start,
            topic=topic,
        )
        due_ms = point.due_ms - CHECK_POINT_EARLY_MS
        intakes = [self._intake(point, CHECK_POINT, revive_queue, due_ms)]
        if instead_of is not None:
            intakes = [self._intake(point, CHECK_POINT, revive_queue, due_ms, is_change=True)]
            intakes.append(self._intake(instead_of, ACK, revive_queue, instead_due_ms))
        appended = self._store_all(intakes)
        self._offsets.count_popped(group, topic, queue_number, len(offsets))
        if instead_of is not None:
            self._count_done(instead_of)
        return appended

    def acknowledge(self, record: AckRecord, revive_queue: int, *, due_ms: int) -> Appended:
        """Writes an acknowledgement; see `acknowledge_all`."""
        return self.acknowledge_all([DueAck(record, revive_queue, due_ms)])

    def acknowledge_all(self, acks: Sequence[DueAck]) -> Appended:
        """Writes acknowledgements, all or none; returns what was stored last.

        Raises:
            ReplyError, StoreError, DiskFull: the store refuses one.
        """
        if len(acks) > 1:  # the timers learn of those that wait if these are the last ones
            acks = sorted(acks, key=_due_ms)
        now_ms, shape_ms = self._clock.now_ms(), self._settings.store.timer_slot_ms
        destinations = [self._waiting(each, now_ms, shape_ms) for each in acks]
        appended = self._note(self._ingress.store(destinations, are_together=True))
        for record, _, _ in acks:
            self._count_done(record)
        return appended

    def give_back(self, drafts: Sequence[Draft], record: AckRecord, revive_queue: int) -> None:
        """Stores messages that come again, and that the old ones are done: all or nothing, so that
        after a crash they are not given back again.

        Raises:
            IllegalDraft, StoreError, DiskFull, ClosedError: the store refuses one.
        """
        properties = {names.TAGS: ACK, names.UNIQUE_KEY: unique_key(record)}
        done = self._draft(record, properties, revive_queue)
        done.properties = encode(properties).encode("utf-8", "replace")
        appended = self._ingress.accept_due_together([*drafts, done])
        self._offsets.popped.mark(self.topic, revive_queue, appended[-1].queue_offset + 1)
        self._count_done(record)

    async def begin_orders(self) -> None:
        """Makes sure that a start finds from where on records of pops in order count: await it once
        before the first one.

        Raises:
            StoreError, ClosedError: the file cannot be saved.
        """
        await self._save_orders()
        self.has_orders = True

    def keep_order(
        self, group: str, topic: str, queue_number: int, row: OrderedPop | None
    ) -> Appended:
        """Writes what a group has popped in order from a queue; see `keep_orders`."""
        return self.keep_orders([OrderRow(group, topic, queue_number, row)])

    def keep_orders(self, rows: Sequence[OrderRow]) -> Appended:
        """Writes what groups have popped in order, all rows or none; returns what was stored last.

        Raises:
            ReplyError, StoreError, DiskFull: the store refuses it; the rows stay as they were.
        """
        appended = self._note(self._ingress.store(list(map(self._of_row, rows)), are_together=True))
        for group, topic, queue_number, row in rows:
            self._orders.put(group, topic, queue_number, row)
        return appended

    def _of_row(self, row: OrderRow) -> Destination:
        group, topic, number, state = row
        body = OrderRecord(
            group=group, queue_number=number, topic=topic,
            row=msgspec.Raw(_encode(state)),
        ).encode()  # fmt: skip
        revive_queue = number % self._settings.config.revive_queues
        draft = Draft(
            self.topic, revive_queue, body, _IN_ORDER_TEXT, _TAG_CODES[IN_ORDER], 0, 0,
            self._clock.now_ms(), self._host,
        )  # fmt: skip
        return Destination(draft, self.topic, revive_queue, True)

    def _count_done(self, record: AckRecord) -> None:
        self._offsets.count_popped(
            record.group or "", record.topic or "", record.queue_number, -len(record.all_offsets())
        )

    def _store_all(self, intakes: Sequence[Intake]) -> Appended:
        """Stores records, all or none; returns what was stored last."""
        return self._note(self._ingress.accept_together(intakes))

    def _note(self, appended: Sequence[Appended]) -> Appended:
        for each in appended:
            self._offsets.popped.mark(each.topic, each.queue_number, each.queue_offset + 1)
        return appended[-1]

    # The same as `destination` makes of `_intake`, for a third of its time: consumers send one for
    # each message.
    def _waiting(self, ack: DueAck, now_ms: int, shape_ms: int) -> Destination:
        record, revive_queue, due_ms = ack
        tag = ACK if record.offsets is None else ACK_BATCH
        if not now_ms < due_ms <= now_ms + self._settings.store.timer_delay_seconds_max * 1000:
            return self._ingress.destination(self._intake(record, tag, revive_queue, due_ms))
        key, slot_ms = unique_key(record), slot_of(due_ms, shape_ms)
        text = (
            f"TAGS\x01{tag}\x02TIMER_DELIVER_MS\x01{due_ms}\x02UNIQ_KEY\x01{key}\x02"
            f"TIMER_OUT_MS\x01{slot_ms}\x02REAL_TOPIC\x01{self.topic}\x02"
            f"REAL_QID\x01{revive_queue}\x02"
        )
        draft = Draft(
            TIMER, 0, record.encode(), text.encode("utf-8", "replace"), _TAG_CODES[tag], 0, 0,
            now_ms, self._host, unique_key=key,
        )  # fmt: skip
        wait = TimedWait(slot_ms, due_ms, False)
        return Destination(draft, self.topic, revive_queue, True, wait=wait)

    def _intake(
        self, record: CheckPoint | AckRecord, tag: str, revive_queue: int, due_ms: int, *,
        is_change: bool = False,
    ) -> Intake:  # fmt: skip
        properties = {
            names.TAGS: tag,
            names.TIMER_DELIVER_MS: str(due_ms),
            names.UNIQUE_KEY: unique_key(record),
        }
        if is_change:
            properties[names.CHECK_POINT_CHANGED] = "true"
        return Intake(self._draft(record, properties, revive_queue), properties)

    def _draft(
        self,
        record: CheckPoint | AckRecord,
        properties: dict[str, str],
        revive_queue: int,
    ) -> Draft:
        return drafted(
            properties,
            topic=self.topic,
            queue_number=revive_queue,
            body=record.encode(),
            flag=0,
            sys_flag=0,
            born_ms=self._clock.now_ms(),
            born_host=self._host,
        )

    def mark_all(self) -> None:
        """Remembers that all records that are stored now are applied."""
        for topic, number in self.places():
            if end := self.end(topic, number):
                self._offsets.popped.mark(topic, number, end)

    def places(self) -> list[tuple[str, int]]:
        """All queues of such records, by topic and number."""
        return [(TIMER, 0), *((self.topic, number) for number in self.queues())]

    # A master that was a slave, or was started again, has records that replicas may lack still:
    # they count, as they will be confirmed.
    def end(self, topic: str, number: int) -> int:
        """The offset behind the last record of a queue."""
        with self._store.replica.whole():
            return self._store.max_offset(topic, number)
