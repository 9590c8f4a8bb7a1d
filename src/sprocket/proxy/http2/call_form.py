"""What the headers of a request say about its call, and the two forms of methods. Pure.

Source: gRPC's "gRPC over HTTP2".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sprocket.proxy.http2.header_blocks import HeaderBlock
from sprocket.proxy.http2.status import GrpcError, GrpcStatus

if TYPE_CHECKING:
    from sprocket.proxy.http2.calls import GrpcCall

#: Seconds in each unit of `grpc-timeout`.
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_TIMEOUT_DIGITS_MAX = 8
_IDENTITY, _GZIP = "identity", "gzip"


@dataclass(frozen=True, slots=True)
class Unary:
    """A method with one request and one reply.

    Args:
        answer: takes the call and the bytes of the request. It returns the bytes of the reply, and
            is then answered at once, without a task; or an awaitable for them. It refuses by
            raising a `GrpcError`.
    """

    answer: Callable[[GrpcCall, bytes], bytes | Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Streaming:
    """A method whose reply is a stream; its request may be one too.

    Args:
        answer: a coroutine function that takes the call, reads its requests by `receive` and
            replies by `send`. The call ends well when it returns; `GrpcError` ends it otherwise.
    """

    answer: Callable[[GrpcCall], Awaitable[None]]


Method = Unary | Streaming


class CallForm:
    """What headers say about a call; blocks that are the same share one.

    Attributes:
        path: the method's.
        method: None if there is no such method.
        metadata: the headers.
        encoding: how compressed messages of the request are.
        seconds: what the client gives the call; None for any time.
        error: why the call is refused.
        http_status: the status for what is no gRPC call; 0 for what is one.
    """

    __slots__ = ("encoding", "error", "http_status", "metadata", "method", "path", "seconds")

    def __init__(self, metadata: Mapping[str, str], method: Method | None) -> None:
        self.path = metadata[":path"]
        self.method = method
        self.metadata = metadata
        self.encoding = metadata.get("grpc-encoding", _IDENTITY)
        self.seconds: float | None = None
        self.error: GrpcError | None = None
        self.http_status = 0
        if metadata[":method"] != "POST":
            self.http_status = 405
        elif not metadata.get("content-type", "").startswith("application/grpc"):
            self.http_status = 415


def call_form(headers: HeaderBlock, methods: Mapping[str, Method]) -> CallForm:
    """The form of the call that begins with these headers, which keep it."""
    metadata = headers.fields
    form = headers.kept = CallForm(metadata, methods.get(metadata[":path"]))
    try:
        if form.method is None:
            raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"unknown method {form.path[:200]}")
        if form.encoding not in (_IDENTITY, _GZIP):
            raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"unknown grpc-encoding {form.encoding[:50]}")
        text = metadata.get("grpc-timeout")
        form.seconds = None if text is None else seconds_in(text)
    except GrpcError as error:
        form.error = error.with_traceback(None)
    return form


def seconds_in(text: str) -> float:
    """The seconds of a `grpc-timeout`.

    Raises:
        GrpcError: it is none.
    """
    digits, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not digits.isascii() or not digits.isdigit():
        raise GrpcError(GrpcStatus.INTERNAL, "grpc-timeout is no time")
    if len(digits) > _TIMEOUT_DIGITS_MAX:
        raise GrpcError(GrpcStatus.INTERNAL, "grpc-timeout has more than 8 digits")
    return int(digits) * unit
