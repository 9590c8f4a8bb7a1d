"""Several messages in the one body of a batch send.

    size 4 · magic 4 (0) · checksum 4 (0) · flag 4 · body length 4 · body
    · properties length 2 · properties

Pure. Source: MessageDecoder.encodeMessage and decodeMessage of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.message.properties import PROPERTIES_BYTES_MAX

_HEAD = struct.Struct(">iiiii")
_LENGTH = struct.Struct(">h")
_FIXED_BYTES = _HEAD.size + _LENGTH.size


class BatchedMessage(NamedTuple):
    """One message of a batch."""

    flag: int
    body: bytes | bytearray | memoryview
    #: Its properties as text, see `sprocket.message.properties`.
    properties: str


def encode(parts: Iterable[BatchedMessage]) -> bytes:
    """The body of a batch send.

    Raises:
        LocalProtocolError: the properties of one message are too long for the length field.
    """
    pieces: list[bytes | bytearray | memoryview] = []
    for flag, body, text in parts:
        properties = text.encode()
        if len(properties) > PROPERTIES_BYTES_MAX:
            raise LocalProtocolError(
                f"properties have {len(properties)} bytes, at most {PROPERTIES_BYTES_MAX} fit"
            )
        size = _FIXED_BYTES + len(body) + len(properties)
        pieces += (
            _HEAD.pack(size, 0, 0, flag, len(body)),
            body,
            _LENGTH.pack(len(properties)),
            properties,
        )
    return b"".join(pieces)


def decode(raw: bytes | bytearray | memoryview) -> list[BatchedMessage]:
    """The messages of a batch; bodies are slices of `raw`, not copies.

    The size in front of each message is ignored, as in Java: the other lengths suffice.

    Raises:
        RemoteProtocolError: the lengths contradict each other; the text contains the byte.
    """
    # The bytes come from outside: every length is checked against what is left before it is used,
    # and a negative one is refused, because as an offset it would lead backwards, without end.
    view = memoryview(raw)
    parts = []
    at, end = 0, len(view)
    while at < end:
        if end - at < _FIXED_BYTES:
            raise RemoteProtocolError(f"a batch ends inside a message that begins at byte {at}")
        _, _, _, flag, body_bytes = _HEAD.unpack_from(view, at)
        body_at = at + _HEAD.size
        tail_at = body_at + body_bytes
        if body_bytes < 0 or tail_at + _LENGTH.size > end:
            raise RemoteProtocolError(f"body length {body_bytes} in a batch at byte {at}")
        (properties_bytes,) = _LENGTH.unpack_from(view, tail_at)
        next_at = tail_at + _LENGTH.size + properties_bytes
        if properties_bytes < 0 or next_at > end:
            raise RemoteProtocolError(
                f"properties length {properties_bytes} in a batch at byte {at}"
            )
        text = str(view[next_at - properties_bytes : next_at], "utf-8", "replace")
        parts.append(BatchedMessage(flag, view[body_at:tail_at], text))
        at = next_at
    return parts
