"""One connection of a gRPC server: `connection` with a socket, and the calls of its streams.

It promises: calls of unary methods that are answered at once are no tasks, and their replies leave
in one write for a read; nothing that a client sends can end more than its own connection; and
however many calls one client makes at once, the others get their turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from sprocket.base.deadline import Deadline
from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.calls import GrpcCall, Method, Unary, deadline_after, ending_of
from sprocket.proxy.http2.connection import Http2Connection, Http2Limits
from sprocket.proxy.http2.header_blocks import REPLY_HEAD, HeaderPair, status_head
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.messages_in import (
    PREFIX,
    PREFIX_BYTES,
    MessageReader,
    check_size,
    metadata_of,
    timeout_of,
    with_prefix,
)
from sprocket.proxy.http2.status import OK_TRAILERS, GrpcError, GrpcStatus, trailers_of
from sprocket.proxy.http2.stream import Http2Stream
from sprocket.remoting import address
from sprocket.remoting.turns import Turns
from sprocket.remoting.unfinished import COUNTED_BYTES_MIN, UnfinishedFrames

logger = logging.getLogger(__name__)

#: Frames between two looks at the clock.
_FRAMES_A_STEP = 32
#: The most bytes of data that are made into frames for one write.
_WRITE_BYTES = 1 << 18


class GrpcPeer(asyncio.Protocol):
    """A client.

    Args:
        methods: what it may call, by path.
        limits: the limits of its connection.
        turns: shares the loop between the clients.
        unfinished: bounds the incomplete messages of all clients.
        on_close: is called when the connection is gone.

    Attributes:
        address: `host:port` of the client.
        has_spoken: set whenever data arrives; cleared by those that look for silent clients.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        limits: GrpcLimits,
        *,
        turns: Turns,
        unfinished: UnfinishedFrames,
        on_close: Callable[[GrpcPeer], None],
    ) -> None:
        self._methods = methods
        self._limits = limits
        self._turns = turns
        self._unfinished = unfinished
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        self._http = Http2Connection(
            self,
            Http2Limits(
                streams_max=limits.streams_max,
                stream_window_bytes=limits.stream_window_bytes,
                connection_window_bytes=limits.connection_window_bytes,
                headers_bytes_max=limits.headers_bytes_max,
            ),
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._kept_bytes = 0
        self._is_full = False
        self._is_in_line = False
        self._is_reading = True
        self._is_flush_due = False
        self._is_draining = False
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.address = ""
        self.has_spoken = True

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes over the new connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.unwritten_bytes_max)
        self.address = address.of_socket(transport.get_extra_info("peername"))
        self._first_timer = self._loop.call_later(self._limits.first_seconds, self._no_settings)
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Handles received bytes; what takes too long waits for its turn."""
        self.has_spoken = True
        self._http.receive(data)
        if self._is_in_line:
            return
        if self._turns.is_over:
            self._wait_for_turn()
            return
        began = self._loop.time()
        more = self._handle(began + 0.002)
        self._turns.spend(self._loop.time() - began)
        if more:
            self._wait_for_turn()

    def take_turn(self, until: float) -> bool:
        """Handles more frames; see `turns.Waiting`."""
        if self.is_closed:
            self._is_in_line = False
            return False
        self._is_in_line = self._handle(until)
        if not self._is_in_line:
            self._read_or_wait()
        return self._is_in_line

    def _wait_for_turn(self) -> None:
        self._is_in_line = True
        self._turns.join(self)
        self._read_or_wait()

    def _handle(self, until: float) -> bool:
        """Handles frames until a loop time. Returns whether there are more."""
        http, clock = self._http, self._loop.time
        while (more := http.step(_FRAMES_A_STEP)) and clock() < until:
            pass
        self._flush()
        if http.fault is not None and not self.is_closed:
            logger.info("%s is let go, it broke the protocol: %s", self.address, http.fault)
            self._cancel_calls()
            self._transport.close()
            return False
        return more

    def connection_lost(self, error: Exception | None) -> None:
        """Cancels the client's calls."""
        self._first_timer.cancel()
        self._closed.set_result(None)
        self._cancel_calls()
        self._unfinished.forget(self)
        self._http.end(wire.NO_ERROR, "the connection is lost")
        self._on_close(self)

    def _cancel_calls(self) -> None:
        for stream in self._http.streams.values():
            if stream.call is not None:
                stream.call.end()
        self._http.streams.clear()

    def pause_writing(self) -> None:
        """The client has too much unread data."""
        self._is_full = True
        self._read_or_wait()

    def resume_writing(self) -> None:
        """The client has read enough."""
        self._is_full = False
        self._flush()
        self._read_or_wait()

    def _read_or_wait(self) -> None:
        has_room = not self._is_full and not self._is_in_line
        if has_room != self._is_reading and not self.is_closed:
            self._is_reading = has_room
            if has_room:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _no_settings(self) -> None:
        if not self._http.has_settings:
            logger.info("%s is let go: it has not begun HTTP/2", self.address)
            self._transport.abort()

    # What the connection calls.

    def opened(self, stream: Http2Stream, headers: Sequence[HeaderPair]) -> None:
        """A call begins."""
        metadata = metadata_of(headers)
        path = metadata[":path"]
        if metadata[":method"] != "POST":
            self._http.out.send_end(stream, status_head(405))
            return
        if not metadata.get("content-type", "").startswith("application/grpc"):
            self._http.out.send_end(stream, status_head(415))
            return
        method = self._methods.get(path)
        call = GrpcCall(self, stream, path, metadata, Deadline.never())
        try:
            if method is None:
                raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"unknown method {path[:200]}")
            encoding = metadata.get("grpc-encoding", "identity")
            if encoding not in ("identity", "gzip"):
                raise GrpcError(GrpcStatus.UNIMPLEMENTED, f"unknown grpc-encoding {encoding[:50]}")
            call.deadline = deadline_after(timeout_of(metadata), self._loop.time())
        except GrpcError as error:
            self._end(call, error.status, error.text)
            return
        stream.call = call
        if isinstance(method, Unary):
            if stream.is_peer_done:
                self.received(stream, b"")
        else:
            call.reader = MessageReader(encoding, self._limits.message_bytes_max)
            self._start(call, method.answer(call))

    def received(self, stream: Http2Stream, data: bytes) -> None:
        """A part of a request."""
        call: GrpcCall | None = stream.call
        if call is None:
            return
        method = self._methods[call.method]
        try:
            if isinstance(method, Unary):
                self._received_unary(call, method, data)
            else:
                self._received_streamed(call, data)
        except GrpcError as error:
            self._end(call, error.status, error.text)

    def _received_unary(self, call: GrpcCall, method: Unary, data: bytes) -> None:
        stream = call.stream
        if call.reader is None and stream.is_peer_done and len(data) >= PREFIX_BYTES:
            flag, size = PREFIX.unpack_from(data)
            if flag == 0 and size == len(data) - PREFIX_BYTES:  # the whole call in one frame
                check_size(size, self._limits.message_bytes_max)
                self._answer(call, method, data[PREFIX_BYTES:])
                return
        if call.reader is None:
            encoding = call.metadata.get("grpc-encoding", "identity")
            call.reader = MessageReader(encoding, self._limits.message_bytes_max)
        self._read_messages(call, data)
        if len(call.requests) > 1:
            raise GrpcError(GrpcStatus.INTERNAL, "a second message for a method that takes one")
        self._http.credit(stream, len(data))
        if stream.is_peer_done:
            if not call.requests:
                raise GrpcError(GrpcStatus.INTERNAL, "no message for a method that takes one")
            self._answer(call, method, call.requests.popleft())

    def _received_streamed(self, call: GrpcCall, data: bytes) -> None:
        call.unread_bytes += len(data)
        self._read_messages(call, data)
        self.was_read(call)
        if call.requests or call.stream.is_peer_done:
            call.changed()

    def _read_messages(self, call: GrpcCall, data: bytes) -> None:
        reader = call.reader
        assert reader is not None
        before = reader.kept_bytes
        call.requests += reader.receive(data)
        self._keep(reader.kept_bytes - before)
        if call.stream.is_peer_done and not reader.is_between:
            raise GrpcError(GrpcStatus.INTERNAL, "the request ends in the middle of a message")

    def _keep(self, more: int) -> None:
        """Counts bytes of incomplete messages."""
        before, self._kept_bytes = self._kept_bytes, self._kept_bytes + more
        if before >= COUNTED_BYTES_MIN or self._kept_bytes >= COUNTED_BYTES_MIN:
            self._unfinished.note(self, self._kept_bytes)

    def was_reset(self, stream: Http2Stream) -> None:
        """A call was cancelled."""
        if stream.call is not None:
            self._forget(stream.call)

    def has_room(self, stream: Http2Stream) -> None:
        """What a call sent was taken."""
        if stream.call is not None:
            stream.call.changed()

    # Answers.

    def _answer(self, call: GrpcCall, method: Unary, request: bytes) -> None:
        try:
            result = method.answer(call, request)
        except Exception as error:  # one call must not affect the others
            self._failed(call, error)
            return
        if isinstance(result, bytes):
            self._reply(call, result)
        else:
            self._start(call, self._answer_later(call, result))

    async def _answer_later(self, call: GrpcCall, result: Awaitable[bytes]) -> None:
        reply = await result
        if not call.is_over:
            self._reply(call, reply)

    def _reply(self, call: GrpcCall, reply: bytes) -> None:
        self._http.out.reply(call.stream, REPLY_HEAD, with_prefix(reply), OK_TRAILERS)
        self._forget(call)
        self._flush_soon()

    def _start(self, call: GrpcCall, work: Awaitable[None]) -> None:
        call.task = task = self._loop.create_task(self._run(call, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if not call.deadline.is_never:
            call.timer = self._loop.call_at(call.deadline.at, self._too_late, call)

    async def _run(self, call: GrpcCall, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:  # one call must not affect the others
            self._failed(call, error)
        else:
            if not call.is_over:
                self._end(call, GrpcStatus.OK)

    def _failed(self, call: GrpcCall, error: Exception) -> None:
        if not isinstance(error, GrpcError):
            logger.error("%s could not be answered", call.method, exc_info=error)
        if not call.is_over:
            self._end(call, *ending_of(error))

    def _too_late(self, call: GrpcCall) -> None:
        call.timer = None
        if not call.is_over:
            self._end(call, GrpcStatus.DEADLINE_EXCEEDED, "the deadline has passed")

    def _end(self, call: GrpcCall, status: GrpcStatus, text: str = "") -> None:
        """Ends a call with its trailers."""
        block = OK_TRAILERS if status == GrpcStatus.OK else trailers_of(status, text)
        if not call.has_headers:  # a reply that is nothing but its end
            block = REPLY_HEAD + block
        self._forget(call)
        self._http.out.send_end(call.stream, block)
        self._flush_soon()

    def _forget(self, call: GrpcCall) -> None:
        if call.reader is not None and call.reader.kept_bytes:
            self._keep(-call.reader.kept_bytes)
        call.reader = None
        call.stream.call = None
        call.end()

    def send_message(self, call: GrpcCall, message: bytes) -> None:
        """Sends a message of a call."""
        out = self._http.out
        if not call.has_headers:
            call.has_headers = True
            out.send_headers(call.stream, REPLY_HEAD)
        out.send_data(call.stream, PREFIX.pack(0, len(message)), message)
        self._flush_soon()

    def was_read(self, call: GrpcCall) -> None:
        """The method has read a message: the client may send more once it has read all."""
        if not call.requests and call.unread_bytes:
            self._http.credit(call.stream, call.unread_bytes)
            call.unread_bytes = 0
            self._flush_soon()

    # Bytes out.

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Writes what there is, until the client has too much unread data."""
        self._is_flush_due = False
        out = self._http.out
        while not self.is_closed:
            if out.has_data and not self._is_full:
                out.pump(_WRITE_BYTES)
            if not out.frames:
                return
            frames, out.frames = out.frames, []
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
        out.frames.clear()

    # Closing.

    @property
    def is_closed(self) -> bool:
        """Whether it is closed or closing."""
        return self._closed.done() or self._transport.is_closing()

    @property
    def is_busy(self) -> bool:
        """Whether a call is not over."""
        return bool(self._http.streams)

    def calm(self) -> None:
        """Forgets what the client did that brought nothing; see `Http2Connection.calm`."""
        self._http.calm()

    def close(self) -> None:
        """Closes after writing what there is; calls are cancelled."""
        if not self.is_closed:
            self._http.end(wire.NO_ERROR, "")
            self._flush()
            self._transport.close()

    def abort(self) -> None:
        """Closes at once."""
        self._transport.abort()

    async def drain(self, deadline: Deadline) -> None:
        """Takes no more calls, lets those in progress end, and closes; aborts at the deadline."""
        self._http.drain()
        self._flush()
        while self.is_busy and not self.is_closed and deadline.left():
            await asyncio.wait([self._closed], timeout=min(0.01, deadline.left()))
        self.close()
        await self.wait_closed(deadline)

    async def wait_closed(self, deadline: Deadline) -> None:
        """Returns when the connection is closed; at the deadline it is aborted."""
        await asyncio.wait([self._closed], timeout=deadline.left())
        if not self._closed.done():
            self.abort()
            await asyncio.wait([self._closed])
