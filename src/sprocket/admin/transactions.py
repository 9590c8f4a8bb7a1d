"""Transactions that nobody has ended: those that are pending, and a check of one that is given up.

A half message is pending if it lies behind the position of RocketMQ's own group in the half queue,
and no op record behind that group's position names it (`transaction.half`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import NamedTuple

from sprocket.admin import messages, reading, resend, topics
from sprocket.admin.caller import Caller
from sprocket.admin.topics import QueueStatus
from sprocket.base.errors import QueryNotFound, TopicNotFound
from sprocket.message import properties as names
from sprocket.message.message import StoredMessage
from sprocket.message.topic import CHECKS_EXHAUSTED, HALF, HALF_SETTLED
from sprocket.protocol.requests.offset import OffsetReply, QueryOffset
from sprocket.protocol.requests.transaction import ResumeCheck
from sprocket.transaction.half import QUEUE, SYSTEM_GROUP, ended_by, number_in

#: Records of the op queue that are read of a broker: as many as name a hundred thousand ends.
_ENDS_MAX = 20_000


class PendingTransaction(NamedTuple):
    """A half message that nobody has ended.

    Attributes:
        topic: its own topic, to which a commit would bring it.
        producer_group: whose producers are asked about it.
        checks: how often they were asked.
        message: its record in the half queue.
    """

    broker: str
    topic: str
    producer_group: str
    checks: int
    message: StoredMessage


async def pending(
    caller: Caller, *, cluster: str | None = None, broker: str | None = None
) -> AsyncGenerator[PendingTransaction, None]:
    """Yields the transactions that nobody has ended, of one master after the other: of all, those
    of a cluster, or one; the oldest first at each.

    Raises:
        UsageError: there is no such broker.
        TransportError, ReplyError: a broker did not answer, or refused.
    """
    for name, address in (await caller.masters(cluster=cluster, broker=broker)).items():
        # A half that ends while the halves are read is still shown.
        ended: set[int] = set()
        records = 0
        async for op in _from_position(caller, name, address, HALF_SETTLED):
            ended.update(ended_by(op.tag, op.body))
            records += 1
            if records >= _ENDS_MAX:
                break
        async for half in _from_position(caller, name, address, HALF):
            if half.queue_offset not in ended:
                yield _pending(name, half)


async def check_again(caller: Caller, offset_id: str) -> StoredMessage:
    """Has the broker check a transaction again that it has given up; returns the parked message.

    Args:
        offset_id: of the message in the topic of those that are given up.

    Raises:
        UsageError: the text is no offset id.
        QueryNotFound: there is no such message, or it is not parked.
        ReplyError: the broker refused.
    """
    message = await messages.view(caller, offset_id)
    if message.topic != CHECKS_EXHAUSTED:
        raise QueryNotFound(f"{offset_id} is not a transaction that is given up: {message.topic}")
    masters = await caller.masters(broker=message.queue.broker)
    header = ResumeCheck(topic=CHECKS_EXHAUSTED, msg_id=resend.place_of(message))
    await caller.ask(masters[message.queue.broker], header)
    return message


async def _from_position(
    caller: Caller, broker: str, address: str, topic: str
) -> AsyncGenerator[StoredMessage, None]:
    """The messages of a system queue behind the position of RocketMQ's own group."""
    try:
        spans = await topics.status_at(caller, address, topic)
    except TopicNotFound:
        return
    span = next((each for each in spans if each.number == QUEUE), None)
    if span is None:
        return
    header = QueryOffset(consumer_group=SYSTEM_GROUP, topic=topic, queue_id=QUEUE)
    try:
        position = (await caller.ask(address, header)).read(OffsetReply).offset
    except QueryNotFound:
        position = 0
    begin = max(span.min_offset, position)
    queue = QueueStatus(broker, QUEUE, span.min_offset, span.max_offset, span.updated_ms)
    async for message in reading.of_queue(caller, address, queue, topic=topic, begin=begin):
        yield message


def _pending(broker: str, half: StoredMessage) -> PendingTransaction:
    properties = half.properties
    return PendingTransaction(
        broker,
        properties.get(names.REAL_TOPIC, ""),
        properties.get(names.PRODUCER_GROUP, ""),
        max(number_in(properties, names.CHECK_TIMES), 0),
        half,
    )
