"""Reads the records about popped messages that the tables do not contain yet, at a start and when
a slave becomes the master.

The tables are saved some seconds after a record is written; a slave has them from its master, some
fractions of a second old. Their `marks` say which records they contain.
Source of the records: see `broker/pop/journal.py`.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from sprocket.base.errors import CorruptRecord, RemoteProtocolError
from sprocket.broker.pop.journal import PopJournal
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable, row_of
from sprocket.message import properties as names
from sprocket.message.properties import decode_bytes, value_in
from sprocket.message.record import Record
from sprocket.message.topic import TIMER
from sprocket.protocol.bodies.pop import (
    IN_ORDER,
    AckRecord,
    CheckPoint,
    OrderRecord,
    key_of,
    read_record,
)
from sprocket.store.store import Store

logger = logging.getLogger(__name__)

#: Without marks, as in a folder of Java's: so much older than a queue's last record are those that
#: are read at a start, ms. Java saves offsets every five seconds.
_UNMARKED_MS = 60_000
_READ_COUNT, _READ_BYTES = 256, 256 * 1024


class PopReplay:
    """What a start does with the records."""

    def __init__(
        self, store: Store, journal: PopJournal, offsets: ConsumerOffsets, orders: OrderTable
    ) -> None:
        self._store = store
        self._journal = journal
        self._offsets = offsets
        self._orders = orders
        #: During a start, by row the log offset of the newest record that is applied.
        self._applied: dict[tuple[str, str, int], int] = {}
        #: A changed check point without the acknowledgement of the old one, and its revive queue.
        self._unfinished: tuple[CheckPoint, int] | None = None

    def opened(self) -> None:
        """Takes marks back to where the log ends: it may have been cut since they were saved. Call
        it before anything is stored."""
        self._journal.count_queues()
        for marks in (self._offsets.popped.marks, self._orders.marks):
            for topic, numbers in (marks or {}).items():
                for number, at in numbers.items():
                    numbers[number] = min(at, self._journal.end(topic, number))

    async def start(self) -> None:
        """Applies all records that the tables do not contain: moves the offsets behind all messages
        of which the log has a check point.

        Raises:
            StoreError: the disk failed.
        """
        marks, ordered = self._offsets.popped.marks or {}, self._orders.marks
        self._journal.count_queues()
        for topic, number in self._journal.places():
            at = marks.get(topic, {}).get(number)
            at = self._unmarked(topic, number) if at is None else at
            order_at = self._journal.end(topic, number)
            if ordered is not None and topic != TIMER:
                order_at = ordered.get(topic, {}).get(number, 0)
            await self._apply_from(topic, number, at, order_at)
        self._applied.clear()
        self._offsets.popped.marks = {}
        self._journal.mark_all()
        for group, topic, number, offset in self._orders.next_offsets():
            self._move(group, topic, number, offset - 1)

    def finish(self) -> None:
        """Takes a changed invisible time back whose second record was lost: nobody was told of it,
        and the message would come twice.

        Raises:
            ReplyError, StoreError, DiskFull: the store refuses it.
        """
        if self._unfinished is None:
            return
        point, revive_queue = self._unfinished
        record = AckRecord(
            offset=point.start_offset, broker=point.broker, group=point.group, pop_ms=point.pop_ms,
            queue_number=point.queue_number, start_offset=point.start_offset, topic=point.topic,
        )  # fmt: skip
        self._journal.acknowledge(record, revive_queue, due_ms=point.due_ms)
        self._unfinished = None

    def _unmarked(self, topic: str, number: int) -> int:
        with self._store.replica.whole():
            end = self._store.max_offset(topic, number)
            last_ms = self._store.time_of(topic, number, end - 1)
            return self._store.offset_at_time(topic, number, last_ms - _UNMARKED_MS)

    async def _apply_from(self, topic: str, number: int, offset: int, order_offset: int) -> None:
        """Applies the records of a queue.

        Args:
            offset: of the first one.
            order_offset: of the first one that counts, of pops in order.
        """
        at = max(min(offset, order_offset), self._store.min_offset(topic, number))
        while at < self._journal.end(topic, number):
            await self._store.load(topic, number, at, count=_READ_COUNT, bytes_max=_READ_BYTES)
            with self._store.replica.whole():
                found = self._store.read(
                    topic, number, at, count_max=_READ_COUNT, bytes_max=_READ_BYTES
                )
            for record in found.records(on_damage=_left_out):
                if record.queue_offset >= offset:
                    self._apply(record)
                if record.queue_offset >= order_offset:
                    self._apply_order(record)
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
            if properties.get(names.REAL_TOPIC) != self._journal.topic:
                return
        elif names.TIMER_OUT_MS in properties:
            return
        try:
            record = read_record(properties.get(names.TAGS), stored.body)
        except RemoteProtocolError as error:
            logger.error("a record about popped messages is left out: %s", error)
            return
        key = None if record is None else key_of(record, self._journal.broker)
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
            is_last = stored.log_offset + stored.size == self._store.log_end
            if is_last and names.CHECK_POINT_CHANGED in properties:
                number = int(properties.get(names.REAL_QUEUE, stored.queue_number))
                self._unfinished = (record, number)
        popped.add(key.group, key.topic, key.queue_number, count)

    # The records of one row are in one revive queue, unless the number of these queues was changed:
    # then the later one in the log counts.
    def _apply_order(self, stored: Record) -> None:
        if value_in(bytes(stored.properties), names.TAGS) != IN_ORDER:
            return
        try:
            record = OrderRecord.decode(stored.body)
            state = msgspec.json.decode(record.row)
            row = None if state is None else row_of(state)
        except (RemoteProtocolError, msgspec.MsgspecError) as error:
            logger.error("a record about messages popped in order is left out: %s", error)
            return
        place = (record.group, record.topic, record.queue_number)
        if stored.log_offset >= self._applied.get(place, 0):
            self._applied[place] = stored.log_offset
            self._orders.put(*place, row)

    def _move(self, group: str, topic: str, number: int, last: int) -> None:
        known = self._offsets.committed(group, topic, number)
        if known is None or known <= last:
            self._offsets.put(group, topic, queue_number=number, offset=last + 1)


def _left_out(error: CorruptRecord) -> None:
    logger.error("records about popped messages cannot be read: %s", error)
