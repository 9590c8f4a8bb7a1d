"""Ends transactions: commits, rolls back, parks, and stores the ledger's op records.

A committed message is stored just before its op record, so that a crash can lose the op record but
never the message. If the memory of this process does not contain a transaction, the key index shows
whether it has been committed: the committed message has the same unique key.
Source: EndTransactionProcessor, TransactionalMessageServiceImpl of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterator
from typing import Protocol

from sprocket.base.errors import ClosedError, CorruptRecord, StoreError, SystemFailure
from sprocket.base.ports import Clock
from sprocket.message import properties as names
from sprocket.message.properties import decode_bytes
from sprocket.message.record import COMMITTED, TRANSACTION_MASK, Draft, Record, parse
from sprocket.message.topic import CHECKS_EXHAUSTED, HALF, HALF_SETTLED, SCHEDULE, TIMER
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended
from sprocket.transaction import half as halves
from sprocket.transaction.half import QUEUE, SYSTEM_GROUP, Half, StoredHalf
from sprocket.transaction.ledger import EndState, Ledger, LedgerStart

logger = logging.getLogger(__name__)

#: The most copies in one op record; about 4 KiB of text, as in Java.
_TOLD_MAX = 400
_COUNT_MAX = 256
_BYTES_MAX = 1 << 20
#: The most records with one unique key that are compared.
_FOUND_MAX = 16
#: The number of remembered commits after a check; a second half of the same message comes soon.
_ANSWERED_MAX = 10_000


class LogIngress(Protocol):
    """The broker's functions that append to the log."""

    def accept_committed(self, draft: Draft, properties: dict[str, str]) -> Appended:
        """Stores a committed message in its own topic."""
        ...

    def accept_due(self, draft: Draft) -> Appended:
        """Stores a message unchanged."""
        ...

    def open_parking(self) -> None:
        """Creates the topic of parked messages if it is missing."""
        ...


class GroupOffsets(Protocol):
    """The table of groups' offsets."""

    def committed(self, group: str, topic: str, queue_number: int) -> int | None:
        """The next offset of the group; None if it has none."""
        ...

    def put(self, group: str, topic: str, *, queue_number: int, offset: int) -> None:
        """Sets the next offset."""
        ...


class Settlement:
    """Ends transactions.

    Args:
        ledger: the undecided halves.
        host: the broker's packed address.

    Attributes:
        counts: the numbers of transactions that ended since the start, by outcome.
    """

    def __init__(
        self,
        store: Store,
        ingress: LogIngress,
        *,
        ledger: Ledger,
        offsets: GroupOffsets,
        clock: Clock,
        host: bytes,
    ) -> None:
        self._store = store
        self._ingress = ingress
        self._ledger = ledger
        self._offsets = offsets
        self._clock = clock
        self._host = host
        self._began_at = 0
        self._is_telling = False
        #: Unique keys of the newest messages that were committed after a check.
        self._answered: OrderedDict[str, None] = OrderedDict()
        #: Roots of transactions whose commit the store has refused.
        self._refused: set[int] = set()
        self.counts = dict.fromkeys(EndState, 0)

    # The ledger and its queues.

    def start(self) -> None:
        """Builds the ledger from the store."""
        # All halves come before all op records, so that an op record finds the copies that it
        # lists. Java's copies may not name their first one; then the unique key finds it.
        if self._store.max_offset(CHECKS_EXHAUSTED, QUEUE):
            self._ingress.open_parking()
        begin = LedgerStart(self._position(HALF), self._position(HALF_SETTLED))
        self._ledger.begin(begin)
        by_key: dict[str, int] = {}
        for record in self._records(HALF, begin.half):
            found = StoredHalf(record, decode_bytes(record.properties))
            half, key = found.half, found.properties.get(names.UNIQUE_KEY, "")
            is_unnamed_copy = half.root == half.offset and half.checks > 0
            self._ledger.add(half, replaces=by_key.get(key) if is_unnamed_copy else None)
            by_key.setdefault(key, half.root)
        for record in self._records(HALF_SETTLED, begin.op):
            self._ledger.apply_op(record.queue_offset, halves.ended_in(record))
        self._began_at = self._ledger.half_next
        self._note_positions()
        if len(self._ledger):
            logger.info("%d transactions are undecided", len(self._ledger))

    def _position(self, topic: str) -> int:
        low, high = self._store.min_offset(topic, QUEUE), self._store.max_offset(topic, QUEUE)
        kept = self._offsets.committed(SYSTEM_GROUP, topic, QUEUE)
        return low if kept is None else min(max(kept, low), high)

    def _records(self, topic: str, at: int) -> Iterator[Record]:
        while True:
            found = self._store.read(topic, QUEUE, at, count_max=_COUNT_MAX, bytes_max=_BYTES_MAX)
            try:
                yield from found.records()
            except CorruptRecord as error:
                logger.error("%s: records behind offset %d are left out: %s", topic, at, error)
            if found.next_offset <= at:
                return
            at = found.next_offset

    def write_op_records(self) -> bool:
        """Stores op records for all that has ended, and the positions where a fold may begin.

        Returns:
            Whether the store has taken all of them; if not, the next end tries again.
        """
        self._is_telling = False
        try:
            while offsets := self._ledger.next_op_copies(_TOLD_MAX):
                now_ms = self._clock.now_ms()
                appended = self._ingress.accept_due(
                    halves.ended(offsets, now_ms=now_ms, host=self._host)
                )
                self._ledger.apply_op(appended.queue_offset, offsets)
        except (StoreError, ClosedError) as error:
            logger.warning(
                "the end of %d transactions is told later: %s", self._ledger.untold, error
            )
        self._note_positions()
        return not self._ledger.untold

    def _note_positions(self) -> None:
        at = self._ledger.positions()
        for topic, offset in ((HALF, at.half), (HALF_SETTLED, at.op)):
            if (self._offsets.committed(SYSTEM_GROUP, topic, QUEUE) or 0) != offset:
                self._offsets.put(SYSTEM_GROUP, topic, queue_number=QUEUE, offset=offset)

    def _write_op_records_soon(self) -> None:
        """Stores one op record for all transactions that end in this turn of the loop."""
        if not self._is_telling:
            self._is_telling = True
            asyncio.get_running_loop().call_soon(self.write_op_records)

    # Halves.

    def read(self, log_offset: int) -> StoredHalf:
        """Reads the half message at a log offset.

        Raises:
            OffsetOutOfRange: no record begins there.
            CorruptRecord: it is no half message.
        """
        record = parse(self._store.lookup(log_offset))
        if record.topic != HALF:
            raise CorruptRecord(f"the record at {log_offset} is no half message")
        return StoredHalf(record, decode_bytes(record.properties))

    def commit(self, found: StoredHalf, *, is_answer: bool = False) -> Appended | None:
        """Stores a half's message in its own topic, so that consumers get it.

        Args:
            is_answer: it follows a check. If its producer sent the half twice, the other one may
                be committed already.

        Returns:
            Where it is stored; None if it was stored before.

        Raises:
            SystemFailure: the transaction was rolled back.
            CorruptRecord: the half's properties do not contain its own topic and queue.
            DiskFull, StoreError: the store refuses it for now; `end_if_known` tries again.
            IllegalMessage, ClosedError: the store refuses it for ever.
        """
        # The message is stored before the ledger changes: if the store refuses it, the half stays
        # undecided, and `_refused` remembers the producer's decision, which it may not repeat.
        root = found.half.root
        key = found.properties.get(names.UNIQUE_KEY, "")
        outcome = self._outcome(found, is_doubtful=is_answer or key in self._answered)
        if outcome is EndState.COMMITTED:
            self._end(root, outcome, count=0)
            return None
        if outcome is EndState.ROLLED_BACK:
            raise SystemFailure("the transaction was rolled back")
        properties = dict(found.properties)
        draft = halves.committed(found.record, properties)
        try:
            appended = self._ingress.accept_committed(draft, properties)
        except StoreError:
            if self._ledger.newest(root) is not None:
                self._refused.add(root)
            raise
        self._end(root, EndState.COMMITTED)
        if is_answer:
            self._answered[key] = None
            if len(self._answered) > _ANSWERED_MAX:
                self._answered.popitem(last=False)
        return appended

    def roll_back(self, found: StoredHalf) -> None:
        """Ends a transaction so that its message is never delivered.

        Raises:
            SystemFailure: the transaction was committed.
        """
        outcome = self._outcome(found)
        if outcome is EndState.COMMITTED:
            raise SystemFailure("the transaction was committed")
        self._end(found.half.root, EndState.ROLLED_BACK, count=outcome is not EndState.ROLLED_BACK)

    def park(self, half: Half, found: StoredHalf) -> None:
        """Parks the message of an undecided transaction, once even if its producer sent it twice.

        Raises:
            DiskFull, StoreError, ClosedError: the store refuses it.
        """
        if not self._is_parked(found, since=found.record.log_offset):
            self._ingress.accept_due(halves.parked(found.record, dict(found.properties)))
        self._end(half.root, EndState.PARKED)

    def copy(self, half: Half, found: StoredHalf, *, checks: int) -> tuple[Half, bytes]:
        """Stores the next copy of a half.

        Returns:
            The copy, and its record for the check.

        Raises:
            IllegalDraft: the additional properties of a copy do not fit.
            CorruptRecord, DiskFull, StoreError, ClosedError: as in `commit`.
        """
        properties = dict(found.properties)
        draft = halves.copied(found.record, properties, root=half.root, checks=checks)
        halves.belongs_to(found.record, properties)
        appended = self._ingress.accept_due(draft)
        place = (appended.queue_offset, appended.log_offset)
        self.prepared(draft.born_ms, properties, appended)
        self._write_op_records_soon()
        copy = self._ledger.get(appended.queue_offset)
        assert copy is not None
        asked = halves.as_asked(found.record, properties, offset=place[0], log_offset=place[1])
        return copy, asked

    def prepared(self, born_ms: int, properties: dict[str, str], appended: Appended) -> None:
        """Adds a stored half or copy to the ledger."""
        self._ledger.add(
            Half.of(
                properties,
                offset=appended.queue_offset,
                log_offset=appended.log_offset,
                born_ms=born_ms,
                stored_ms=appended.stored_ms,
            )
        )

    def resume(self, record: Record) -> Appended:
        """Turns a parked message into a half again; returns where that is stored.

        Raises:
            CorruptRecord: it is not parked.
            StoreError, ClosedError: the store refuses it.
        """
        if record.topic != CHECKS_EXHAUSTED:
            raise CorruptRecord(f"the message at {record.log_offset} is not parked")
        properties = decode_bytes(record.properties)
        appended = self._ingress.accept_due(halves.resumed(record, properties))
        self.prepared(record.born_ms, properties, appended)
        return appended

    def end_if_known(self, half: Half, found: StoredHalf) -> bool:
        """Ends a half whose outcome is known without a check; returns whether it is.

        It is known if its message is stored in its own topic: a crash may have lost the op record,
        or its producer may have sent it twice. It is also known if the store refused its commit.

        Raises:
            CorruptRecord, DiskFull, StoreError, ClosedError: as in `commit`.
        """
        if half.root in self._refused:
            self.commit(found, is_answer=True)
            return True
        if not self.is_committed(found):
            return False
        self._end(half.root, EndState.COMMITTED, count=0)
        return True

    def end_elsewhere(self, log_offsets: Collection[int]) -> None:
        """Ends halves that another broker has now, which asks how they ended."""
        if log_offsets:
            for half in self._ledger.since(0):
                if half.log_offset in log_offsets:
                    self._end(half.root, EndState.ROLLED_BACK, count=0)

    def lose(self, half: Half) -> None:
        """Drops a half whose record cannot be read."""
        self._ledger.discard(half.offset)
        self._write_op_records_soon()

    def _end(self, root: int, outcome: EndState, *, count: int = 1) -> None:
        self.counts[outcome] += count
        self._refused.discard(root)
        self._ledger.settle(root, outcome)
        self._write_op_records_soon()

    def _outcome(self, found: StoredHalf, *, is_doubtful: bool = False) -> EndState | None:
        """How a transaction ended; None if it has not. `is_doubtful`: memory does not suffice."""
        # Nearly always the ledger knows. It does not know halves from before this process, nor a
        # half that was sent twice: the key index shows whether their message is stored. A half
        # that is finished, neither committed nor parked, has been rolled back.
        root = found.half.root
        outcome = self._ledger.outcome(root)
        if outcome in (EndState.COMMITTED, EndState.ROLLED_BACK):
            return outcome
        is_pending = self._ledger.newest(root) is not None
        if is_pending and root >= self._began_at and not is_doubtful:
            return None
        if self.is_committed(found):
            return EndState.COMMITTED
        if is_pending or outcome is not None:
            return outcome
        return EndState.PARKED if self._is_parked(found) else EndState.ROLLED_BACK

    def is_committed(self, found: StoredHalf) -> bool:
        """Whether the message of a half is stored in its own topic."""
        topics = [found.properties.get(names.REAL_TOPIC, "")]
        if names.DELAY in found.properties:
            topics.append(SCHEDULE)
        elif not names.ASK_FOR_TIME.isdisjoint(found.properties):
            topics.append(TIMER)
        return any(
            _is_message_of(record, found)
            for topic in topics
            for record in self._of_same_key(topic, found)
            if record.sys_flag & TRANSACTION_MASK == COMMITTED
        )

    def _is_parked(self, found: StoredHalf, *, since: int = 0) -> bool:
        return any(
            record.log_offset >= since and _is_message_of(record, found)
            for record in self._of_same_key(CHECKS_EXHAUSTED, found)
        )

    def _of_same_key(self, topic: str, found: StoredHalf) -> Iterator[Record]:
        key = found.properties.get(names.UNIQUE_KEY)
        if key and topic:
            yield from map(parse, self._store.find(topic, key, count_max=_FOUND_MAX))


def _is_message_of(record: Record, found: StoredHalf) -> bool:
    """Whether a record comes from a half, from a copy of it, or from the same half sent twice."""
    if record.prepared_offset == found.record.log_offset:
        return True
    group = decode_bytes(record.properties).get(names.PRODUCER_GROUP)
    same_body = record.body_crc == found.record.body_crc and record.body == found.record.body
    return same_body and group == found.properties.get(names.PRODUCER_GROUP)
