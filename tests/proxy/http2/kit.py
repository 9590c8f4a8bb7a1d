"""Two clients of others' making: h2's state machine in memory, and the same on the loop.

And bytes that h2 would refuse to send.
"""

from __future__ import annotations

import asyncio
import struct
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import hpack

from sprocket.base.deadline import Deadline
from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.call_form import Method, Streaming, Unary
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.http2.connection import Http2Connection
from sprocket.proxy.http2.header_blocks import REPLY_HEAD, HeaderBlock
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.server import GrpcServer
from sprocket.proxy.http2.status import OK_TRAILERS, GrpcError, GrpcStatus
from sprocket.proxy.http2.stream import Http2Stream

HELLO = wire.PREFACE + wire.settings_frame({})
_CONFIG = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")


def request_headers(path: str = "/echo.Echo/Unary", **more: str) -> list[tuple[str, str]]:
    """The headers of a call; `grpc_timeout="1S"` is one of them."""
    return [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "here"),
        ("te", "trailers"), ("content-type", "application/grpc"),
        *((name.replace("_", "-"), value) for name, value in more.items()),
    ]  # fmt: skip


def block(headers: Sequence[tuple[str, str]]) -> bytes:
    """A header block that needs nothing of the connection."""
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    return bytes(encoder.encode(headers))


def headers_frame(
    number: int, headers: Sequence[tuple[str, str]] | None = None, *, flags: int = 4
) -> bytes:
    return wire.frame(wire.HEADERS, flags, number, block(headers or request_headers()))


def message(content: bytes, flag: int = 0) -> bytes:
    """A message as gRPC sends it."""
    return struct.pack(">BI", flag, len(content)) + content


def frames_in(data: bytes) -> list[tuple[int, int, int, bytes]]:
    """Kind, flags, stream and payload of each frame."""
    found, at = [], 0
    while at < len(data):
        high, low, kind, flags, number = wire.HEAD.unpack_from(data, at)
        end = at + wire.HEAD_BYTES + (high << 8 | low)
        assert end <= len(data), "a frame is broken off"
        found.append((kind, flags, number, data[at + wire.HEAD_BYTES : end]))
        at = end
    return found


class Recorder:
    """A user of a connection that records, and replies to a whole request with its body.

    Args:
        replies: whether it does.
        empty: the reply to a request without a body.
    """

    def __init__(
        self, limits: GrpcLimits | None = None, *, replies: bool = True, empty: bytes = b""
    ) -> None:
        self.empty = empty
        self.seen: list[tuple[Any, ...]] = []
        self.bodies: dict[int, bytes] = defaultdict(bytes)
        self.replies = replies
        self.http = Http2Connection(self, limits or GrpcLimits())

    def opened(self, stream: Http2Stream, headers: HeaderBlock) -> None:
        self.seen.append(("opened", stream.number, tuple(headers.pairs)))
        self._perhaps_reply(stream)

    def received(self, stream: Http2Stream, data: bytes) -> None:
        self.bodies[stream.number] += data
        self.http.credit(stream, len(data))
        self._perhaps_reply(stream)

    def was_reset(self, stream: Http2Stream) -> None:
        self.seen.append(("reset", stream.number))

    def has_room(self, stream: Http2Stream) -> None:
        self.seen.append(("room", stream.number))

    def _perhaps_reply(self, stream: Http2Stream) -> None:
        if stream.is_peer_done:
            self.seen.append(("done", stream.number, self.bodies[stream.number]))
            if self.replies:
                body = self.bodies[stream.number] or self.empty
                self.http.out.reply(stream, REPLY_HEAD, body, OK_TRAILERS)

    def output(self) -> bytes:
        """What is sent next."""
        out = self.http.out
        while out.has_data:
            out.pump(1 << 20)
        found, out.frames = b"".join(out.frames), []
        return found

    def feed(self, data: bytes, pieces: int = 0) -> bytes:
        """Takes bytes, in pieces of that size, and gives what is sent after each frame."""
        sent = b""
        size = pieces or max(len(data), 1)
        for at in range(0, len(data), size):
            self.http.receive(data[at : at + size])
            while self.http.step(1):
                sent += self.output()
            sent += self.output()
        return sent


def codes_in(data: bytes) -> list[tuple[str, int, int]]:
    """What of resets and GOAWAYs was sent: kind, stream, code."""
    found = []
    for kind, _, number, payload in frames_in(data):
        if kind == wire.RST_STREAM:
            found.append(("reset", number, wire.number_in(payload)))
        elif kind == wire.GOAWAY:
            found.append(("goaway", wire.number_in(payload), wire.number_in(payload, 4)))
    return found


class Reply:
    """What came of one call."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.trailers: dict[str, str] = {}
        self.data = b""
        self.reset: int | None = None
        self.is_over = False

    @property
    def status(self) -> int:
        return int(self.trailers["grpc-status"])

    @property
    def messages(self) -> list[bytes]:
        found, at = [], 0
        while at < len(self.data):
            flag, size = struct.unpack_from(">BI", self.data, at)
            assert flag == 0
            found.append(self.data[at + 5 : at + 5 + size])
            at += 5 + size
        return found


class Client(asyncio.Protocol):
    """h2 on the loop. `reads` off: it takes no data, so its windows stay as they are."""

    def __init__(self, *, reads: bool = True) -> None:
        self.h2 = h2.connection.H2Connection(_CONFIG)
        self.reads = reads
        self.replies: dict[int, Reply] = defaultdict(Reply)
        self.goaways: list[int] = []
        self.pings = 0
        self.is_lost = False
        self._rest = b""
        self._changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport: Any = transport
        self.h2.initiate_connection()
        self.flush()

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while len(self._rest) >= wire.HEAD_BYTES:
            high, low, kind, _, _ = wire.HEAD.unpack_from(self._rest)
            end = wire.HEAD_BYTES + (high << 8 | low)
            if len(self._rest) < end:
                break
            frame, self._rest = self._rest[:end], self._rest[end:]
            if kind == wire.GOAWAY:  # h2 takes nothing after it, not even the replies that follow
                self.goaways.append(wire.number_in(frame, 13))
                continue
            for event in self.h2.receive_data(frame):
                self._take(event)
        self.flush()
        self._changed.set()

    def _take(self, event: Any) -> None:
        if isinstance(event, h2.events.PingReceived):
            self.pings += 1
        number = getattr(event, "stream_id", None)
        if not number:
            return
        reply = self.replies[number]
        match event:
            case h2.events.ResponseReceived():
                reply.headers = dict(event.headers or ())
                reply.trailers = reply.headers
            case h2.events.TrailersReceived():
                reply.trailers = dict(event.headers or ())
            case h2.events.DataReceived():
                reply.data += event.data or b""
                if self.reads:
                    self.h2.acknowledge_received_data(event.flow_controlled_length or 0, number)
            case h2.events.StreamReset():
                reply.reset, reply.is_over = int(event.error_code), True
            case h2.events.StreamEnded():
                reply.is_over = True

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._changed.set()

    def flush(self) -> None:
        self.transport.write(self.h2.data_to_send())

    def start(self, path: str = "/echo.Echo/Unary", *, ends: bool = False, **more: str) -> int:
        """Begins a call."""
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, request_headers(path, **more), end_stream=ends)
        self.flush()
        return number

    def send(self, number: int, data: bytes, *, ends: bool = False) -> None:
        """Sends data, as much as the windows allow, which must be all of it."""
        size = self.h2.max_outbound_frame_size
        parts = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
        for part in parts:
            self.h2.send_data(number, part, end_stream=ends and part is parts[-1])
        self.flush()

    async def wait(self, condition: Any) -> None:
        """Returns once it is true, or the connection is lost."""
        while not condition() and not self.is_lost:
            self._changed.clear()
            await self._changed.wait()

    async def call(
        self, path: str = "/echo.Echo/Unary", data: bytes | None = None, **more: str
    ) -> Reply:
        """One whole call."""
        number = self.start(path, **more)
        self.send(number, message(b"hello") if data is None else data, ends=True)
        return await self.over(number)

    async def over(self, number: int) -> Reply:
        """The reply of a call, once it is over."""
        reply = self.replies[number]
        await self.wait(lambda: reply.is_over)
        return reply


class Methods:
    """A service for tests."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.calls: list[GrpcCall] = []
        self.go = asyncio.Event()

    def table(self) -> Mapping[str, Method]:
        return {
            "/echo.Echo/Unary": Unary(lambda call, request: request),
            "/echo.Echo/Wait": Unary(self._wait),
            "/echo.Echo/Refuse": Unary(self._refuse),
            "/echo.Echo/Fail": Unary(self._fail),
            "/echo.Echo/Stream": Streaming(self._stream),
            "/echo.Echo/Both": Streaming(self._both),
            "/echo.Echo/Hang": Streaming(self._hang),
        }

    async def _wait(self, call: GrpcCall, request: bytes) -> bytes:
        self.calls.append(call)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(call.method)
            raise
        return request

    def _refuse(self, call: GrpcCall, request: bytes) -> bytes:
        raise GrpcError(GrpcStatus.PERMISSION_DENIED, "not for you, 100 %\nünd so")

    def _fail(self, call: GrpcCall, request: bytes) -> bytes:
        raise LookupError("bad luck")

    async def _stream(self, call: GrpcCall) -> None:
        self.calls.append(call)
        request = await call.receive()
        assert request is not None
        for _ in range(int(call.metadata.get("x-count", "32"))):
            call.send(request)
            await call.drained()

    async def _both(self, call: GrpcCall) -> None:
        self.calls.append(call)
        while (request := await call.receive()) is not None:
            call.send(request)
            await call.drained()

    async def _hang(self, call: GrpcCall) -> None:
        self.calls.append(call)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.append(call.method)
            raise


@asynccontextmanager
async def serving(
    methods: Methods, limits: GrpcLimits | None = None, **settings: Any
) -> AsyncIterator[GrpcServer]:
    async with GrpcServer(methods.table(), limits=limits, **settings) as server:
        yield server


async def connect(server: GrpcServer, *, reads: bool = True) -> Client:
    """A client of a server."""
    client: Client
    _, client = await asyncio.get_running_loop().create_connection(
        lambda: Client(reads=reads), "127.0.0.1", server.port
    )
    return client


async def until(condition: Callable[[], bool]) -> None:
    """Returns once it is true."""
    deadline = Deadline.after(100)
    while not condition():
        assert deadline.left(), "it has not come to this"
        await asyncio.sleep(0.01)
