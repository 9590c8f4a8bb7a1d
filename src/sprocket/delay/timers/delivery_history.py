"""Finds the timed messages that were delivered before a crash, from the log.

A delivered message names the record in which it waited. So a scan of the end of the log shows which
messages need not be delivered again.
"""

from __future__ import annotations

import asyncio

from sprocket.base.errors import CorruptRecord, OffsetOutOfRange
from sprocket.delay.levels.delivered import records_from
from sprocket.delay.timers.timed import QUEUE, delete_key
from sprocket.message import properties as names
from sprocket.message.properties import decode_bytes, value_in
from sprocket.message.record import Record, parse
from sprocket.message.topic import TIMER
from sprocket.store.store import Store

_PAUSE_RECORDS = 2048
_PAUSE_BYTES = 1 << 20


class DeliveryHistory:
    """The messages delivered or rolled since some position of the log.

    Args:
        by_key: whether Java's broker may have delivered some; it does not name origins.

    Attributes:
        origins: log offsets of the records in which they waited.
    """

    def __init__(self, *, by_key: bool = False) -> None:
        self._by_key = by_key
        self.origins: set[int] = set()
        #: Topic and unique key of messages that name no origin: 0 is also the offset of the log's
        #: first record, see `know_first`.
        self._keys: set[str] = set()
        self._rolled_keys: set[str] = set()

    def __len__(self) -> int:
        return len(self.origins) + len(self._keys) + len(self._rolled_keys)

    def apply(self, record: Record) -> None:
        """Adds the message of a record, if it is a delivered or rolled one."""
        raw = bytes(record.properties)
        if names.TIMER_DEQUEUE_MS.encode() not in raw or not value_in(raw, names.TIMER_DEQUEUE_MS):
            return
        if record.prepared_offset:
            self.origins.add(record.prepared_offset)
            return
        keys = self._rolled_keys if record.topic == TIMER else self._keys
        keys.add(_key_of(record))

    def know_first(self, key: str) -> None:
        """Finds out whether the message in the log's first record was delivered or rolled.

        Its offset, 0, looks like no origin; so its key decides.

        Args:
            key: the topic and unique key of that message.
        """
        for keys in (self._keys, self._rolled_keys):
            if key in keys:
                keys.discard(key)
                self.origins.add(0)
                return

    def pop(self, log_offset: int, key: str, *, is_rolled: bool) -> bool:
        """Whether the message of a record is among them; removes it then.

        Args:
            log_offset: position of the record.
            key: the message's topic and unique key.
            is_rolled: whether it is to be rolled, not delivered.
        """
        if log_offset in self.origins:
            self.origins.discard(log_offset)
            return True
        keys = self._rolled_keys if is_rolled else self._keys
        if self._by_key and key in keys:
            keys.discard(key)
            return True
        return False


async def read_history(store: Store, log_offset: int, *, by_key: bool) -> DeliveryHistory:
    """Scans the log from an offset for delivered messages.

    Args:
        store: the store.
        log_offset: where the scan begins.
        by_key: whether Java's broker may have delivered some.
    """
    history = DeliveryHistory(by_key=by_key)
    first = _first_of(store)
    for count, record in enumerate(records_from(store, log_offset), 1):
        history.apply(record)
        if count % _PAUSE_RECORDS == 0:
            await asyncio.sleep(0)
    if first is not None:
        history.know_first(first)
    return history


def _key_of(record: Record) -> str:
    """Topic and unique key of a message that was delivered, or that waits."""
    properties = decode_bytes(bytes(record.properties))
    topic = properties.get(names.REAL_TOPIC, "") if record.topic == TIMER else record.topic
    return delete_key(topic, properties.get(names.UNIQUE_KEY, ""))


def _first_of(store: Store) -> str | None:
    """The key of the message at log offset 0, if it waits for its time."""
    if store.log_start > 0 or store.log_end <= 0:
        return None
    try:
        record = parse(store.lookup(0))
    except (OffsetOutOfRange, CorruptRecord):
        return None
    return _key_of(record) if record.topic == TIMER else None


async def origins_of_copies(store: Store, at: int) -> set[int]:
    """Log offsets of all rolled messages, from their copies in the timer's topic.

    Args:
        store: the store.
        at: the first queue offset to read.
    """
    found: set[int] = set()
    first = _first_of(store)
    while at < store.stored.max_offset(TIMER, QUEUE):
        read = store.stored.read(TIMER, QUEUE, at, count_max=_PAUSE_RECORDS, bytes_max=_PAUSE_BYTES)
        # Damage is logged where the message is to go on the wheel.
        for record in read.records(on_damage=lambda error: None):
            if not value_in(bytes(record.properties), names.TIMER_ROLL_TIMES):
                continue
            if record.prepared_offset or (first is not None and _key_of(record) == first):
                found.add(record.prepared_offset)
        at = max(read.next_offset, at + 1)
        await asyncio.sleep(0)
    return found


def file_stored_before(store: Store, time_ms: int, *, file_bytes: int) -> int:
    """Log offset of the last log file whose first record was stored before a time."""
    start = store.log_end - store.log_end % file_bytes
    while start > store.log_start:
        try:
            if parse(store.lookup(start)).stored_ms < time_ms:
                return start
        except (OffsetOutOfRange, CorruptRecord):
            pass
        start -= file_bytes
    return store.log_start
