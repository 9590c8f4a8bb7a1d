"""Messages made of objects, with a codec for each topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from sprocket.base.errors import UsageError
from sprocket.message.message import Message
from sprocket.schemas.body_codec import CONTENT_TYPE, BodyCodec
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.typed_bodies import encoded

#: One codec for all topics, or one for each; others are JSON.
Codecs = BodyCodec | Mapping[str, BodyCodec] | None


class MessageAttributes(TypedDict, total=False):
    """What a message has besides its topic and its body; see `sprocket.Message`."""

    tag: str | None
    keys: Sequence[str]
    properties: Mapping[str, str]
    flag: int
    delay_level: int
    wait_stored: bool
    delay: timedelta | float | None
    deliver_at: datetime | int | None
    priority: int | None


class TypedMessages:
    """Makes messages of objects.

    Args:
        codecs: as `Codecs`.
    """

    def __init__(self, codecs: Codecs) -> None:
        self._by_topic: Mapping[str, BodyCodec] = codecs if isinstance(codecs, Mapping) else {}
        self._other = JsonBodies() if codecs is None or isinstance(codecs, Mapping) else codecs

    async def message(self, topic: Any, value: object, attributes: MessageAttributes) -> Message:
        """A message with the body of an object, and what kind of body it is in a property.

        Raises:
            UsageError: the topic is no name, or the object is bytes where JSON is sent.
            BodyMismatch: the object does not fit the topic's codec.
            RegistryUnavailable: a schema has to be fetched, and cannot be.
        """
        if not isinstance(topic, str):
            raise UsageError(f"a body goes with the name of a topic, not with {topic!r:.100}")
        codec = self._by_topic.get(topic, self._other)
        if isinstance(value, bytes | bytearray | memoryview) and isinstance(codec, JsonBodies):
            raise UsageError("bytes are a body, and no object for JSON: send Message(topic, body)")
        await codec.prepare(None)
        body = encoded(value, codec)
        message = Message(topic, body, **attributes)
        if isinstance(message.properties, Mapping):  # whoever sends it says what else it is
            message.properties = {CONTENT_TYPE: codec.content_type, **message.properties}
        return message
