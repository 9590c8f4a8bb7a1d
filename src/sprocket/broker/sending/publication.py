"""Publishes staged batches: once, however often the broker, or another master, begins again.

A decision is in the log before the first of its messages, and each message tells the staged record
from which it comes. So the log alone says which messages of a decided transaction are missing, and
publication continues behind the last one that is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ClosedError,
    CorruptRecord,
    IllegalMessage,
    InvalidParameter,
    OffsetOutOfRange,
    ReplyError,
    StoreError,
    TopicNotFound,
)
from sprocket.base.ports import Clock
from sprocket.base.rare_log import RareLog
from sprocket.base.watermark import Watermark
from sprocket.broker.sending.batch_reader import PlainBatch
from sprocket.broker.sending.destination import Destination
from sprocket.broker.sending.ingress import Ingress
from sprocket.broker.sending.staged_reader import StagedReader, plain_batch
from sprocket.message.record import Draft, Record, parse
from sprocket.message.topic import STAGED
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended
from sprocket.transaction import staged as records
from sprocket.transaction.staged import BATCHES, DECISIONS, StagedDecision, StagedHead, mark_of
from sprocket.transaction.staged_ledger import StagedLedger, Writer

logger = logging.getLogger(__name__)
K = TypeVar("K")

#: So many messages, some milliseconds of work, are published in one turn of the loop.
_TURN_MESSAGES = 2048
#: The pause after the store has refused some, s.
_AGAIN_S = 1.0
#: How often old records are looked for, s.
_UPKEEP_S = 60.0
_COUNT_MAX, _BYTES_MAX = 256, 1 << 20
#: A batch that can never be published; what is staged was checked, so only a topic that was deleted
#: or a damaged disk leads to one.
_LOST = (TopicNotFound, InvalidParameter, IllegalMessage, CorruptRecord, OffsetOutOfRange)


@dataclass(slots=True)
class StagedTransaction:
    """A decided transaction that is being published.

    Attributes:
        number: counts those of this process, from 1 on.
        staged: log offsets of its batches.
        at, done: the batch that is next, and how many of its messages are published.
        published: how many of all.
    """

    decision: StagedDecision
    number: int
    staged: list[int]
    at: int = 0
    done: int = 0
    published: int = 0


class Publication:
    """Stages batches, and publishes them.

    Args:
        host: the broker's packed address.

    Attributes:
        ledger: what is staged and decided.
        finished: the number of the last transaction that is published.
    """

    def __init__(
        self,
        store: Store,
        ingress: Ingress,
        reader: StagedReader,
        *,
        clock: Clock,
        host: bytes,
    ) -> None:
        self._store = store
        self._ingress = ingress
        self.reader = reader
        self.ledger = StagedLedger()
        self._clock = clock
        self._host = host
        self._waiting: deque[StagedTransaction] = deque()
        self._last: dict[str, StagedTransaction] = {}
        self._decided, self.finished = Watermark(), Watermark()
        self._warnings = RareLog(logger)

    # What is known, from the log.

    def start(self) -> None:
        """Builds the ledger from the log, and finds what of decided transactions is missing."""
        self.ledger.begin()
        self._waiting.clear()
        self._last.clear()
        self.finished.rise(self._decided.value)
        staged_from = decided_from = 0
        if end := self._store.stored.max_offset(STAGED, DECISIONS):
            for _, newest in self._read(DECISIONS, end - 1, records.decision_of):
                staged_from, decided_from = newest.staged_from, newest.decided_from
        for record, head in self._read(BATCHES, staged_from, records.head_of):
            self._apply_staged(head, record)
        for record, decision in self._read(DECISIONS, decided_from, records.decision_of):
            self._apply_decision(decision, record)
        self.ledger.drop_old(self._clock.now_ms())
        unfinished = list(self.ledger.unfinished())
        for writer in unfinished:
            self._begin(writer)
        if unfinished:
            self._find_published(min(writer.last_log_offset for writer in unfinished))
            logger.info("%d transactions of staged batches are published now", len(unfinished))

    def _read(
        self, queue: int, at: int, meaning: Callable[[Record], K]
    ) -> Iterator[tuple[Record, K]]:
        at = max(at, self._store.min_offset(STAGED, queue))
        while True:
            found = self._store.stored.read(
                STAGED, queue, at, count_max=_COUNT_MAX, bytes_max=_BYTES_MAX
            )
            for record in found.records():
                try:
                    yield record, meaning(record)
                except CorruptRecord as error:
                    logger.error("a record of staged batches is left out: %s", error)
            if found.next_offset <= at:
                return
            at = found.next_offset

    def _find_published(self, log_offset: int) -> None:
        """Counts the messages of waiting transactions that are in the log from an offset on."""
        marks: dict[int, tuple[StagedTransaction, int]] = {}
        for one in self._waiting:
            for at, staged in enumerate(one.staged):
                with contextlib.suppress(*_LOST):
                    marks[mark_of(parse(self._store.lookup(staged)))] = (one, at)
        for record in self._store.stored.records_from(log_offset):
            if (found := marks.get(record.prepared_offset)) is not None:
                self._passed(*found, 1)

    def _apply_staged(self, head: StagedHead, record: Record | Appended) -> None:
        self.ledger.apply_staged(
            head,
            offset=record.queue_offset,
            log_offset=record.log_offset,
            stored_ms=record.stored_ms,
        )

    def _apply_decision(self, decision: StagedDecision, record: Record | Appended) -> None:
        self.ledger.apply_decision(
            replace(decision, elsewhere=[]),
            offset=record.queue_offset,
            log_offset=record.log_offset,
            stored_ms=record.stored_ms,
        )

    # What is new.

    def stage(self, head: StagedHead, body: bytes, *, born_ms: int, born_host: bytes) -> Appended:
        """Stores a batch where nobody reads it.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError, SystemFailure: as `Ingress.store`.
        """
        appended = self._stored(records.staged(head, body, born_ms=born_ms, born_host=born_host))
        self._apply_staged(head, appended)
        return appended

    def decide(self, decision: StagedDecision) -> StagedTransaction:
        """Stores a decision whose batches are staged; its messages follow by themselves.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError, SystemFailure: as `Ingress.store`.
        """
        self._decide(decision)
        return self._begin(self.ledger.writers[decision.writer])

    def of(self, writer: str) -> StagedTransaction | None:
        """A writer's newest transaction, if this process has published some of it."""
        return self._last.get(writer)

    def elsewhere(self, name: str) -> list[tuple[str, list[tuple[str, int]]]]:
        """What other brokers publish of a writer's newest transaction, from its record.

        Raises:
            CorruptRecord, OffsetOutOfRange, StoreError: the disk is damaged.
        """
        record = parse(self._store.lookup(self.ledger.writers[name].last_log_offset))
        return records.decision_of(record).elsewhere

    def _decide_again(self, decision: StagedDecision) -> None:
        """Stores what is known of a writer once more."""
        try:
            decision = replace(decision, elsewhere=self.elsewhere(decision.writer))
        except _LOST as error:
            logger.error("the decision of writer %s cannot be read: %s", decision.writer, error)
        self._decide(decision)

    def _decide(self, decision: StagedDecision) -> None:
        staged_from, decided_from = self.ledger.positions()
        stored = replace(decision, staged_from=staged_from, decided_from=decided_from)
        appended = self._stored(records.decided(stored, host=self._host))
        self._apply_decision(stored, appended)

    def _stored(self, draft: Draft) -> Appended:
        return self._ingress.store((Destination(draft, STAGED, draft.queue_number, True),))[0]

    def _begin(self, writer: Writer) -> StagedTransaction:
        """Has a decided transaction published."""
        assert writer.last is not None
        staged = self.ledger.staged_of(writer, writer.last.attempts)
        if staged is None:
            logger.error("staged batches of writer %s are lost", writer.last.writer)
            staged = []
        number = self._decided.value + 1
        one = StagedTransaction(writer.last, number, staged)
        self._waiting.append(one)
        self._last[writer.last.writer] = one
        self._decided.rise(number)
        return one

    # The loop.

    async def run(self) -> None:
        """Publishes what is decided, until cancelled."""
        upkeep = Deadline.after(_UPKEEP_S)
        while True:
            try:
                if upkeep.left() <= 0:
                    upkeep = Deadline.after(_UPKEEP_S)
                    self._upkeep()
                if not self._waiting:
                    await self._decided.reach(self.finished.value + 1, upkeep)
                elif self._publish(self._waiting[0]):
                    self.finished.rise(self._waiting.popleft().number)
                await asyncio.sleep(0)
            except (StoreError, ClosedError, ReplyError) as error:
                self._warnings.warning("staged batches are published later: %s", error)
                await asyncio.sleep(_AGAIN_S)

    def _upkeep(self) -> None:
        """Drops what is too old, and stores again what is to be remembered for longer."""
        now_ms = self._clock.now_ms()
        self.ledger.drop_old(now_ms)
        for name in [name for name in self._last if name not in self.ledger.writers]:
            del self._last[name]
        for writer in self.ledger.to_renew(now_ms):
            assert writer.last is not None
            self._decide_again(writer.last)

    def _publish(self, one: StagedTransaction) -> bool:
        """Publishes some messages; returns whether all are.

        Raises:
            StoreError, ClosedError, ReplyError: the store refuses them for now.
        """
        plain: list[PlainBatch] = []
        places: list[tuple[int, bool]] = []
        count, at, done = 0, one.at, one.done
        while at < len(one.staged) and count < _TURN_MESSAGES:
            drafts = self._drafts(one.staged[at], done)
            if not drafts:
                at, done = at + 1, 0
                if not plain:
                    one.at, one.done = at, done
                continue
            if not isinstance(drafts, PlainBatch):
                if not plain:
                    some = [_destination(each) for each in drafts[:_TURN_MESSAGES]]
                    self._passed(one, at, len(self._ingress.store(some)))
                break
            plain.append(_first(drafts, _TURN_MESSAGES - count))
            size = len(plain[-1].drafts.flags)
            is_whole = size == len(drafts.drafts.flags)
            places.append((at, is_whole))
            count += size
            if not is_whole:
                break
            at, done = at + 1, 0
        if plain:
            stored = self._ingress.store_batches(plain)
            for batch, (place, is_whole) in zip(stored, places, strict=False):
                self._passed(one, place, len(batch))
                if is_whole:
                    one.at, one.done = place + 1, 0
        if one.at < len(one.staged):
            return False
        self._decide_again(replace(one.decision, attempts=[], is_finished=True))
        return True

    def _passed(self, one: StagedTransaction, at: int, count: int) -> None:
        """Counts published messages of a batch."""
        one.done = count + (one.done if at == one.at else 0)
        one.at, one.published = at, one.published + count

    def _drafts(self, log_offset: int, done: int) -> PlainBatch | Sequence[Draft] | None:
        """The messages of a staged batch behind the first ones; None if there are no more."""
        try:
            record = parse(self._store.lookup(log_offset))
            found = self.reader.drafts(record, records.head_of(record))
        except _LOST as error:
            logger.error("the staged batch at %d cannot be published: %s", log_offset, error)
            return None
        if isinstance(found, PlainBatch):
            return _behind(found, done)
        return found[done:]


def _destination(draft: Draft) -> Destination:
    return Destination(draft, draft.topic, draft.queue_number, is_awaited=True)


def _first(batch: PlainBatch, count: int) -> PlainBatch:
    """The first messages of a batch."""
    return batch if len(batch.drafts.flags) <= count else _part(batch, slice(count))


def _behind(batch: PlainBatch, count: int) -> PlainBatch | None:
    """The messages behind the first ones; None if there are no more."""
    if count >= len(batch.drafts.flags):
        return None
    return _part(batch, slice(count, None)) if count else batch


def _part(batch: PlainBatch, part: slice) -> PlainBatch:
    columns = ("flags", "bodies", "properties", "tag_codes", "keys", "unique_keys")
    return plain_batch(
        replace(batch.drafts, **{name: getattr(batch.drafts, name)[part] for name in columns})
    )
