"""The messages in brokers' replies to pops, each with its receipt handle. Pure.

A receipt handle is the handle of the pop, and behind it the log offset of the record, by which a
broker finds the message when it becomes a dead letter, and the message's lite topic if it has one.
Source: ReceiptHandle of RocketMQ 5.3.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, RemoteProtocolError, UsageError
from sprocket.clientcore.pops import PoppedHandles, changed
from sprocket.message.lite import LiteName
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LONG_MAX, QueueOffset
from sprocket.message.pop_handle import NORMAL, POP_COUNT_MAX, PopHandle, topic_of
from sprocket.message.properties import LITE_OFFSET, LITE_QUEUE
from sprocket.message.record import scan
from sprocket.protocol.command import Command
from sprocket.protocol.requests.lite import PopLite, PopLiteReply
from sprocket.protocol.requests.pop import InvisibleReply, PopMessage, PopReply
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused

_DIGITS_MAX = 10


class ReceiptHandle(NamedTuple):
    """What a receipt handle says.

    Attributes:
        log_offset: of the message's record; -1 if the handle does not say it.
        lite: the message's lite topic; empty if it has none.
    """

    handle: PopHandle
    log_offset: int
    lite: str = ""

    def encode(self) -> str:
        """The receipt handle as text."""
        text = f"{self.handle.encode()} {self.log_offset}"
        return f"{text} {self.lite}" if self.lite else text

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
        lite = words[9] if len(words) > 9 else ""
        return cls(handle, min(int(last), LONG_MAX) if is_number else -1, lite)

    def of_lite(self, lite: str) -> ReceiptHandle:
        """The same of a message whose lite topic a client names, if it does not say it itself."""
        return self._replace(lite=lite) if lite and not self.lite else self

    def topic(self, topic: str, group: str) -> str:
        """The topic in which the message lies, by the topic that was received from."""
        return topic_of(topic, group, self.handle.kind)

    def changed(self, reply: InvisibleReply) -> ReceiptHandle:
        """The receipt after a change of the invisible time."""
        return self._replace(handle=changed(self.handle, reply))


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
    handles = PoppedHandles(reply.read(PopReply), request, broker)
    found: list[PoppedOne] = []
    try:
        for message in scan(reply.body, broker):
            if len(found) >= request.max_msg_nums:
                raise RemoteProtocolError("a pop returned more messages than it asked for")
            receipt = ReceiptHandle(handles.of(message), message.log_offset)
            found.append(PoppedOne(message, receipt))
    except CorruptRecord as error:
        raise RemoteProtocolError(f"the reply to a pop: {error}") from error
    return found


def read_popped_lite(reply: Command, request: PopLite, broker: str) -> list[PoppedOne]:
    """The same of a pop of lite topics: each record says itself where it is in which one.

    Raises:
        RemoteProtocolError: the reply is not whole, has too many messages, or has some that are in
            no lite topic.
    """
    header = reply.read(PopLiteReply)
    counts = _counts(header.order_count_info)
    found: list[PoppedOne] = []
    try:
        for message in scan(reply.body, broker):
            if len(found) >= request.max_msg_num:
                raise RemoteProtocolError("a pop returned more messages than it asked for")
            properties = message.properties
            name = LiteName.of_queue(properties.get(LITE_QUEUE, ""))
            offset = properties.get(LITE_OFFSET, "")
            if name is None or not (offset.isascii() and offset.isdecimal() and len(offset) < 20):
                raise RemoteProtocolError("a pop of lite topics returned a message of none")
            handle = PopHandle(
                0, header.pop_time, header.invisible_time, header.revive_qid, NORMAL, broker, 0,
                min(int(offset), LONG_MAX),
            )  # fmt: skip
            message.queue_offset = QueueOffset(handle.offset)
            message.queue = message.queue._replace(number=0)
            message.reconsume_times = counts.get(len(found), 0)
            receipt = ReceiptHandle(handle, message.log_offset, name.lite)
            found.append(PoppedOne(message, receipt))
    except CorruptRecord as error:
        raise RemoteProtocolError(f"the reply to a pop: {error}") from error
    return found


def _counts(text: str | None) -> dict[int, int]:
    """How often each message of a reply was given out before, by its place."""
    words = text.split(";", POP_COUNT_MAX) if text else []
    return {
        place: int(word)
        for place, word in enumerate(words)
        if word.isascii() and word.isdecimal() and len(word) < _DIGITS_MAX
    }
