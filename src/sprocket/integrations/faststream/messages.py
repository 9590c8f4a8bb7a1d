"""Messages as FastStream's handlers get them, and what becomes of them at the broker."""

from __future__ import annotations

from typing import Any

from faststream.message import StreamMessage, decode_message

from sprocket.client.base.subscription import Later
from sprocket.message.message import Message, StoredMessage
from sprocket.message.properties import CORRELATION_ID, REPLY_TO_CLIENT, RESERVED
from sprocket.schemas.body_codec import CONTENT_TYPE

#: Properties in which FastStream's own values travel; other clients see them as user properties.
CORRELATION, REPLY_TO = "correlation-id", "reply-to"
_OURS = frozenset({CONTENT_TYPE, CORRELATION, REPLY_TO})
#: In place of a topic in `reply_to`: the client that asked with `request`.
THE_CLIENT = f"{REPLY_TO_CLIENT}:"
#: A message that is not redelivered, but becomes a dead letter at once.
_DEAD = Later(-1)


class Delivery:
    """A message of RocketMQ on its way through a handler.

    Attributes:
        message: the message; for the reply to a request, as a producer made it.
        verdict: what the listener returns for it: None if it is consumed, else when it comes again.
    """

    __slots__ = ("message", "verdict")

    def __init__(self, message: StoredMessage | Message, verdict: Later | None = None) -> None:
        self.message = message
        self.verdict = verdict


class RocketMQMessage(StreamMessage[Delivery]):
    """A message in a handler. `raw_message.message` is the client's own, with offsets and times."""

    async def ack(self) -> None:
        """The message is consumed."""
        if self.committed is None:
            self.raw_message.verdict = None
        await super().ack()

    async def nack(self, delay_level: int = 0) -> None:
        """The message comes again.

        Args:
            delay_level: 0: after a delay that grows with each failure, from 10 s to 2 h; 1 to 18:
                one of the broker's fixed delays.
        """
        if self.committed is None:
            self.raw_message.verdict = Later(delay_level)
        await super().nack()

    async def reject(self) -> None:
        """The message becomes a dead letter of its group."""
        if self.committed is None:
            self.raw_message.verdict = _DEAD
        await super().reject()


async def parse_message(raw: Delivery) -> StreamMessage[Delivery]:
    """The message of a delivery, with its user properties as headers."""
    message = raw.message
    properties = message.properties
    asked_by = properties.get(REPLY_TO_CLIENT)
    stored = message if isinstance(message, StoredMessage) else None
    headers = {
        name: value
        for name, value in properties.items()
        if name not in RESERVED and name not in _OURS and not name.startswith("__")
    }
    return RocketMQMessage(
        raw,
        message.body,
        headers=headers,
        content_type=properties.get(CONTENT_TYPE),
        correlation_id=properties.get(CORRELATION) or properties.get(CORRELATION_ID),
        reply_to=properties.get(REPLY_TO) or (f"{THE_CLIENT}{asked_by}" if asked_by else ""),
        message_id=None if stored is None else stored.message_id,
    )


async def decode(message: StreamMessage[Any]) -> Any:
    """The body by its content type: JSON, text or bytes."""
    return decode_message(message)
