"""One connection: `protocol.connection` with a socket.

It promises: the requests of one read are handled together, and their replies leave in one write; a
request that needs no waiting never becomes a task; nothing that the peer sends can end more than
its own connection; unread replies take bounded memory; and however many requests one peer sends at
once, the others get their turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ConnectionLost, RemoteProtocolError
from sprocket.protocol.command import JSON, RESPONSE, Buffer, Command, Header, Reply
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.signing import Signer
from sprocket.remoting import address
from sprocket.remoting.calls import Calls
from sprocket.remoting.endpoints import BatchEndpoint, Response, error_reply, frame_of
from sprocket.remoting.limits import ConnectionLimits

logger = logging.getLogger(__name__)

#: This many requests are handled before the clock is read,
_TOGETHER_MAX = 64
#: and the loop is left to others after this time, in seconds.
_TURN_SECONDS = 0.002
#: Up to this size joining is cheaper than `writelines`. Measured in decision 9: 32 records of 256 B
#: apart cost 1,675 µs of CPU a MiB when joined, 2,735 µs as parts.
_JOINED_BYTES_MAX = 1 << 15
#: Parts smaller than this on average are always joined.
_PART_BYTES_MIN = 1 << 12


class Peer(asyncio.Protocol):
    """The other side of one connection.

    Args:
        endpoint: handles its requests.
        limits: the limits of the connection.
        is_client: whether it connected to us. Then its requests wait while it reads no replies.
        serialization: that of our own requests; a reply has that of its request.
        signer: signs our own requests.

    Attributes:
        address: `host:port` of the peer.
        has_spoken: set whenever data arrives; cleared by those that check for silent peers.
    """

    def __init__(
        self,
        endpoint: BatchEndpoint,
        limits: ConnectionLimits,
        *,
        is_client: bool,
        serialization: int = JSON,
        signer: Signer | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._is_client = is_client
        self._serialization = serialization
        self._signer = signer
        self._incoming = Connection(limits.frame_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._on_close: list[Callable[[Peer], None]] = []
        #: Frames to write before this turn of the loop ends.
        self._outgoing: list[Buffer] = []
        self._is_flush_due = False
        self._calls = Calls(self._loop, on_overdue=None if is_client else self._overdue)
        #: The peer's requests that wait for something.
        self._tasks: set[asyncio.Task[None]] = set()
        #: Received requests that are handled in a later turn of the loop.
        self._put_off: Sequence[Command] = ()
        self._is_full = False
        self._is_reading = True
        self._is_draining = False
        self._room = asyncio.Event()
        self._takes_parts = False
        self.address = ""
        self.has_spoken = True
        #: When the first call timed out since data arrived.
        self._silent_since = 0.0

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes over the new connection."""
        self._transport = cast(asyncio.Transport, transport)
        # asyncio's `writelines` does not pause the protocol in Python 3.12.0 to 3.12.8, 3.13.0 and
        # 3.13.1, so that its buffer has no bound. uvloop's transports are of another class.
        self._takes_parts = not isinstance(transport, asyncio.Transport)
        self._transport.set_write_buffer_limits(high=self._limits.unwritten_bytes_max)
        self.address = address.of_socket(transport.get_extra_info("peername"))
        self._calls.connected(self.address)

    def data_received(self, data: bytes) -> None:
        """Handles received bytes: part of a frame, or dozens of frames."""
        # The requests of one read are handled together: that took a send from 9.1 to 6.5 µs of CPU
        # (decision 10). Replies to our calls come first, since their callers wait. After a broken
        # frame the good ones before it still get their replies.
        self.has_spoken = True
        incoming = self._incoming
        try:
            commands = incoming.receive(data)
        except RemoteProtocolError:
            commands = []
        requests = []
        for command in commands:
            if command.flag & RESPONSE:
                self._settle(command)
            else:
                requests.append(command)
        if self._put_off:
            self._put_off = [*self._put_off, *requests]
        elif requests:
            self._take(requests)
        if self._outgoing:
            self._flush()
        if incoming.fault is not None and not self.is_closed:
            logger.info("%s is let go, it broke the protocol: %s", self.address, incoming.fault)
            self._catch_up()
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Cleans up after the connection: calls fail, the peer's requests are cancelled."""
        self._closed.set_result(None)
        self._calls.fail(ConnectionLost(f"the connection to {self.address} broke"))
        for task in tuple(self._tasks):
            task.cancel()
        self._put_off = ()
        self._outgoing.clear()
        self._room.set()
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback(self)

    def pause_writing(self) -> None:
        """Called when the peer has too much unread data."""
        self._is_full = True
        self._room.clear()
        self._read_or_wait()

    def resume_writing(self) -> None:
        """Called when the peer has read enough."""
        self._is_full = False
        self._room.set()
        self._read_or_wait()

    # The peer's requests.

    def _take(self, requests: Sequence[Command]) -> None:
        """Handles requests in their order; those over the time limit wait for the next turn."""
        turn_ends = self._loop.time() + _TURN_SECONDS
        for at in range(0, len(requests), _TOGETHER_MAX):
            if at and self._loop.time() >= turn_ends:
                self._put_off = requests[at:]
                self._read_or_wait()
                self._loop.call_soon(self._go_on)
                return
            self._answer(requests[at : at + _TOGETHER_MAX])

    def _go_on(self) -> None:
        requests, self._put_off = self._put_off, ()
        self._take(requests)
        self._flush()
        self._read_or_wait()

    def _catch_up(self) -> None:
        """Handles postponed requests now, since the connection is about to close."""
        requests, self._put_off = self._put_off, ()
        self._answer(requests)
        self._flush()

    def _answer(self, requests: Sequence[Command]) -> None:
        try:
            outcomes = self._endpoint(requests, self)
        except Exception as error:  # an error in a request must not end the connection
            outcomes = [error_reply(command, error) for command in requests]
        put = self._outgoing.append
        for command, outcome in zip(requests, outcomes, strict=True):
            if type(outcome) is bytes:
                put(outcome)
            elif type(outcome) is Reply:
                self._outgoing += frame_of(command, outcome)
            elif outcome is not None:
                self._start(command, outcome)  # type: ignore[arg-type]

    def _start(self, command: Command, awaitable: Awaitable[Response]) -> None:
        task = self._loop.create_task(self._finish(command, awaitable))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        if len(self._tasks) >= self._limits.tasks_max:
            self._read_or_wait()

    async def _finish(self, command: Command, awaitable: Awaitable[Response]) -> None:
        try:
            answered = await awaitable
        except Exception as error:  # root of a task
            answered = error_reply(command, error)
        while self._is_full and not self._closed.done():
            await self._room.wait()
        if isinstance(answered, Reply):
            self._send(frame_of(command, answered))
        elif answered is not None:
            self._send([answered])

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._is_reading:
            self._read_or_wait()

    def _read_or_wait(self) -> None:
        """Pauses reading while too many requests or replies are pending; resumes it afterwards."""
        is_unread = self._is_full and self._is_client
        is_behind = self._put_off or len(self._tasks) >= self._limits.tasks_max
        has_room = not is_unread and not is_behind
        if has_room == self._is_reading or self._is_draining or self.is_closed:
            return
        self._is_reading = has_room
        if has_room:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Our requests.

    async def call(self, header: Header, *, body: Buffer = b"", deadline: Deadline) -> Command:
        """Sends a request and returns the reply, whatever its code.

        Raises:
            CallTimeout: no reply in time. The request may have been carried out.
            ConnectionLost: the connection broke. The request may have been carried out.
            LocalProtocolError: the request cannot be encoded.
        """
        calls = self._calls
        if self._is_full or len(calls) >= self._limits.calls_max or self._closed.done():
            await self.wait_for_capacity(deadline)
        if deadline.at <= self._loop.time():
            raise CallTimeout(f"no time left to ask {self.address}")
        number = calls.next_number()
        frame = encode_request(
            header,
            number,
            body=body,
            serialization=self._serialization,
            signer=self._signer,
        )
        future = calls.add(number, deadline.at)
        self._send(frame)
        try:
            return await future
        except asyncio.CancelledError:
            calls.forget(number)
            raise

    def number_of_call(self) -> int | None:
        """A number for `call_written` on an open connection; None if a request must wait."""
        calls = self._calls
        if self._is_full or len(calls) >= self._limits.calls_max:
            return None
        return calls.next_number()

    async def call_written(
        self, number: int, head: bytes, body: Buffer, deadline: Deadline
    ) -> Command:
        """The same as `call` for an encoded request.

        Args:
            number: the last result of `number_of_call`, which the head contains.
            head: all of the frame before the body.
        """
        future = self._calls.add(number, deadline.at)
        self._send([head, body])
        try:
            return await future
        except asyncio.CancelledError:
            self._calls.forget(number)
            raise

    def send_oneway(self, header: Header, *, body: Buffer = b"") -> None:
        """Sends a request without a reply. It is dropped if the peer does not read.

        Raises:
            LocalProtocolError: the request cannot be encoded.
        """
        if self._is_full or self.is_closed:
            return
        self._send(
            encode_request(
                header,
                self._calls.next_number(),
                body=body,
                is_oneway=True,
                serialization=self._serialization,
                signer=self._signer,
            )
        )

    def _settle(self, reply: Command) -> None:
        """Completes the call that a reply belongs to; a late reply is ignored."""
        if self._calls.settle(reply) and not self._is_full:
            self._room.set()

    def _overdue(self) -> None:
        """Called after timeouts. If nothing has arrived for long, the connection is dead."""
        if self.has_spoken:
            self.has_spoken, self._silent_since = False, self._loop.time()
        elif self._loop.time() - self._silent_since >= self._limits.silent_seconds:
            logger.info("%s has been silent for too long and is let go", self.address)
            self.abort()

    async def wait_for_capacity(self, deadline: Deadline) -> None:
        """Returns when one more request may be sent.

        Raises:
            CallTimeout: the peer does not read, or does not reply, in time.
            ConnectionLost: the connection is closed.
        """
        while not self._closed.done():
            if not self._is_full and len(self._calls) < self._limits.calls_max:
                return
            self._room.clear()
            try:
                async with asyncio.timeout_at(None if deadline.is_never else deadline.at):
                    await self._room.wait()
            except TimeoutError:
                raise CallTimeout(f"{self.address} takes no more requests") from None
        raise ConnectionLost(f"the connection to {self.address} is closed")

    # Writing and closing.

    def _send(self, frame: list[Buffer]) -> None:
        """Writes a frame together with the others of this turn of the loop."""
        self._outgoing += frame
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        frames, self._outgoing = self._outgoing, []
        if not frames or self._closed.done():
            return
        parts_bytes_min = max(_JOINED_BYTES_MAX, len(frames) * _PART_BYTES_MIN)
        if self._takes_parts and sum(map(len, frames)) > parts_bytes_min:
            self._transport.writelines(frames)
        else:
            self._transport.write(b"".join(frames))

    @property
    def is_closed(self) -> bool:
        """Whether it is closed or closing."""
        return self._closed.done() or self._transport.is_closing()

    @property
    def is_busy(self) -> bool:
        """Whether a request of either side waits for its reply."""
        return bool(self._tasks or self._put_off) or len(self._calls) > 0

    def on_close(self, callback: Callable[[Peer], None]) -> None:
        """Calls `callback(peer)` once the connection is closed; at once if it is already."""
        if self._closed.done():
            callback(self)
        else:
            self._on_close.append(callback)

    def close(self) -> None:
        """Closes after writing all pending frames."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Closes at once; unwritten data is lost."""
        self._transport.abort()

    async def drain(self, deadline: Deadline) -> None:
        """Reads nothing more, finishes requests in progress, closes; aborts at the deadline."""
        self._is_draining = True
        if not self.is_closed:
            self._transport.pause_reading()
        self._catch_up()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=deadline.left())
        self.close()
        await self.wait_closed(deadline)

    async def wait_closed(self, deadline: Deadline) -> None:
        """Returns when the connection is closed; at the deadline it is aborted."""
        await asyncio.wait([self._closed], timeout=deadline.left())
        if not self._closed.done():
            self.abort()
            await asyncio.wait([self._closed])
