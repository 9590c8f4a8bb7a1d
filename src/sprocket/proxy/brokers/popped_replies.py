"""The messages in brokers' replies to pops, each with its receipt handle. Pure.

A receipt handle is the handle of the pop, and behind it the log offset of the record, by which a
broker finds the message when it becomes a dead letter.
Source: ReceiptHandle of RocketMQ 5.3.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, RemoteProtocolError, UsageError
from sprocket.clientcore.pops import PoppedHandles, changed
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import LONG_MAX
from sprocket.message.pop_handle import PopHandle, topic_of
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
        return ReceiptHandle(changed(self.handle, reply), self.log_offset)


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
