"""The messages in the body of a gRPC request. Pure.

Source: gRPC's "gRPC over HTTP2": five bytes before each message, the first 1 if it is compressed.
"""

from __future__ import annotations

import struct
import zlib

from sprocket.proxy.http2.status import GrpcError, GrpcStatus

PREFIX = struct.Struct(">BI")
PREFIX_BYTES = 5
_WINDOW_BITS_OF_GZIP = 31


class Packed(bytes):
    """A message that is compressed."""


class MessageReader:
    """The messages of one request, compressed ones as they came: see `content`.

    What waits in its compressed form has as many bytes as were received. Opened it might have a
    thousand times as many.

    Args:
        encoding: the `grpc-encoding` of the request: how its compressed messages are.
        bytes_max: the most that a message may have, compressed or not.

    Attributes:
        kept_bytes: the bytes of the message that is not complete yet.
    """

    __slots__ = ("_bytes_max", "_encoding", "_head", "_needed", "_parts", "kept_bytes")

    def __init__(self, encoding: str, bytes_max: int) -> None:
        self._encoding = encoding
        self._bytes_max = bytes_max
        self._head = b""
        #: The bytes of the message that have not come; None while its prefix has not.
        self._needed: int | None = None
        self._parts: list[bytes] = []
        self.kept_bytes = 0

    @property
    def is_between(self) -> bool:
        """Whether no message has begun that is not complete."""
        return self._needed is None and not self._head

    def receive(self, data: bytes) -> list[bytes]:
        """The messages that these bytes complete.

        Raises:
            GrpcError: a message is too large.
        """
        found: list[bytes] = []
        at = 0
        while True:
            if self._needed is None:
                head = self._head + data[at : at + PREFIX_BYTES - len(self._head)]
                at += len(head) - len(self._head)
                self._head = head
                if len(head) < PREFIX_BYTES:
                    return found
                self._needed = self._size_in(head)
            part = data[at : at + self._needed]
            at += len(part)
            self._needed -= len(part)
            if self._needed:
                if part:
                    self._parts.append(part)
                    self.kept_bytes += len(part)
                return found
            message = b"".join((*self._parts, part)) if self._parts else part
            found.append(Packed(message) if self._head[0] else message)
            self._head, self._needed, self._parts, self.kept_bytes = b"", None, [], 0

    def _size_in(self, head: bytes) -> int:
        flag, size = PREFIX.unpack(head)
        if flag > 1:
            raise GrpcError(GrpcStatus.INTERNAL, f"a message begins with {flag}, not 0 or 1")
        check_size(size, self._bytes_max)
        return int(size)

    def content(self, message: bytes) -> bytes:
        """What a message says: it is opened if it is compressed.

        Raises:
            GrpcError: it opens to too much, is broken, or compressed in a way that is not known.
        """
        if not isinstance(message, Packed):
            return message
        return _opened(message, self._encoding, self._bytes_max)


def check_size(size: int, bytes_max: int) -> None:
    """Refuses a message that is too large.

    Raises:
        GrpcError: it is.
    """
    if size > bytes_max:
        raise GrpcError(
            GrpcStatus.RESOURCE_EXHAUSTED, f"a message of {size} bytes; {bytes_max} are allowed"
        )


def _opened(message: bytes, encoding: str, bytes_max: int) -> bytes:
    if encoding != "gzip":
        raise GrpcError(GrpcStatus.INTERNAL, "a compressed message without grpc-encoding: gzip")
    opening = zlib.decompressobj(_WINDOW_BITS_OF_GZIP)
    try:
        content = opening.decompress(message, bytes_max + 1)
    except zlib.error:
        raise GrpcError(GrpcStatus.INTERNAL, "a message's gzip is broken") from None
    if len(content) > bytes_max:
        raise GrpcError(
            GrpcStatus.RESOURCE_EXHAUSTED, f"a message opens to more than {bytes_max} bytes"
        )
    if not opening.eof:
        raise GrpcError(GrpcStatus.INTERNAL, "a message's gzip is broken off")
    return content


def with_prefix(message: bytes) -> bytes:
    """A message as it is sent."""
    return PREFIX.pack(0, len(message)) + message
