"""The calls of one connection: from its streams to the methods, and back.

It promises: a call of a unary method that is answered at once is no task; what an incomplete or
unread message takes is bounded; and a call ends once, whatever its method, its client and its
deadline do at the same time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from sprocket.base.cancelling import close_unbegun
from sprocket.base.deadline import Deadline
from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.call_form import Method, Streaming, Unary, call_form
from sprocket.proxy.http2.calls import NEVER, GrpcCall, ending_of
from sprocket.proxy.http2.connection import Http2Connection
from sprocket.proxy.http2.header_blocks import REPLY_HEAD, HeaderBlock, status_head
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.messages_in import (
    PREFIX,
    PREFIX_BYTES,
    MessageReader,
    check_size,
    with_prefix,
)
from sprocket.proxy.http2.status import OK_TRAILERS, GrpcError, GrpcStatus, trailers_of
from sprocket.proxy.http2.stream import Http2Stream
from sprocket.remoting.turns import Turns

logger = logging.getLogger(__name__)


class PeerCalls:
    """The calls of a client.

    Args:
        methods: what it may call, by path.
        limits: the limits of its connection.
        turns: shares the loop between the clients.
        address: gives its `host:port`.
        on_output: is called when there is something to write.
        on_kept: is called with the bytes of its incomplete messages when their number changes.

    Attributes:
        http: the connection.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        limits: GrpcLimits,
        *,
        turns: Turns,
        address: Callable[[], str],
        on_output: Callable[[], None],
        on_kept: Callable[[int], None],
    ) -> None:
        self._methods = methods
        self._limits = limits
        self._turns = turns
        self._on_output = on_output
        self._on_kept = on_kept
        self._loop = asyncio.get_running_loop()
        #: Tasks of calls that are not over, and of those whose cancelling takes its time.
        self._tasks: set[asyncio.Task[None]] = set()
        #: Calls with an incomplete message, the one that began first at the beginning.
        self._incomplete: dict[GrpcCall, None] = {}
        self._kept_bytes = 0
        self.address = address
        self.http = Http2Connection(self, limits)

    # What the connection calls.

    def opened(self, stream: Http2Stream, headers: HeaderBlock) -> None:
        """A call begins."""
        form = headers.kept or call_form(headers, self._methods)
        if form.http_status:
            self.http.out.send_end(stream, status_head(form.http_status))
            return
        seconds = form.seconds
        deadline = NEVER if seconds is None else Deadline(self._loop.time() + seconds)
        stream.call = call = GrpcCall(self, stream, form, deadline)
        method = form.method
        if form.error is not None:
            self._end(call, form.error.status, form.error.text)
        elif len(self._tasks) >= 2 * self._limits.streams_max:
            self._end(call, GrpcStatus.UNAVAILABLE, "too many calls that were cancelled go on")
        elif isinstance(method, Unary):
            if stream.is_peer_done:
                self.received(stream, b"")
        elif method is not None:
            call.reader = MessageReader(form.encoding, self._limits.message_bytes_max)
            self._start(call, method.answer(call))

    def received(self, stream: Http2Stream, data: bytes) -> None:
        """A part of a request."""
        call: GrpcCall | None = stream.call
        if call is None:
            return
        method = call.form.method
        try:
            if isinstance(method, Unary):
                self._received_unary(call, method, data)
            else:
                self._received_streamed(call, data)
        except GrpcError as error:
            self._end(call, error.status, error.text)

    def was_reset(self, stream: Http2Stream) -> None:
        """A call was cancelled."""
        if stream.call is not None:
            self._forget(stream.call)

    def has_room(self, stream: Http2Stream) -> None:
        """What a call sent was taken."""
        if stream.call is not None:
            stream.call.changed()

    # Requests.

    def _received_unary(self, call: GrpcCall, method: Unary, data: bytes) -> None:
        stream = call.stream
        if call.reader is None:
            if stream.is_peer_done and len(data) >= PREFIX_BYTES:
                flag, size = PREFIX.unpack_from(data)
                if flag == 0 and size == len(data) - PREFIX_BYTES:  # all of the call in one frame
                    check_size(size, self._limits.message_bytes_max)
                    self._answer(call, method, data[PREFIX_BYTES:])
                    return
            call.reader = MessageReader(call.form.encoding, self._limits.message_bytes_max)
        self._read_messages(call, data)
        if len(call.requests) > 1:
            raise GrpcError(GrpcStatus.INTERNAL, "a second message for a method that takes one")
        if stream.is_peer_done:
            if not call.requests:
                raise GrpcError(GrpcStatus.INTERNAL, "no message for a method that takes one")
            packed = call.requests.popleft()
            request = call.reader.content(packed)
            if request is not packed:
                self.http.pause()  # to open one may take as long as a hundred calls
            self._answer(call, method, request)

    def _received_streamed(self, call: GrpcCall, data: bytes) -> None:
        self._read_messages(call, data)
        if call.requests or call.stream.is_peer_done:
            call.changed()

    def _read_messages(self, call: GrpcCall, data: bytes) -> None:
        reader = call.reader
        assert reader is not None
        call.unread_bytes += len(data)
        call.requests += reader.receive(data)
        if call.kept_bytes or reader.kept_bytes:
            self._keep(call, reader.kept_bytes)
        self.was_read(call)
        if call.stream.is_peer_done and not reader.is_between:
            raise GrpcError(GrpcStatus.INTERNAL, "the request ends in the middle of a message")

    def _keep(self, call: GrpcCall, kept_bytes: int) -> None:
        """Counts the bytes of an incomplete message."""
        incomplete, more = self._incomplete, kept_bytes - call.kept_bytes
        if more < 0:  # that message is complete, or its call is over
            incomplete.pop(call, None)
        if kept_bytes:
            incomplete[call] = None
        call.kept_bytes = kept_bytes
        self._kept_bytes += more
        self._on_kept(self._kept_bytes)
        if more < 0 and incomplete:
            self.was_read(next(iter(incomplete)))

    def was_read(self, call: GrpcCall) -> None:
        """A call's messages were read: the client may send more once all of them are.

        Of many incomplete messages only the oldest goes on if they have too many bytes together;
        the others wait for it.
        """
        if call.requests or not call.unread_bytes:
            return
        is_too_much = self._kept_bytes > self._limits.message_bytes_max
        if is_too_much and call is not next(iter(self._incomplete), None):
            return
        self.http.credit(call.stream, call.unread_bytes)
        call.unread_bytes = 0
        self._on_output()

    # Replies.

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
        self.http.out.reply(call.stream, REPLY_HEAD, with_prefix(reply), OK_TRAILERS)
        self._forget(call)
        self._sent()

    def _start(self, call: GrpcCall, work: Awaitable[None]) -> None:
        call.task = task = self._loop.create_task(self._run(call, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if not call.deadline.is_never:
            call.timer = self._loop.call_at(call.deadline.at, self._too_late, call)

    async def _run(self, call: GrpcCall, work: Awaitable[None]) -> None:
        if call.is_over and isinstance(call.form.method, Streaming):
            close_unbegun(work)  # the method need not begin
            return
        try:
            while not self._turns.may_begin(self):  # noqa: ASYNC110  (others have their turns)
                await asyncio.sleep(0)
            await work
        except asyncio.CancelledError:
            close_unbegun(work)  # it was not its turn yet
            if not call.is_over:  # it was not the client, nor the deadline
                self._end(call, GrpcStatus.CANCELLED, "the call was cancelled")
            raise
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
        self.http.out.send_end(call.stream, block)
        self._on_output()

    def _forget(self, call: GrpcCall) -> None:
        call.reader = None
        call.stream.call = None
        call.end()
        if call.kept_bytes:
            self._keep(call, 0)

    def send_message(self, call: GrpcCall, message: bytes) -> None:
        """Sends a message of a call."""
        out = self.http.out
        if self.http.fault is not None:
            return
        if not call.has_headers:
            call.has_headers = True
            out.send_headers(call.stream, REPLY_HEAD)
        out.send_data(call.stream, PREFIX.pack(0, len(message)), message)
        self._sent()

    def _sent(self) -> None:
        if self.http.out.queued_bytes > self._limits.unread_bytes_max:
            self.http.end(wire.ENHANCE_YOUR_CALM, "it reads too little of what it asks for")
        self._on_output()

    # All of them.

    def cancel(self) -> None:
        """Ends all calls: the connection is gone."""
        for stream in tuple(self.http.streams.values()):
            if stream.call is not None:
                self._forget(stream.call)
        self.http.streams.clear()

    def reset_stuck(self) -> None:
        """Resets the streams that came no further since the last time: requests of unary methods
        that do not end, and replies that the client does not read.

        A streaming method may wait for its client as long as it likes.
        """
        for stream in tuple(self.http.streams.values()):
            call: GrpcCall | None = stream.call
            if call is not None and call.task is not None and not stream.queued_bytes:
                continue
            kept = 0 if call is None else call.kept_bytes
            mark = (stream.sent_bytes, kept)
            if stream.mark == mark:
                self.http.reset(stream.number, wire.CANCEL)
            stream.mark = mark
