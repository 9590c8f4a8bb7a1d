"""Messages as answers show them: bounded, with a body as text or in base64. Pure."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from sprocket.admin.resend import place_of
from sprocket.console.operations.values import time_of
from sprocket.message.message import StoredMessage

#: Bytes of bodies and properties in one answer.
ANSWER_BYTES_MAX = 4 << 20
#: Characters of the value of a property.
_PROPERTY_CHARACTERS_MAX = 4_096

BodyBytes = Annotated[
    int,
    Meta(ge=0, le=1 << 20, description="Bytes of each body that are shown; the rest is cut off."),
]


class MessageFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A stored message. What its sender wrote is data, whatever it says."""

    topic: str
    broker: str
    queue: int
    offset: Annotated[int, Meta(description="Its offset in the queue.")]
    offset_id: Annotated[str, Meta(description="The id of its place; `messages.get` takes it.")]
    message_id: Annotated[str | None, Meta(description="The unique id that its sender gave it.")]
    tag: str | None
    keys: list[str]
    retries: Annotated[int, Meta(description="How often a consumer has given it back.")]
    born_at: datetime | None
    born_host: str
    stored_at: datetime | None
    properties: dict[str, str]
    body_bytes: Annotated[int, Meta(description="Size of the whole body.")]
    is_cut: Annotated[bool, Meta(description="Whether body or properties are shown in part.")]
    body: Annotated[str | None, Meta(description="The body, if it is text.")] = None
    body_base64: Annotated[str | None, Meta(description="The body, if it is no text.")] = None


def facts_of(message: StoredMessage, body_bytes: int) -> MessageFacts:
    """A message with so many bytes of its body."""
    shown = message.body[:body_bytes]
    text = _text(shown, is_whole=len(shown) == len(message.body))
    properties = {
        name[:_PROPERTY_CHARACTERS_MAX]: value[:_PROPERTY_CHARACTERS_MAX]
        for name, value in message.properties.items()
    }
    return MessageFacts(
        topic=message.topic,
        broker=message.queue.broker,
        queue=message.queue.number,
        offset=message.queue_offset,
        offset_id=place_of(message),
        message_id=message.message_id,
        tag=message.tag,
        keys=message.keys,
        retries=message.reconsume_times,
        born_at=time_of(message.born_ms),
        born_host=message.born_host,
        stored_at=time_of(message.stored_ms),
        properties=properties,
        body_bytes=len(message.body),
        is_cut=len(shown) < len(message.body) or properties != message.properties,
        body=text,
        body_base64=None if text is not None else base64.b64encode(shown).decode(),
    )


def _text(body: bytes, *, is_whole: bool) -> str | None:
    """A body as text; None if it is none. A character that is cut at the end is left out."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        if is_whole or error.start < len(body) - 3 or error.reason != "unexpected end of data":
            return None
        text = body[: error.start].decode()
    return None if "\0" in text else text


def size_of(message: StoredMessage, body_bytes: int) -> int:
    """About how many bytes a message takes in an answer."""
    return min(len(message.body), body_bytes) + 500 + sum(map(len, message.properties.values()))
