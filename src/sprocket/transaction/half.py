"""A half message: how it is stored, copied, committed and parked. Pure.

A message of a transaction is stored in `RMQ_SYS_TRANS_HALF_TOPIC`, queue 0, where no consumer sees
it. Its own topic and queue stand in the properties REAL_TOPIC and REAL_QID. A commit stores it once
more, under its own topic. What has ended is told in `RMQ_SYS_TRANS_OP_HALF_TOPIC`, queue 0: a
record with tag `d` whose body lists queue offsets of halves, `3,4,17,`.

Before its producer is asked, a half is stored anew, with the number of checks in
TRANSACTION_CHECK_TIMES, so that the count and the place in the queue survive a restart. The copy
names the first of them in TRAN_PREPARED_QUEUE_OFFSET, so that all copies are one transaction;
Java's copies do so only in some cases and are known by their unique key.

Source: TransactionalMessageBridge, EndTransactionProcessor, TransactionalMessageServiceImpl,
DefaultTransactionalMessageCheckListener of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import intern
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord
from sprocket.message import properties as names
from sprocket.message.anew import anew
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

#: The group whose offsets tell how far the half and op queues are done with.
SYSTEM_GROUP = "CID_RMQ_SYS_TRANS"
#: The queue that halves and the word on them lie in.
QUEUE = 0

_ENDED_TAG = "d"
_BELONGS_NOWHERE = frozenset({HALF, HALF_SETTLED, CHECKS_EXHAUSTED, ""})
#: Longest immunity that counts: a year.
_IMMUNITY_SECONDS_MAX = 366 * 86_400


class Half(NamedTuple):
    """What is remembered of a half message.

    Attributes:
        offset: its offset in the half queue.
        root: the offset of the first copy; the transaction's name.
        log_offset: where its record is.
        began_ms: since when its producer has had time to end it.
        stored_ms: when this copy was stored.
        immunity_ms: how long its sender does not want to be asked; -1 if it did not say.
        checks: how often its producer has been asked.
        topic: where it belongs; empty if it does not say.
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
        """A half as its properties and its place tell it. Odd values count as absent."""
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


def number_in(properties: Mapping[str, str], name: str) -> int:
    """A property that is a whole number from 0 on; -1 if it is absent or something else."""
    text = properties.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else -1


def is_half(topic: str, properties: Mapping[str, str]) -> bool:
    """Whether a message that comes in belongs to a transaction that has not ended.

    A message that was committed carries the mark still, also when a consumer gives it back.
    """
    if properties.get(names.HALF, "").lower() != "true":
        return False
    return not is_retry_topic(topic) and not is_dead_letter_topic(topic)


def prepared(properties: Mapping[str, str], *, topic: str, queue_number: int) -> dict[str, str]:
    """The properties of a message while it is a half one.

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
    """Topic and queue that a half was sent to.

    Raises:
        CorruptRecord: it does not say.
    """
    topic = properties.get(names.REAL_TOPIC, "")
    queue = number_in(properties, names.REAL_QUEUE)
    if topic in _BELONGS_NOWHERE or not 0 <= queue < 1 << 31:
        raise CorruptRecord(f"the half message at {record.log_offset} has no place to go")
    return topic, queue


def committed(record: Record, properties: dict[str, str]) -> Draft:
    """The message that a half becomes by its commit; `properties` are its, changed in place.

    Raises:
        CorruptRecord: it does not say where it belongs.
    """
    topic, queue = belongs_to(record, properties)
    for name in (names.HALF_QUEUE_OFFSET, names.CHECK_TIMES):
        properties.pop(name, None)
    return anew(
        record,
        properties,
        topic,
        queue_number=queue,
        sys_flag=record.sys_flag & ~TRANSACTION_MASK | COMMITTED,
        prepared_offset=record.log_offset,
    )


def copied(record: Record, properties: dict[str, str], *, root: int, checks: int) -> Draft:
    """The next copy of a half, to be stored behind all others.

    Args:
        checks: how often its producer has been asked, including the check that this copy is for.
    """
    if checks:
        properties[names.CHECK_TIMES] = str(checks)
    properties[names.HALF_QUEUE_OFFSET] = str(root)
    properties[names.WAIT] = "false"
    return _undecided(record, properties, topic=HALF, queue_number=QUEUE)


def parked(record: Record, properties: dict[str, str]) -> Draft:
    """The message that a half becomes when nobody said how it ends."""
    return _undecided(record, properties, topic=CHECKS_EXHAUSTED, queue_number=0)


def resumed(record: Record, properties: dict[str, str]) -> Draft:
    """The half that a parked message becomes again; its checks begin anew."""
    properties.pop(names.HALF_QUEUE_OFFSET, None)
    properties[names.CHECK_TIMES] = "0"
    properties[names.WAIT] = "false"
    return _undecided(record, properties, topic=HALF, queue_number=QUEUE)


def _undecided(
    record: Record, properties: Mapping[str, str], *, topic: str, queue_number: int
) -> Draft:
    """A record's message whose transaction is in no state."""
    sys_flag = record.sys_flag & ~TRANSACTION_MASK
    return anew(record, properties, topic, queue_number=queue_number, sys_flag=sys_flag)


def as_asked(
    record: Record, properties: Mapping[str, str], *, offset: int, log_offset: int
) -> bytes:
    """The record that a producer is asked about: under its own topic, at its newest copy's place.

    Raises:
        CorruptRecord: it does not say where it belongs.
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
    """The record that tells which copies are done with."""
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
    """The copies that a record of the op queue tells of; pieces that are no number are left out."""
    if decode_bytes(record.properties).get(names.TAGS) != _ENDED_TAG:
        return []
    pieces = str(record.body, "ascii", "replace").split(",")
    return [int(piece) for piece in pieces if piece.isdecimal() and len(piece) <= 18]
