"""The one door into the log: every message comes through here, whoever made it.

A producer's send, a message that a consumer gave back, a delayed one that is due: each is checked,
rewritten, appended, and, where the mode asks for it, waited for. Nothing here awaits before the
message is in the log. A half message of a transaction is noted in the ledger as it is stored.
Source: HookUtils and DefaultMessageStore.asyncPutMessage of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.errors import IllegalMessage, NoPermission, SystemBusy, SystemFailure
from sprocket.base.ports import Clock
from sprocket.broker.sending import rewrite
from sprocket.broker.settings import Settings
from sprocket.broker.tables.volumes import Volumes
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.timers.timed import Limits, slot_of
from sprocket.delay.timers.timers import Timers
from sprocket.message import properties as names
from sprocket.message.properties import encode
from sprocket.message.record import Draft
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Header, Reply
from sprocket.store.log.drafts import IllegalDraft
from sprocket.store.store import Store
from sprocket.store.writing.appending import Appended
from sprocket.transaction.half import Half, is_half
from sprocket.transaction.ledger import Ledger

#: Properties that ask for delivery at a time of the sender's choice.
_TIMED = frozenset({names.TIMER_DELIVER_MS, names.TIMER_DELAY_SECONDS, names.TIMER_DELAY_MS})
#: Properties by which a message becomes another one on its way in. Most messages have none.
SPECIAL = _TIMED | {names.HALF, names.DELAY}


class WaitsFor(NamedTuple):
    """The slot and the time that a message waits for, and its own topic and queue."""

    slot_ms: int
    due_ms: int
    topic: str
    queue_number: int


class Ingress:
    """Lets messages into the store.

    Attributes:
        count: messages accepted since the start.
        is_settling: whether replies have to wait for what `settled` gives.
    """

    def __init__(
        self,
        store: Store,
        *,
        levels: DelayLevels,
        settings: Settings,
        volumes: Volumes,
        clock: Clock,
        ledger: Ledger,
        timers: Timers | None,
    ) -> None:
        self._store = store
        self._timers = timers
        limits = settings.store
        self._limits = Limits(limits.timer_slot_ms, limits.timer_delay_seconds_max * 1000)
        self._ledger = ledger
        self._levels = levels
        self._settings = settings
        self._volumes = volumes
        self._clock = clock
        self.is_settling = settings.store.flush == "SYNC_FLUSH"
        self.count = 0

    def accept(self, draft: Draft, properties: dict[str, str]) -> Appended:
        """Takes in a message: rewrites and stores it.

        Args:
            draft: the message without the text of its properties, which is made here.
            properties: all of them; changed in place.

        Raises:
            IllegalMessage: body or properties are too large, its name cannot be stored, or the
                time that it asks for cannot be.
            NoPermission: it belongs to a transaction, and the broker takes none.
            SystemBusy: there are too many undecided transactions.
            SystemFailure: its delay level is no number, or the broker keeps no times.
            DiskFull, StoreError, ClosedError: the store takes nothing now.
        """
        if not SPECIAL.isdisjoint(properties):
            if is_half(draft.topic, properties):
                return self._accept_half(draft, properties)
            return self._accept_special(draft, properties)
        return self._store_new(draft, properties)

    def _store_new(self, draft: Draft, properties: dict[str, str]) -> Appended:
        draft.properties = encode(properties).encode("utf-8", "replace")
        return self.accept_ready((draft,))[0]

    def accept_ready(self, drafts: Sequence[Draft]) -> list[Appended]:
        """Takes in messages that have the text of their properties, of which none is in `SPECIAL`.

        Returns:
            Where they are stored. It ends before the first that the store refuses.

        Raises:
            IllegalMessage, DiskFull, StoreError, ClosedError: as `accept`, for the first of them.
        """
        try:
            appended = self._store.append_all(drafts)
        except IllegalDraft as error:
            raise IllegalMessage(f"the message is illegal: {error}") from error
        self.count += len(appended)
        put = self._volumes.put
        for each in appended:
            put(each.topic, each.record_bytes)
        return appended

    def slots(self) -> Callable[[int], int | None]:
        """Tells the slot in which a message waits that is due at a time; None if it does not now,
        or may not.
        """
        if self._timers is None:
            return lambda due_ms: None
        now_ms = self._clock.now_ms()
        width_ms, last_ms = self._limits.slot_ms, now_ms + self._limits.delay_ms_max

        def slot_in(due_ms: int) -> int | None:
            return slot_of(due_ms, width_ms) if now_ms < due_ms <= last_ms else None

        return slot_in

    def accept_waiting(self, drafts: Sequence[Draft], waits: Sequence[WaitsFor]) -> list[Appended]:
        """As `accept_ready`, for messages that have been turned into such that wait for a time."""
        assert self._timers is not None, "`slots` gave one"
        appended = self.accept_ready(drafts)
        self._timers.stored(
            (each.queue_offset, each.log_offset, each.record_bytes, slot_ms, due_ms, topic, False)
            for each, (slot_ms, due_ms, topic, _) in zip(appended, waits, strict=False)
        )
        return appended

    def _accept_half(self, draft: Draft, properties: dict[str, str]) -> Appended:
        config = self._settings.config
        if config.reject_transactions:
            raise NoPermission(
                f"the broker[{config.name}] sending transaction message is forbidden"
            )
        if len(self._ledger) >= config.transactions_max:
            raise SystemBusy(f"{len(self._ledger)} transactions are undecided, the broker's limit")
        rewrite.prepare(draft, properties)
        appended = self._store_new(draft, properties)
        self._ledger.add(
            Half.of(
                properties,
                offset=appended.queue_offset,
                log_offset=appended.log_offset,
                born_ms=draft.born_ms,
                stored_ms=appended.stored_ms,
            )
        )
        return appended

    def accept_committed(self, draft: Draft, properties: dict[str, str]) -> Appended:
        """Takes in a message whose transaction was committed.

        Raises:
            IllegalMessage, SystemFailure, DiskFull, StoreError, ClosedError: as `accept`.
        """
        return self._accept_special(draft, properties)

    def _accept_special(self, draft: Draft, properties: dict[str, str]) -> Appended:
        """Takes in a message that may have to wait."""
        now_ms = self._clock.now_ms()
        if rewrite.delay(draft, properties, levels=self._levels, now_ms=now_ms):
            return self._store_new(draft, properties)
        if not rewrite.asks_for_time(draft.topic, properties):
            return self._store_new(draft, properties)
        if self._timers is None:
            raise SystemFailure("accurate timer message is not enabled, timerWheelEnable is false")
        time = rewrite.put_off(draft, properties, self._limits, now_ms=now_ms)
        appended = self._store_new(draft, properties)
        if time is not None:
            place = (appended.queue_offset, appended.log_offset, appended.record_bytes)
            topic, is_recall = properties[names.REAL_TOPIC], names.TIMER_DELETE_KEY in properties
            self._timers.stored([(*place, *time, topic, is_recall)])
        return appended

    def accept_batch(
        self, drafts: Sequence[Draft], properties: Sequence[dict[str, str]]
    ) -> list[Appended]:
        """Takes in messages that were sent together: all of them, or none.

        Raises:
            IllegalMessage: also where one of them asks for a delay, or belongs to a transaction.
            DiskFull, StoreError, ClosedError: as `accept`.
        """
        for draft, own in zip(drafts, properties, strict=True):
            if own.get(names.HALF, "").lower() == "true":
                raise IllegalMessage("messages of a batch cannot belong to transactions")
            if names.DELAY in own or not _TIMED.isdisjoint(own):
                raise IllegalMessage("messages of a batch cannot be delayed")
            draft.properties = encode(own).encode("utf-8", "replace")
        self.count += len(drafts)
        try:
            appended = self._store.append_batch(drafts)
        except IllegalDraft as error:
            raise IllegalMessage(f"a message of the batch is illegal: {error}") from error
        size = sum(each.record_bytes for each in appended)
        self._volumes.put(drafts[0].topic, size, count=len(drafts))
        return appended

    def accept_due(self, draft: Draft) -> Appended:
        """Takes in a message of the broker's own, such as one whose delay is over, as it is.

        Raises:
            IllegalDraft, DiskFull, StoreError, ClosedError: the store does not take it.
        """
        appended = self._store.append(draft)
        self._volumes.put(draft.topic, appended.record_bytes)
        return appended

    def settled(self, appended: Appended, properties: Mapping[str, str]) -> Awaitable[int] | None:
        """What a reply has to wait for: a response code once it is known; None for nothing."""
        if not self.is_settling or properties.get(names.WAIT) == "false":
            return None
        return self._flushed(appended.end)

    async def _flushed(self, end: int) -> int:
        deadline = Deadline.after_ms(self._settings.config.flush_timeout_ms)
        if await self._store.flushed.reach(end, deadline):
            return ResponseCode.SUCCESS
        return ResponseCode.FLUSH_DISK_TIMEOUT


async def after(settled: Awaitable[int], header: Header | None = None) -> Reply:
    """The reply once it is known whether the message is where it has to be."""
    return Reply(header, code=await settled)
