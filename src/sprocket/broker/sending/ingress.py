"""The one door into the log: every message comes through here once, whoever made it.

A producer's send, a message that a consumer gave back, one whose transaction was committed:
`destination` decides where it goes, and it is stored there. What is due already is stored as it is.
Nothing here awaits before the message is in the log. What the ledger of transactions or the timers
have to know of a message, they get as it is stored.
Source: DefaultMessageStore.asyncPutMessage of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from sprocket.base.errors import IllegalMessage, NoPermission, SystemBusy
from sprocket.base.ports import Clock
from sprocket.broker.sending.destination import (
    DelayRules,
    Destination,
    Intake,
    destination,
    draft_in_batch,
)
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.topics import Topics
from sprocket.broker.tables.volumes import Volumes
from sprocket.delay.timers.timers import Timers
from sprocket.message.properties import WAIT
from sprocket.message.record import Draft
from sprocket.message.topic import is_dead_letter_topic
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended
from sprocket.transaction.half import Half
from sprocket.transaction.ledger import Ledger

_draft = attrgetter("draft")


class Receipt(NamedTuple):
    """What the door did with a message.

    Attributes:
        stored: where it is; of a batch, where each of its messages is.
        is_batch: whether it is a batch, even of one message.
    """

    stored: Sequence[Appended]
    destination: Destination
    is_batch: bool = False

    @property
    def last(self) -> Appended:
        """What is stored last: once that is safe, all is."""
        return self.stored[-1]


class Ingress:
    """Lets messages into the store.

    Args:
        timers: None if the broker keeps no times.

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
    ) -> None:
        self._store = store
        self._rules = rules
        self._settings = settings
        self._topics = topics
        self._volumes = volumes
        self._clock = clock
        self._ledger = ledger
        self._timers = timers
        self.count = 0

    def accept(self, intake: Intake) -> Receipt:
        """Takes in a message: decides where it goes, and stores it there.

        Of a batch all messages are stored, or none. A group's dead-letter topic is made if it is
        missing.

        Raises:
            IllegalMessage: body or properties are too large, its name cannot be stored, or the
                time that it asks for cannot be; or a message of a batch asks for a delay, or
                belongs to a transaction.
            NoPermission: it belongs to a transaction, and the broker takes none.
            SystemBusy: there are too many undecided transactions.
            SystemFailure: its delay level is no number, or the broker keeps no times.
            DiskFull, StoreError, ClosedError: the store takes nothing now.
        """
        if intake.parts:
            return self._accept_batch(intake)
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

    def store(self, destinations: Sequence[Destination]) -> list[Appended]:
        """Takes in messages of which it is known where they go.

        Args:
            destinations: those that wait for a time come last.

        Returns:
            Where they are stored. It ends before the first that the store refuses.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError: as `accept`, for the first of them.
        """
        try:
            appended = self._store.append_all(list(map(_draft, destinations)))
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
        return appended

    def _accept_batch(self, intake: Intake) -> Receipt:
        envelope = intake.draft
        drafts = [draft_in_batch(each) for each in intake.parts]
        self.count += len(drafts)
        try:
            appended = self._store.append_batch(drafts)
        except IllegalDraft as error:
            raise IllegalMessage(f"a message of the batch is illegal: {error}") from error
        size = sum(each.record_bytes for each in appended)
        self._volumes.put(envelope.topic, size, count=len(drafts))
        is_awaited = intake.properties.get(WAIT) != "false"
        decided = Destination(envelope, envelope.topic, envelope.queue_number, is_awaited)
        return Receipt(appended, decided, is_batch=True)

    def accept_due(self, draft: Draft) -> Appended:
        """Takes in a message of the broker's own, such as one whose delay is over, as it is.

        Raises:
            IllegalDraft, DiskFull, StoreError, ClosedError: the store does not take it.
        """
        appended = self._store.append(draft)
        self._volumes.put(draft.topic, appended.record_bytes)
        return appended

    def _check_transactions(self) -> None:
        config = self._settings.config
        if config.reject_transactions:
            raise NoPermission(
                f"the broker[{config.name}] sending transaction message is forbidden"
            )
        if len(self._ledger) >= config.transactions_max:
            raise SystemBusy(f"{len(self._ledger)} transactions are undecided, the broker's limit")
