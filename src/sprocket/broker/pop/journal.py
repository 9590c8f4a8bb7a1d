"""Writes the records about popped messages to the log, and reads the last of them at a start.

A pop writes a check point, an acknowledgement writes a record of its own; both wait in the timers
and come into one of the revive queues when the messages' time is near (a check point, a second
before it) or there. So all that is in flight lies in the log and in the timers' files, as RocketMQ
keeps it, and slaves have it through the log; nothing of it is kept in memory but its number.

The group's offset moves in the same step as its check point is written. The offsets are saved later
than that, so a start reads the records since the last save, and moves them again.
Source: PopMessageProcessor.appendCheckPoint, AckMessageProcessor.appendAck of RocketMQ 5.3.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from sprocket.base.errors import CorruptRecord, RemoteProtocolError
from sprocket.base.ports import Clock
from sprocket.broker.sending.destination import Intake
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.message import properties as names
from sprocket.message.drafting import drafted
from sprocket.message.properties import decode_bytes, encode
from sprocket.message.record import Draft, Record
from sprocket.message.topic import TIMER, revive_topic
from sprocket.protocol.bodies.pop import (
    ACK,
    ACK_BATCH,
    CHECK_POINT,
    AckRecord,
    CheckPoint,
    key_of,
    read_record,
    unique_key,
)
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended

logger = logging.getLogger(__name__)

#: A check point comes so long before its messages' time, ms. Source: PopAckConstants.
CHECK_POINT_EARLY_MS = 1000
#: Without marks, as in a folder of Java's: so much older than a queue's last record are those that
#: are read at a start, ms. Java saves offsets every five seconds.
_UNMARKED_MS = 60_000
_READ_COUNT, _READ_BYTES = 256, 256 * 1024


class PopJournal:
    """The records about popped messages.

    Args:
        host: the broker's address in binary form.

    Attributes:
        topic: the topic of the records.
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
    ) -> None:
        self._store = store
        self._ingress = ingress
        self._offsets = offsets
        self._orders = orders
        self._settings = settings
        self._clock = clock
        self._host = host
        self.topic = revive_topic(settings.config.cluster)
        self._turn = 0

    @property
    def broker(self) -> str:
        """The broker's name."""
        return self._settings.config.name

    def queues(self) -> range:
        """The numbers of all revive queues, also those of a folder that had more."""
        known = self._store.queues().get(self.topic, ())
        return range(max(self._settings.config.revive_queues, max(known, default=-1) + 1))

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
            intakes.append(self._intake(instead_of, ACK, revive_queue, instead_due_ms))
        appended = self._store_all(intakes)
        self._offsets.popped.add(group, topic, queue_number, len(offsets))
        self._offsets.is_changed = True
        if instead_of is not None:
            self._count_done(instead_of)
        return appended

    def acknowledge(self, record: AckRecord, revive_queue: int, *, due_ms: int) -> Appended:
        """Writes an acknowledgement.

        Args:
            due_ms: the time of its check point's messages.

        Raises:
            ReplyError, StoreError, DiskFull: the store refuses it.
        """
        tag = ACK if record.offsets is None else ACK_BATCH
        appended = self._store_all([self._intake(record, tag, revive_queue, due_ms)])
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

    def _count_done(self, record: AckRecord) -> None:
        popped, number = self._offsets.popped, record.queue_number
        popped.add(record.group or "", record.topic or "", number, -len(record.all_offsets()))
        self._offsets.is_changed = True

    def _store_all(self, intakes: Sequence[Intake]) -> Appended:
        """Stores records, all or none; returns what was stored last."""
        appended = self._ingress.accept_together(intakes)
        for each in appended:
            self._offsets.popped.mark(each.topic, each.queue_number, each.queue_offset + 1)
        return appended[-1]

    def _intake(
        self, record: CheckPoint | AckRecord, tag: str, revive_queue: int, due_ms: int
    ) -> Intake:
        properties = {
            names.TAGS: tag,
            names.TIMER_DELIVER_MS: str(due_ms),
            names.UNIQUE_KEY: unique_key(record),
        }
        return Intake(self._draft(record, properties, revive_queue), properties)

    def _draft(
        self, record: CheckPoint | AckRecord, properties: dict[str, str], revive_queue: int
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

    async def start(self) -> None:
        """Moves the offsets behind all messages of which the log has a check point.

        Raises:
            StoreError: the disk failed.
        """
        marks = self._offsets.popped.marks
        for topic, number in self._places():
            at = (marks or {}).get(topic, {}).get(number)
            await self._apply_from(
                topic, number, self._unmarked(topic, number) if at is None else at
            )
        self._offsets.popped.marks = {}
        self.mark_all()
        for group, topic, number, offset in self._orders.next_offsets():
            self._move(group, topic, number, offset - 1)

    def mark_all(self) -> None:
        """Remembers that all records that are stored now are applied."""
        for topic, number in self._places():
            if end := self._store.stored.max_offset(topic, number):
                self._offsets.popped.mark(topic, number, end)

    def _places(self) -> list[tuple[str, int]]:
        return [(TIMER, 0), *((self.topic, number) for number in self.queues())]

    def _unmarked(self, topic: str, number: int) -> int:
        last_ms = self._store.time_of(topic, number, self._store.max_offset(topic, number) - 1)
        return self._store.offset_at_time(topic, number, last_ms - _UNMARKED_MS)

    async def _apply_from(self, topic: str, number: int, offset: int) -> None:
        at, stored = max(offset, self._store.min_offset(topic, number)), self._store.stored
        while at < stored.max_offset(topic, number):
            await self._store.load(topic, number, at, count=_READ_COUNT, bytes_max=_READ_BYTES)
            found = stored.read(topic, number, at, count_max=_READ_COUNT, bytes_max=_READ_BYTES)
            for record in found.records(on_damage=_left_out):
                self._apply(record)
            if found.next_offset <= at:
                return
            at = found.next_offset
            await asyncio.sleep(0)

    # What the timers brought into a revive queue, or stored anew on the way, was applied when it
    # was first written.
    def _apply(self, stored: Record) -> None:
        properties = decode_bytes(stored.properties)
        if names.TIMER_ROLL_TIMES in properties:
            return
        if stored.topic == TIMER:
            if properties.get(names.REAL_TOPIC) != self.topic:
                return
        elif names.TIMER_OUT_MS in properties:
            return
        try:
            record = read_record(properties.get(names.TAGS), stored.body)
        except RemoteProtocolError as error:
            logger.error("a record about popped messages is left out: %s", error)
            return
        key = None if record is None else key_of(record, self.broker)
        if key is None or record is None:
            return
        popped = self._offsets.popped
        if key.pop_ms <= popped.void_ms(key.group, key.topic, key.queue_number):
            return
        if isinstance(record, AckRecord):
            count = -len(record.all_offsets())
        else:
            count = len(record.offsets())
            self._move(key.group, key.topic, key.queue_number, max(record.offsets(), default=-1))
        popped.add(key.group, key.topic, key.queue_number, count)

    def _move(self, group: str, topic: str, number: int, last: int) -> None:
        known = self._offsets.committed(group, topic, number)
        if known is None or known <= last:
            self._offsets.put(group, topic, queue_number=number, offset=last + 1)


def _left_out(error: CorruptRecord) -> None:
    logger.error("records about popped messages cannot be read: %s", error)
