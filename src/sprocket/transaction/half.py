"""A half message: how it is stored, copied, committed and parked. Pure.

A message of a transaction is stored in `RMQ_SYS_TRANS_HALF_TOPIC`, queue 0, where no consumer sees
it. The properties REAL_TOPIC and REAL_QID contain its own topic and queue. A commit stores it again
in its own topic. An op record in `RMQ_SYS_TRANS_OP_HALF_TOPIC`, queue 0, lists halves that have
ended: it has tag `d`, and its body contains their queue offsets, `3,4,17,`.

Before each check a half is stored again, with the number of checks in TRANSACTION_CHECK_TIMES, so
that the count and the position in the queue survive a restart. The copy has the queue offset of the
first one in TRAN_PREPARED_QUEUE_OFFSET, so that all copies are one transaction; Java's copies have
it only in some cases and are recognised by their unique key.

Source: TransactionalMessageBridge, EndTransactionProcessor, TransactionalMessageServiceImpl,
DefaultTransactionalMessageCheckListener of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord
from sprocket.message import properties as names
from sprocket.message.drafting import copy_draft
from sprocket.message.hashing import tag_code
from sprocket.message.properties import decode_bytes, encode
from sprocket.message.record import COMMITTED, TRANSACTION_MASK, Draft, Encoder, Record, topic_part
from sprocket.message.topic import (
    CHECKS_EXHAUSTED,
    HALF,
    HALF_SETTLED,
    is_dead_letter_topic,
    is_retry_topic,
)

#: The group whose offsets are the positions up to which the half and op queues are finished.
SYSTEM_GROUP = "CID_RMQ_SYS_TRANS"
#: The number of the half queue and of the op queue.
QUEUE = 0

_ENDED_TAG = "d"
_BELONGS_NOWHERE = frozenset({HALF, HALF_SETTLED, CHECKS_EXHAUSTED, ""})
#: The longest immunity: a year.
_IMMUNITY_SECONDS_MAX = 366 * 86_400


class Half(NamedTuple):
    """The data of a half message that is kept in memory.

    Attributes:
        offset: its offset in the half queue.
        root: the offset of the first copy, which identifies the transaction.
        log_offset: the log offset of its record.
        began_ms: when the time for its producer to end it began.
        stored_ms: when this copy was stored.
        immunity_ms: how long its sender does not want a check; -1 if it did not ask for that.
        checks: the number of checks so far.
        topic: its own topic; empty if it has none.
    """

    offset: int
    root: int
    log_offset: int
    began_ms: int
    stored_ms: int
    immunity_ms: int = -1
    checks: int = 0
    topic: str = ""

    @classmethod
    def of(
        cls,
        properties: Mapping[str, str],
        *,
        offset: int,
        log_offset: int,
        born_ms: int,
        stored_ms: int,
    ) -> Half:
        """A half from the properties and position of its record. Invalid values are ignored."""
        root = number_in(properties, names.HALF_QUEUE_OFFSET)
        is_copy = 0 <= root < offset
        immunity = number_in(properties, names.CHECK_IMMUNITY_SECONDS)
        return cls(
            offset=offset,
            root=root if is_copy else offset,
            log_offset=log_offset,
            began_ms=min(born_ms, stored_ms) if is_copy else stored_ms,
            stored_ms=stored_ms,
            immunity_ms=min(immunity, _IMMUNITY_SECONDS_MAX) * 1000 if immunity >= 0 else -1,
            checks=max(0, number_in(properties, names.CHECK_TIMES)),
            topic=intern(properties.get(names.REAL_TOPIC, "")),
        )


class StoredHalf(NamedTuple):
    """A half message that was read from the log."""

    record: Record
    properties: dict[str, str]

    @property
    def half(self) -> Half:
        """Its data for the ledger."""
        record = self.record
        return Half.of(
            self.properties,
            offset=record.queue_offset,
            log_offset=record.log_offset,
            born_ms=record.born_ms,
            stored_ms=record.stored_ms,
        )


def number_in(properties: Mapping[str, str], name: str) -> int:
    """The value of a property that is a whole number from 0 on; -1 if it is not."""
    text = properties.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else -1


def is_half(topic: str, properties: Mapping[str, str]) -> bool:
    """Whether a received message is a half message.

    A committed message still has the mark, also when a consumer sends it back.
    """
    if properties.get(names.HALF, "").lower() != "true":
        return False
    return not is_retry_topic(topic) and not is_dead_letter_topic(topic)


def prepared(properties: Mapping[str, str], *, topic: str, queue_number: int) -> dict[str, str]:
    """Returns the properties of a message while it is a half message.

    Args:
        topic, queue_number: where it is to be stored once it is committed.
    """
    changed = dict(properties)
    for name in (names.HALF_QUEUE_OFFSET, names.CHECK_TIMES):
        changed.pop(name, None)
    if unique_key := changed.get(names.UNIQUE_KEY):
        changed[names.TRANSACTION_ID] = unique_key
    changed[names.REAL_TOPIC] = topic
    changed[names.REAL_QUEUE] = str(queue_number)
    return changed


def belongs_to(record: Record, properties: Mapping[str, str]) -> tuple[str, int]:
    """The topic and queue that a half was sent to.

    Raises:
        CorruptRecord: its properties do not contain them.
    """
    topic = properties.get(names.REAL_TOPIC, "")
    queue = number_in(properties, names.REAL_QUEUE)
    if topic in _BELONGS_NOWHERE or not 0 <= queue < 1 << 31:
        raise CorruptRecord(f"the half message at {record.log_offset} has no place to go")
    return topic, queue


def committed(record: Record, properties: dict[str, str]) -> Draft:
    """The message that a half becomes by its commit; changes its `properties` in place.

    Raises:
        CorruptRecord: its properties do not contain its own topic and queue.
    """
    topic, queue = belongs_to(record, properties)
    for name in (names.HALF_QUEUE_OFFSET, names.CHECK_TIMES):
        properties.pop(name, None)
    return copy_draft(
        record,
        properties,
        topic,
        queue_number=queue,
        sys_flag=record.sys_flag & ~TRANSACTION_MASK | COMMITTED,
        prepared_offset=record.log_offset,
    )


def copied(record: Record, properties: dict[str, str], *, root: int, checks: int) -> Draft:
    """The next copy of a half, for the end of the half queue.

    Args:
        checks: the number of checks, including the one that this copy is for.
    """
    if checks:
        properties[names.CHECK_TIMES] = str(checks)
    properties[names.HALF_QUEUE_OFFSET] = str(root)
    properties[names.WAIT] = "false"
    return _undecided(record, properties, topic=HALF, queue_number=QUEUE)


def parked(record: Record, properties: dict[str, str]) -> Draft:
    """The message that a half becomes when no producer ends its transaction."""
    return _undecided(record, properties, topic=CHECKS_EXHAUSTED, queue_number=0)


def resumed(record: Record, properties: dict[str, str]) -> Draft:
    """The half that a parked message becomes again; its number of checks is 0."""
    properties.pop(names.HALF_QUEUE_OFFSET, None)
    properties[names.CHECK_TIMES] = "0"
    properties[names.WAIT] = "false"
    return _undecided(record, properties, topic=HALF, queue_number=QUEUE)


def _undecided(
    record: Record, properties: Mapping[str, str], *, topic: str, queue_number: int
) -> Draft:
    """A record's message whose transaction is in no state."""
    sys_flag = record.sys_flag & ~TRANSACTION_MASK
    return copy_draft(record, properties, topic, queue_number=queue_number, sys_flag=sys_flag)


def as_asked(
    record: Record, properties: Mapping[str, str], *, offset: int, log_offset: int
) -> bytes:
    """The record for a check: with its own topic, and with the offsets of its newest copy.

    Raises:
        CorruptRecord: its properties do not contain its own topic and queue.
    """
    topic, queue = belongs_to(record, properties)
    draft = _undecided(record, properties, topic=topic, queue_number=queue)
    return Encoder(record.store_host).encode(
        draft,
        topic_part(topic.encode()),
        log_offset=log_offset,
        queue_offset=offset,
        stored_ms=record.stored_ms,
    )


def ended(offsets: Iterable[int], *, now_ms: int, host: bytes) -> Draft:
    """The op record for copies that have ended."""
    properties = {names.WAIT: "true", names.TAGS: _ENDED_TAG}
    return Draft(
        topic=HALF_SETTLED,
        queue_number=QUEUE,
        body="".join(f"{offset}," for offset in offsets).encode(),
        properties=encode(properties).encode(),
        tag_code=tag_code(_ENDED_TAG),
        flag=0,
        sys_flag=0,
        born_ms=now_ms,
        born_host=host,
    )


def ended_in(record: Record) -> list[int]:
    """The copies in the list of an op record; pieces that are no number are left out."""
    return ended_by(decode_bytes(record.properties).get(names.TAGS), record.body)


def ended_by(tag: str | None, body: bytes | memoryview) -> list[int]:
    """The same, of an op record with this tag and body."""
    if tag != _ENDED_TAG:
        return []
    pieces = str(body, "ascii", "replace").split(",")
    return [int(piece) for piece in pieces if piece.isdecimal() and len(piece) <= 18]
