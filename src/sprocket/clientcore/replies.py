"""What brokers' replies to sends and pulls mean. Pure.

Source: MQClientAPIImpl.processSendResponse and processPullResponse of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from sprocket.base.errors import RemoteProtocolError
from sprocket.message.offsets import QueueOffset
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Buffer, Command
from sprocket.protocol.requests.pull import PullReply

if TYPE_CHECKING:
    from sprocket.filter.choice import Filter
    from sprocket.message.message import StoredMessage
    from sprocket.message.opening import Opening
    from sprocket.message.queue import QueueId


class SendStatus(Enum):
    """How safely a message is stored. All but `OK` occur in synchronous modes only."""

    OK = "SEND_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"


_STORED: dict[int, SendStatus] = {
    ResponseCode.SUCCESS: SendStatus.OK,
    ResponseCode.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    ResponseCode.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    ResponseCode.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


class PullStatus(Enum):
    """What a pull found.

    Members:
        FOUND: messages.
        NO_NEW: nothing; the offset is the queue's end.
        NO_MATCHED: only messages that do not match the subscription; continue at `next_offset`.
        OFFSET_ILLEGAL: the offset is outside the queue; `next_offset` is inside.
    """

    FOUND = "FOUND"
    NO_NEW = "NO_NEW_MSG"
    NO_MATCHED = "NO_MATCHED_MSG"
    OFFSET_ILLEGAL = "OFFSET_ILLEGAL"


_PULLED: dict[int, PullStatus] = {
    ResponseCode.SUCCESS: PullStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PullStatus.NO_NEW,
    ResponseCode.PULL_RETRY_IMMEDIATELY: PullStatus.NO_MATCHED,
    ResponseCode.PULL_OFFSET_MOVED: PullStatus.OFFSET_ILLEGAL,
}


def is_stored(code: int) -> bool:
    """Whether a code means that the message is stored, however safely."""
    return code in _STORED


def send_status(reply: Command) -> SendStatus:
    """How safely the message that this reply acknowledges is stored.

    Raises:
        ReplyError: it is not stored.
    """
    status = _STORED.get(reply.code)
    if status is None:
        raise reply.error()
    return status


class PullAnswer(NamedTuple):
    """A broker's reply to a pull.

    Attributes:
        next_offset: where the next pull begins.
        min_offset, max_offset: the queue's first offset, and the one after its last.
        broker_number: the process of the broker that the next pull should go to; 0 is the master.
        records: the records of the messages, one after the other; empty unless `FOUND`.
        offset_delta: what is added to the offsets in the records, of a logical queue; else None.
    """

    status: PullStatus
    next_offset: int
    min_offset: int
    max_offset: int
    broker_number: int
    records: Buffer
    offset_delta: int | None = None

    def messages(self, queue: QueueId, wanted: Filter, opening: Opening) -> Iterator[StoredMessage]:
        """The messages that match; brokers may have compared only the hashes of tags.

        Args:
            queue: the queue that was asked for.
            opening: opens their bodies; if it stops, the messages end there: see `after`.

        Raises:
            CorruptRecord: the bytes are no record; the messages before them were yielded already.
        """
        # Tasks of Spark decode records to columns instead, and need not import this.
        from sprocket.message.record import scan

        found = scan(self.records, queue.broker, opening=opening)
        if self.offset_delta is not None:
            found = _in_logical(found, queue, self.offset_delta)
        if wanted.is_all:
            return found
        return (message for message in found if wanted.matches(message.properties))

    def after(self, opening: Opening) -> int:
        """Where the next pull begins, once the messages that `opening` left are read."""
        if opening.stopped_at is None:
            return self.next_offset
        return opening.stopped_at + (self.offset_delta or 0)


def read_pull(reply: Command) -> PullAnswer:
    """Reads the reply to a pull.

    Raises:
        ReplyError: the broker refused.
        RemoteProtocolError: the next offset is negative, or the code is that for found messages
            and the reply contains none.
    """
    status = _PULLED.get(reply.code)
    if status is None:
        raise reply.error()
    fields = reply.read(PullReply)
    if fields.next_begin_offset < 0:
        raise RemoteProtocolError(f"the next offset of a pull is {fields.next_begin_offset}")
    is_found = status is PullStatus.FOUND
    if is_found and not reply.body:
        raise RemoteProtocolError("the reply to a pull that found messages contains none")
    return PullAnswer(
        status,
        fields.next_begin_offset,
        fields.min_offset,
        fields.max_offset,
        fields.suggest_which_broker_id,
        reply.body if is_found else b"",
        fields.offset_delta,
    )


def _in_logical(
    found: Iterator[StoredMessage], queue: QueueId, delta: int
) -> Iterator[StoredMessage]:
    """The messages with the queue and the offsets by which clients know them."""
    for message in found:
        message.queue = queue
        message.queue_offset = QueueOffset(message.queue_offset + delta)
        yield message
