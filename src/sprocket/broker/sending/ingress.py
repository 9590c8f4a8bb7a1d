"""The only way into the log: every message is stored through here, whatever its origin.

For a producer's send, a message that a consumer sent back, or one whose transaction was committed,
`destination` decides where it is stored. A message that is due already is stored unchanged. Nothing
here awaits before the message is in the log. The ledger of transactions and the timers are updated
in the same step.
Source: DefaultMessageStore.asyncPutMessage of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from sprocket.base.errors import IllegalMessage, NoPermission, ReplyError, SystemBusy
from sprocket.base.ports import Clock
from sprocket.broker.sending.batch_reader import PlainBatch
from sprocket.broker.sending.destination import (
    DelayRules,
    Destination,
    Intake,
    check_batched,
    destination,
    draft_in_batch,
)
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.measures import BrokerMeasures
from sprocket.broker.tables.topics import Topics
from sprocket.broker.tables.volumes import Volumes
from sprocket.delay.timers.timers import Timers
from sprocket.message.lite import LiteName
from sprocket.message.properties import WAIT, encode
from sprocket.message.record import Draft
from sprocket.message.topic import is_dead_letter_topic
from sprocket.protocol.codes import ResponseCode
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.store import Store
from sprocket.store.views.entry import EntryColumns
from sprocket.store.writing.appender import Appended, Kernel, Stored
from sprocket.transaction.half import Half
from sprocket.transaction.ledger import Ledger

_draft, _is_awaited = attrgetter("draft"), attrgetter("is_awaited")


class Receipt(NamedTuple):
    """The result of storing a message or a batch.

    Attributes:
        stored: the offsets of the message, or of each message of the batch.
        is_batch: whether it is a batch, even of one message.
    """

    stored: Sequence[Appended]
    destination: Destination
    is_batch: bool = False

    @property
    def last(self) -> Appended:
        """The message stored last: when it is flushed, all are."""
        return self.stored[-1]


class Ingress:
    """Stores messages.

    Args:
        timers: the timers; None if they are switched off.
        check_role: raises an error if this broker may accept no message now: too few copies of the
            log are in sync for a message whose sender waits for them, or another broker may lead
            by now. It is told whether senders wait for copies. None if there is nothing to check.
        measures: the histograms that are kept; None for none.

    Attributes:
        count: messages accepted since the start.
    """

    def __init__(
        self,
        store: Store,
        *,
        rules: DelayRules,
        settings: BrokerSettings,
        topics: Topics,
        volumes: Volumes,
        clock: Clock,
        ledger: Ledger,
        timers: Timers | None,
        check_role: Callable[[bool], None] | None,
        measures: BrokerMeasures | None = None,
    ) -> None:
        self._store = store
        self._rules = rules
        self._settings = settings
        self._topics = topics
        self._volumes = volumes
        self._clock = clock
        self._ledger = ledger
        self._timers = timers
        self._check_role = check_role
        self._measures = measures
        self.count = 0

    def accept(self, intake: Intake) -> Receipt:
        """Stores a message where `destination` decides.

        Of a batch, all messages are stored or none. A group's dead-letter topic is created if it is
        missing.

        Raises:
            IllegalMessage: body or properties are too large, the topic's name cannot be stored, or
                the delivery time is invalid; or a message of a batch asks for a delay, or belongs
                to a transaction.
            NoPermission: it belongs to a transaction, and the broker accepts none.
            SystemBusy: there are too many undecided transactions.
            SystemFailure: its delay level is no number, or timers are switched off.
            DiskFull, StoreError, ClosedError: the store accepts no messages now.
            SystemFailure: too few copies of the log are in sync.
        """
        if intake.parts:
            return self._accept_batch(intake)
        if intake.inner_count:
            return self._accept_inner(intake)
        if intake.lite is not None:
            return self._accept_lite(intake, intake.lite)
        decided = destination(intake, self._rules, now_ms=self._clock.now_ms())
        if intake.retry is not None and is_dead_letter_topic(decided.topic):
            self._topics.make_for_group(decided.topic, queues=1)
        if decided.half is not None:
            self._check_transactions()
        stored = self.store((decided,))
        if decided.half is not None:
            self._ledger.add(
                Half.of(
                    decided.half,
                    offset=stored[0].queue_offset,
                    log_offset=stored[0].log_offset,
                    born_ms=decided.draft.born_ms,
                    stored_ms=stored[0].stored_ms,
                )
            )
        return Receipt(stored, decided)

    def accept_together(self, intakes: Sequence[Intake]) -> list[Appended]:
        """Stores messages of the broker itself, which may wait for a time: all of them or none.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError, SystemFailure: as `accept`.
        """
        now_ms = self._clock.now_ms()
        decided = [destination(each, self._rules, now_ms=now_ms) for each in intakes]
        return self.store(decided, are_together=True)

    def destination(self, intake: Intake) -> Destination:
        """Where a message of the broker itself is stored; see `destination`.

        Raises:
            IllegalMessage, SystemFailure: its delivery time is invalid, or timers are off.
        """
        return destination(intake, self._rules, now_ms=self._clock.now_ms())

    def store(
        self, destinations: Sequence[Destination], *, are_together: bool = False
    ) -> list[Appended]:
        """Stores messages whose destinations are decided.

        Args:
            destinations: in order; those that wait for a delivery time are last.
            are_together: whether none is stored if one is refused.

        Returns:
            The offsets of the stored messages, up to the first one that the store refuses.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError, SystemFailure: as `accept`, for the
                first of them.
        """
        if self._check_role is not None:
            self._check_role(any(map(_is_awaited, destinations)))
        try:
            append = self._store.append_batch if are_together else self._store.append_all
            appended = append(list(map(_draft, destinations)))
        except IllegalDraft as error:
            raise IllegalMessage(f"the message is illegal: {error}") from error
        self.count += len(appended)
        put = self._volumes.put
        for each in appended:
            put(each.topic, each.record_bytes)
        if destinations[-1].wait is not None and self._timers is not None:
            self._timers.stored(
                (
                    each.queue_offset, each.log_offset, each.record_bytes,
                    wait.slot_ms, wait.due_ms, decided.topic, wait.is_recall,
                )
                for each, decided in zip(appended, destinations, strict=False)
                if (wait := decided.wait) is not None
            )  # fmt: skip
            if self._measures is not None:
                for decided in destinations[: len(appended)]:
                    if decided.wait is not None:
                        for_ms = decided.wait.due_ms - decided.draft.born_ms
                        self._measures.delayed(decided.topic, for_ms)
        return appended

    def store_batches(self, batches: Sequence[PlainBatch]) -> list[EntryColumns]:
        """Stores batches of messages that go where they were sent; of each all messages or none.

        Returns:
            The offsets of the stored batches, up to the first one that the store refuses.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError, SystemFailure: as `accept`, for the
                first of them.
        """
        if self._check_role is not None:
            self._check_role(any(each.destination.is_awaited for each in batches))
        try:
            appended = self._store.append_batches([each.drafts for each in batches])
        except IllegalDraft as error:
            raise IllegalMessage(f"a message of the batch is illegal: {error}") from error
        for stored in appended:
            self.count += len(stored)
            self._volumes.put(stored.topic, sum(stored.record_bytes), count=len(stored))
        return appended

    def store_run(self, kernel: Kernel) -> Stored | None:
        """Has a kernel store messages that are stored unchanged; None if it stores none."""
        if self._check_role is not None:
            return None
        stored = self._store.append_run(kernel)
        if stored is not None:
            self.count += stored.messages
            for topic, count, size in stored.topics:
                self._volumes.put(topic, size, count=count, calls=count)
        return stored

    def _accept_batch(self, intake: Intake) -> Receipt:
        envelope = intake.draft
        drafts = [draft_in_batch(each) for each in intake.parts]
        is_awaited = intake.properties.get(WAIT) != "false"
        if self._check_role is not None:
            self._check_role(is_awaited)
        self.count += len(drafts)
        try:
            appended = self._store.append_batch(drafts)
        except IllegalDraft as error:
            raise IllegalMessage(f"a message of the batch is illegal: {error}") from error
        size = sum(each.record_bytes for each in appended)
        self._volumes.put(envelope.topic, size, count=len(drafts))
        decided = Destination(envelope, envelope.topic, envelope.queue_number, is_awaited)
        return Receipt(appended, decided, is_batch=True)

    def _accept_inner(self, intake: Intake) -> Receipt:
        """Stores a batch as one record."""
        properties = encode(intake.properties).encode("utf-8", "replace")
        draft = replace(intake.draft, properties=properties)
        check_batched(intake.properties)
        is_awaited = intake.properties.get(WAIT) != "false"
        if self._check_role is not None:
            self._check_role(is_awaited)
        try:
            appended = self._store.batches.append(draft, intake.inner_count)
        except IllegalDraft as error:
            raise IllegalMessage(f"the batch is illegal: {error}") from error
        self.count += intake.inner_count
        self._volumes.put(draft.topic, appended.record_bytes, count=intake.inner_count)
        decided = Destination(draft, draft.topic, draft.queue_number, is_awaited)
        return Receipt((appended,), decided, is_batch=True)

    def _accept_lite(self, intake: Intake, name: LiteName) -> Receipt:
        """Stores a message with a lite topic."""
        lite, limit = self._store.lite, self._settings.config.lite_topics_max
        if not lite.has(name) and len(lite) >= limit:
            raise ReplyError.of(
                ResponseCode.LMQ_QUOTA_EXCEEDED,
                f"[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]lmq consume queue num exceeded: {limit}",
            )
        properties = encode(intake.properties).encode("utf-8", "replace")
        draft = replace(intake.draft, properties=properties)
        is_awaited = intake.properties.get(WAIT) != "false"
        if self._check_role is not None:
            self._check_role(is_awaited)
        try:
            appended = lite.append(draft, name)
        except IllegalDraft as error:
            raise IllegalMessage(f"the message is illegal: {error}") from error
        self.count += 1
        self._volumes.put(draft.topic, appended.record_bytes)
        return Receipt((appended,), Destination(draft, draft.topic, draft.queue_number, is_awaited))

    def accept_due(self, draft: Draft) -> Appended:
        """Stores a message of the broker itself unchanged, such as one whose delay is over.

        Raises:
            IllegalDraft, DiskFull, StoreError, ClosedError: the store refuses it.
        """
        appended = self._store.append(draft)
        self._volumes.put(draft.topic, appended.record_bytes)
        return appended

    def accept_due_together(self, drafts: Sequence[Draft]) -> list[Appended]:
        """Stores messages of the broker itself unchanged: all of them or none.

        Raises:
            IllegalDraft, DiskFull, StoreError, ClosedError: the store refuses one.
        """
        appended = self._store.append_batch(drafts)
        for each in appended:
            self._volumes.put(each.topic, each.record_bytes)
        return appended

    def _check_transactions(self) -> None:
        config = self._settings.config
        if config.reject_transactions:
            raise NoPermission(
                f"the broker[{config.name}] sending transaction message is forbidden"
            )
        if len(self._ledger) >= config.transactions_max:
            raise SystemBusy(f"{len(self._ledger)} transactions are undecided, the broker's limit")
