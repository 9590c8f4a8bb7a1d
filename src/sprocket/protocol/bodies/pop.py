"""The records about popped messages in the revive topic: check points and acknowledgements.

Source: PopCheckPoint, AckMsg and BatchAckMsg of RocketMQ 5.3, which writes them in this order of
fields; texts that it made are in the tests. Records of pops in order are ours: Java's brokers read
past a tag that they do not know (PopReviveService.consumeReviveMessage).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.command import Long

#: The tags of the records.
CHECK_POINT, ACK, ACK_BATCH, IN_ORDER = "ck", "ack", "bAck", "order"


class PopKey(NamedTuple):
    """What a check point and its acknowledgements have in common."""

    topic: str
    group: str
    queue_number: int
    start_offset: int
    pop_ms: int
    broker: str


class CheckPoint(Body):
    """Messages that a group popped from one queue at one time.

    Attributes:
        bits: bits of those that are acknowledged; 0 in records.
        broker, group: names of the broker and of the consumer group.
        diffs: their queue offsets, less `start_offset`; if absent, they follow one another.
        count: how many they are.
        revive_ms: when they come again; Java writes it and does not read it.
        revive_offset: 0 in records.
        tries: how often the check point was written again; a text.
    """

    bits: Long = always(0, name="bm")
    broker: str | None = msgspec.field(default=None, name="bn")
    group: str | None = msgspec.field(default=None, name="c")
    diffs: list[Long] | None = msgspec.field(default=None, name="d")
    invisible_ms: Long = always(0, name="it")
    count: Long = always(0, name="n")
    pop_ms: Long = always(0, name="pt")
    queue_number: Long = always(0, name="q")
    revive_ms: Long = always(0, name="reviveTime")
    revive_offset: Long = always(0, name="ro")
    tries: str | None = msgspec.field(default=None, name="rp")
    start_offset: Long = always(0, name="so")
    topic: str | None = msgspec.field(default=None, name="t")

    @property
    def due_ms(self) -> int:
        """When its messages come again, unless they are acknowledged."""
        return self.pop_ms + self.invisible_ms

    def offsets(self) -> list[int]:
        """Queue offsets of its messages."""
        diffs = self.diffs or range(self.count)
        return [self.start_offset + diff for diff in diffs]


class AckRecord(Body):
    """An acknowledgement of one message, or of several of one check point.

    Attributes:
        offset: the message's queue offset; -1 if there are several.
        offsets: the queue offsets of several.
    """

    offset: Long = always(0, name="ao")
    offsets: list[Long] | None = msgspec.field(default=None, name="aol")
    broker: str | None = msgspec.field(default=None, name="bn")
    group: str | None = msgspec.field(default=None, name="c")
    pop_ms: Long = always(0, name="pt")
    queue_number: Long = always(0, name="q")
    start_offset: Long = always(0, name="so")
    topic: str | None = msgspec.field(default=None, name="t")

    def all_offsets(self) -> list[int]:
        """The queue offsets of all messages that it acknowledges."""
        return [self.offset] if self.offsets is None else list(self.offsets)


class OrderRecord(Body):
    """What a group has popped in order from a queue, from this record on.

    Attributes:
        row: JSON as in the file of pops in order; null if nothing is known any more.
    """

    group: str = always("", name="c")
    queue_number: Long = always(0, name="q")
    row: msgspec.Raw = msgspec.Raw(b"null")
    topic: str = always("", name="t")


def key_of(record: CheckPoint | AckRecord, broker: str) -> PopKey | None:
    """The key of a record; None if it names no topic or group.

    Args:
        broker: the name that counts where the record has none.
    """
    if not record.topic or not record.group:
        return None
    return PopKey(
        record.topic, record.group, record.queue_number, record.start_offset, record.pop_ms,
        record.broker or broker,
    )  # fmt: skip


def unique_key(record: CheckPoint | AckRecord) -> str:
    """The unique key under which Java stores a record."""
    if isinstance(record, CheckPoint):
        middle, last, tag = str(record.start_offset), record.broker, CHECK_POINT
    else:
        middle, last, tag = str(record.offset), record.broker, ACK
    words = (record.topic, record.queue_number, middle, record.group, record.pop_ms, last, tag)
    return "@".join(str("null" if word is None else word) for word in words)


def read_record(tag: str | None, body: bytes | memoryview) -> CheckPoint | AckRecord | None:
    """The record with a tag; None if the tag is another one.

    Raises:
        RemoteProtocolError: its body is no such record.
    """
    if tag == CHECK_POINT:
        return CheckPoint.decode(body)
    if tag in (ACK, ACK_BATCH):
        return AckRecord.decode(body)
    return None
