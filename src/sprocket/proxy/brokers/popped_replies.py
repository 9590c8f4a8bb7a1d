"""The messages in brokers' replies to pops, each with its receipt handle. Pure.

A receipt handle is the handle of the pop, and behind it the log offset of the record, by which a
broker finds the message when it becomes a dead letter.
Source: MQClientAPIImpl.processPopResponse and ReceiptHandle of RocketMQ 5.3.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, RemoteProtocolError, UsageError
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LONG_MAX
from sprocket.message.pop_handle import NORMAL, PopHandle, kind_of, read_offsets, topic_of
from sprocket.message.properties import POP_HANDLE
from sprocket.message.record import scan
from sprocket.protocol.command import Command
from sprocket.protocol.requests.pop import InvisibleReply, PopMessage, PopReply
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused


class ReceiptHandle(NamedTuple):
    """What a receipt handle says.

    Attributes:
        log_offset: of the message's record; -1 if the handle does not say it.
    """

    handle: PopHandle
    log_offset: int

    def encode(self) -> str:
        """The receipt handle as text."""
        return f"{self.handle.encode()} {self.log_offset}"

    @classmethod
    def parse(cls, text: str) -> ReceiptHandle:
        """Parses a receipt handle.

        Raises:
            CallRefused: it is none; with the code that RocketMQ's proxy has for that.
        """
        try:
            handle = PopHandle.parse(text)
        except UsageError as error:
            raise CallRefused(pb.INTERNAL_SERVER_ERROR, str(error)) from None
        words = text.split(" ")
        last = words[8] if len(words) > 8 else ""
        is_number = last.isascii() and last.isdecimal() and len(last) < 20
        return cls(handle, min(int(last), LONG_MAX) if is_number else -1)

    def topic(self, topic: str, group: str) -> str:
        """The topic in which the message lies, by the topic that was received from."""
        return topic_of(topic, group, self.handle.kind)

    def changed(self, reply: InvisibleReply) -> ReceiptHandle:
        """The receipt after a change of the invisible time."""
        handle = self.handle
        start = handle.start_offset if handle.is_in_order else handle.offset
        made = handle._replace(
            start_offset=start,
            pop_ms=reply.pop_time,
            invisible_ms=reply.invisible_time,
            revive_queue=reply.revive_qid,
        )
        return ReceiptHandle(made, self.log_offset)


class PoppedOne(NamedTuple):
    """A message, and its receipt."""

    message: StoredMessage
    receipt: ReceiptHandle


def read_popped(reply: Command, request: PopMessage, broker: str) -> list[PoppedOne]:
    """The messages in a reply that has some.

    Raises:
        RemoteProtocolError: the reply is not whole, has too many messages, or has some that its
            lists do not name.
    """
    header = reply.read(PopReply)
    found: list[PoppedOne] = []
    try:
        starts = read_offsets(header.start_offset_info or "")
        counts = _order_counts(header.order_count_info or "") if request.order else {}
        for message in scan(reply.body, broker):
            if len(found) >= request.max_msg_nums:
                raise RemoteProtocolError("a pop returned more messages than it asked for")
            handle = _handle(message, header, starts, broker)
            if request.order:
                place = handle.kind, handle.queue_number
                other = counts.get((*place, -1), 0)
                message.reconsume_times = counts.get((*place, handle.offset), other)
            found.append(PoppedOne(message, ReceiptHandle(handle, message.log_offset)))
    except (UsageError, CorruptRecord) as error:
        raise RemoteProtocolError(f"the reply to a pop: {error}") from error
    return found


def _handle(
    message: StoredMessage,
    header: PopReply,
    starts: dict[tuple[str, int], list[int]],
    broker: str,
) -> PopHandle:
    # A message that comes again bears its handle. One of the topic itself may bear an old one.
    has_others = len(starts) > 1 or next(iter(starts), (NORMAL,))[0] != NORMAL
    if has_others and (text := message.value(POP_HANDLE)) is not None:
        handle = PopHandle.parse(text)
        is_listed = (handle.kind, handle.queue_number) in starts
        if handle.kind != NORMAL and is_listed and handle.pop_ms == header.pop_time:
            return handle
    queue, kind = message.queue.number, kind_of(message.queue.topic)
    start = starts.get((kind, queue)) or starts.get((NORMAL, queue))
    if start is None:
        raise RemoteProtocolError(
            f"a pop returned a message of queue {queue}, which it does not list"
        )
    return PopHandle(
        start[0], header.pop_time, header.invisible_time, header.revive_qid, NORMAL, broker, queue,
        message.queue_offset,
    )  # fmt: skip


def _order_counts(text: str) -> dict[tuple[str, int, int], int]:
    """How often messages were given out before: by kind, queue and offset; -1 for all others."""
    counts: dict[tuple[str, int, int], int] = {}
    for part in text.split(";") if text else ():
        try:
            kind, place, count = part.split(" ")
            queue, _, offset = place.removeprefix("qo").partition("%")
            counts[kind, int(queue), int(offset) if offset else -1] = int(count)
        except ValueError:
            raise UsageError(f"no list of counts: {text[:100]!r}") from None
    return counts
