"""The transaction id that a client gets for a half message, and sends to end its transaction. Pure.

It says where the half message is, so that any proxy can end the transaction at any time: whichever
process the client reaches, and after a restart. RocketMQ's proxy keeps the place in memory, for 30
seconds. Like a receipt handle it is not signed; the broker checks what it says.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.message.offsets import LONG_MAX
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused

_TEXT_MAX = 512


class TransactionId(NamedTuple):
    """Where a half message is.

    Attributes:
        broker: the broker's name.
        log_offset: of the half message's record.
        queue_offset: in the queue of half messages.
    """

    broker: str
    log_offset: int
    queue_offset: int

    def encode(self) -> str:
        """The id as text."""
        return f"{self.broker}@{self.log_offset:X}@{self.queue_offset:X}"

    @classmethod
    def parse(cls, text: str) -> TransactionId:
        """Parses an id.

        Raises:
            CallRefused: it is none.
        """
        if not text.strip():
            raise CallRefused(pb.INVALID_TRANSACTION_ID, "transaction id cannot be empty")
        words = text[:_TEXT_MAX].rsplit("@", 2)
        try:
            broker, log_offset, queue_offset = words
            return cls(broker, _number(log_offset), _number(queue_offset))
        except ValueError:
            wrong = f"cannot found transaction data of {text[:100]!r}"
            raise CallRefused(pb.INTERNAL_SERVER_ERROR, wrong) from None


def _number(text: str) -> int:
    if not text.isalnum() or not text.isascii() or (number := int(text[:20], 16)) > LONG_MAX:
        raise ValueError
    return number
