"""Batches that are staged, and the decision which of them are published: their records. Pure.

A writer's transaction consists of batches that many processes send. Each is one record in queue 0
of the topic `rmq_sys_sprocket_staged`, which nobody can read. The decision is a record in queue 1
that lists the attempts that count. After it the messages are stored in their own topics, each with
a mark of its staged record in the field for the log offset of a half message; then a record in
queue 1 says that the transaction is finished. In that order they are in the log, so what a crash
leaves, or a slave has, tells how far a transaction is: see `sprocket.transaction.staged_ledger`.

Each record of queue 1 also says where the oldest records are that are still needed, so that a start
reads no others.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from sprocket.base.errors import CorruptRecord
from sprocket.message.properties import decode_bytes, encode
from sprocket.message.record import Draft, Record
from sprocket.message.topic import STAGED

#: The queue of staged batches, and that of decisions.
BATCHES, DECISIONS = 0, 1

_PROPERTY = "STAGED"

K = TypeVar("K")


class StagedHead(msgspec.Struct, frozen=True, gc=False):
    """What a staged batch is part of, and where its messages will go.

    Attributes:
        owner: who signed it; empty at a broker without access control.
        batch: the writer's number of the transaction.
        number: counts the batches of the attempt, from 0 on.
        messages: how many it has.
    """

    writer: str
    owner: str
    batch: int
    attempt: str
    number: int
    topic: str
    queue: int
    messages: int


class StagedDecision(msgspec.Struct, frozen=True, gc=False):
    """What is known of a writer's newest transaction.

    Attributes:
        attempts: those that count, with the number of batches of each, in the order of publication;
            empty once it is finished.
        messages: how many all of them have.
        is_finished: whether all are where their readers find them.
        at_ms: when it was decided, ms since 1970 UTC.
        keep_ms: how long it is remembered after that.
        staged_from, decided_from: the offsets in both queues before which no record is needed.
        decided_by: the broker that has decided, if it is another one.
        elsewhere: the attempts of which other brokers publish batches, by broker; in records only,
            since that may be much.
    """

    writer: str
    owner: str
    batch: int
    attempts: list[tuple[str, int]]
    messages: int
    is_finished: bool
    at_ms: int
    keep_ms: int
    staged_from: int
    decided_from: int
    decided_by: str = ""
    elsewhere: list[tuple[str, list[tuple[str, int]]]] = []


_heads = msgspec.json.Decoder(StagedHead)
_decisions = msgspec.json.Decoder(StagedDecision)
_encode = msgspec.json.Encoder().encode


def staged(head: StagedHead, body: bytes, *, born_ms: int, born_host: bytes) -> Draft:
    """The record of a staged batch."""
    text = encode({_PROPERTY: _encode(head).decode()}).encode()
    return _draft(BATCHES, body, text, born_ms=born_ms, born_host=born_host)


def decided(decision: StagedDecision, *, host: bytes) -> Draft:
    """The record of a decision."""
    return _draft(DECISIONS, _encode(decision), b"", born_ms=decision.at_ms, born_host=host)


def _draft(queue: int, body: bytes, text: bytes, *, born_ms: int, born_host: bytes) -> Draft:
    return Draft(STAGED, queue, body, text, 0, 0, 0, born_ms, born_host)


def mark_of(record: Record) -> int:
    """What the messages of a staged record carry: a log offset within it.

    So it is neither 0 nor where any record begins, which is what all other messages carry: those
    that were delayed, or of a transaction, name the record of which they were made.
    """
    return record.log_offset + 1


def head_of(record: Record) -> StagedHead:
    """What a record of queue 0 says.

    Raises:
        CorruptRecord: it is no staged batch.
    """
    text = decode_bytes(record.properties).get(_PROPERTY, "") if record.topic == STAGED else ""
    return _read(_heads, text.encode(), record)


def decision_of(record: Record) -> StagedDecision:
    """What a record of queue 1 says.

    Raises:
        CorruptRecord: it is no decision.
    """
    return _read(_decisions, bytes(record.body), record)


def _read(decoder: msgspec.json.Decoder[K], text: bytes, record: Record) -> K:
    try:
        return decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise CorruptRecord(f"the record at {record.log_offset} is not staged: {error}") from None
