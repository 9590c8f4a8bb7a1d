"""What all codecs of bodies have in common. Pure."""

from __future__ import annotations

from typing import Any, Protocol

#: How deep values may be nested. Protobuf's library has the same limit; decoders in C would end the
#: process long before Python's own limit.
DEPTH_MAX = 100

#: The property that says of what kind a body is, as Spring's and RocketMQ's clients name it.
CONTENT_TYPE = "contentType"


class BodyCodec(Protocol):
    """Decodes bodies to plain Python values, and encodes these."""

    @property
    def content_type(self) -> str:
        """The media type of bodies."""
        ...

    def decode(self, body: bytes) -> Any:
        """The value in a body: a dict for a record, a list for an array, and plain values.

        Raises:
            BodyMismatch: the body does not fit the schema.
            RegistryUnavailable: its schema has to be fetched, and cannot be.
        """
        ...

    def encode(self, value: Any) -> bytes:
        """The body of a value.

        Raises:
            BodyMismatch: the value does not fit the schema.
            RegistryUnavailable: its schema has to be fetched, and cannot be.
        """
        ...

    async def prepare(self, body: bytes | None) -> None:
        """Fetches what `decode` needs for this body, or `encode` if None, off the event loop.

        Raises:
            RegistryUnavailable: the registry does not answer.
        """
        ...
