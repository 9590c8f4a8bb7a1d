"""The statuses of gRPC, and the error that carries one. Pure.

Source: gRPC's "Status codes and their use in gRPC", and "gRPC over HTTP2" for how a text is sent.
"""

from __future__ import annotations

from enum import IntEnum

from sprocket.base.errors import SprocketError
from sprocket.proxy.http2.header_blocks import literal

#: Bytes of a `grpc-message` that are sent as they are; all others are percent-encoded.
_AS_THEY_ARE = frozenset(range(0x20, 0x7F)) - {ord("%")}
#: A longer text is cut, bytes: a client bounds its headers at 8 KiB.
TEXT_BYTES_MAX = 1024


class GrpcStatus(IntEnum):
    """How a call ended."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class GrpcError(SprocketError):
    """Ends a call with a status.

    Attributes:
        status: why.
        text: the same in words, for the client.
    """

    def __init__(self, status: GrpcStatus, text: str) -> None:
        super().__init__(f"{status.name}: {text}")
        self.status = status
        self.text = text


#: The end of a call that went well: `grpc-status: 0`.
OK_TRAILERS = literal(b"grpc-status", b"0")


def trailers_of(status: GrpcStatus, text: str = "") -> bytes:
    """The header block that ends a call."""
    block = literal(b"grpc-status", b"%d" % status)
    return block + literal(b"grpc-message", percent_encoded(text)) if text else block


def percent_encoded(text: str) -> bytes:
    """A text as the value of `grpc-message`."""
    raw = text.encode("utf-8", "replace")[:TEXT_BYTES_MAX]
    if all(each in _AS_THEY_ARE for each in raw):
        return raw
    return b"".join(bytes((each,)) if each in _AS_THEY_ARE else b"%%%02X" % each for each in raw)
