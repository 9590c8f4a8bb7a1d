"""One connection: `protocol.connection` with a socket.

It promises: the requests of one read are handled together, and their replies leave in one write; a
request that needs no waiting never becomes a task; nothing that the peer sends can end more than
its own connection; unread replies take bounded memory; and however many requests one peer sends at
once, the others get their turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ConnectionLost, RemoteProtocolError
from sprocket.protocol.command import JSON, RESPONSE, Buffer, Command, Header
from sprocket.protocol.connection import Connection
from sprocket.protocol.frame import encode_request
from sprocket.protocol.signing import Signer
from sprocket.remoting import address
from sprocket.remoting.calls import Calls
from sprocket.remoting.endpoints import BatchEndpoint, Shortcut
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.requests import PeerRequests
from sprocket.remoting.turns import Turns
from sprocket.remoting.unfinished import COUNTED_BYTES_MIN, UnfinishedFrames
from sprocket.remoting.writer import FrameWriter

logger = logging.getLogger(__name__)

_FIRST = asyncio.FIRST_COMPLETED
#: The time that decoding takes is counted for reads of at least this many bytes. A loop hands over
#: several reads of one socket in one iteration only if they are as large as they can be.
_TIMED_BYTES_MIN = 1 << 16
#: How TLS begins, and what that means at a port without it.
_HANDSHAKE = b"\x16\x03"
_TLS_HERE = (
    "it speaks TLS, and this server has no certificate (tls.certificate) or tls.mode=disabled"
)


class Peer(asyncio.Protocol):
    """The other side of one connection.

    Args:
        endpoint: handles its requests.
        limits: the limits of the connection.
        is_client: whether it connected to us. Then its requests wait while it reads no replies.
        turns: shares the loop between this peer and the others.
        ips: counts its connection, and closes it if its address has too many.
        unfinished: bounds the incomplete frames of all peers.
        serialization: that of our own requests; a reply has that of its request.
        signer: signs our own requests.
        shortcut: handles the first requests of a read, if it can.

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
        turns: Turns,
        unfinished: UnfinishedFrames,
        serialization: int = JSON,
        signer: Signer | None = None,
        ips: IpCounts | None = None,
        shortcut: Shortcut | None = None,
    ) -> None:
        self._limits = limits
        self._ips = ips
        self._serialization = serialization
        self._signer = signer
        self._incoming = Connection(limits.frame_bytes_max)
        self._loop = asyncio.get_running_loop()
        self._unfinished = unfinished
        self._is_incomplete = False
        self._writer = FrameWriter(self._loop, limits.unwritten_bytes_max)
        self._requests = PeerRequests(
            self,
            endpoint,
            self._writer,
            turns,
            tasks_max=limits.tasks_max,
            unread_bytes_max=limits.unread_bytes_max,
            waits_for_reader=is_client,
            on_change=self._read_or_wait,
            read=self.data_received,
            shortcut=shortcut,
        )
        self._has_shortcut = shortcut is not None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._lost_why = ""
        self._on_close: list[Callable[[Peer], None]] = []
        self._calls = Calls(self._loop, on_overdue=None if is_client else self._overdue)
        self._is_reading = True
        #: Nothing more is read: the connection closes soon.
        self._is_ending = False
        self.address = ""
        self.has_spoken = True
        #: When the first call timed out since data arrived.
        self._silent_since = 0.0

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes over the new connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._writer.connected(self._transport)
        self.address = address.of_socket(transport.get_extra_info("peername"))
        self._calls.connected(self.address)
        if self._ips is not None and not self._ips.enter(self.address):
            self._ips = None
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Handles received bytes: part of a frame, or dozens of frames."""
        self.has_spoken = True
        if self._requests.holds(data):
            return
        # The requests of one read are handled together: that took a send from 9.1 to 6.5 µs of CPU
        # (decision 10). Replies to our calls come first, since their callers wait. After a broken
        # frame the good ones before it still get their replies.
        incoming = self._incoming
        if self._has_shortcut and incoming.fault is None:
            data = incoming.with_kept(data)
            if not incoming.kept_bytes:
                data = self._requests.take_first(data)
                if not data and not self._is_incomplete:
                    self._writer.flush()
                    return
        began = self._loop.time() if len(data) >= _TIMED_BYTES_MIN else 0.0
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
        if began:
            self._requests.count_decoding(self._loop.time() - began)
        if requests:
            self._requests.receive(requests, len(data))
        if self._writer.frames:
            self._writer.flush()
        if self._is_incomplete or incoming.kept_bytes >= COUNTED_BYTES_MIN:
            self._count_incomplete()
        if incoming.fault is not None and not self._is_ending and not self.is_closed:
            why = _TLS_HERE if data.startswith(_HANDSHAKE) else incoming.fault
            logger.info("%s is let go, it broke the protocol: %s", self.address, why)
            self._end(then=self._transport.close)

    def connection_lost(self, error: Exception | None) -> None:
        """Cleans up after the connection: calls fail, the peer's requests are cancelled."""
        self._closed.set_result(None)
        if self._ips is not None:
            self._ips.leave(self.address)
        if isinstance(error, ConnectionLost):  # TLS knows why
            self._lost_why = f": {error}"
        self._calls.fail(ConnectionLost(f"the connection to {self.address} broke{self._lost_why}"))
        self._requests.cancel()
        self._writer.lost()
        self._unfinished.forget(self)
        # Peer and requests refer to each other, so the peer lives until the next collection. What
        # it kept of an incomplete frame, up to 16 MiB, must not.
        self._incoming = Connection(self._limits.frame_bytes_max)
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback(self)

    def pause_writing(self) -> None:
        """Called when the peer has too much unread data."""
        self._writer.fill()
        self._read_or_wait()

    def resume_writing(self) -> None:
        """Called when the peer has read enough."""
        self._writer.free()
        self._requests.go_on()
        self._read_or_wait()

    def _count_incomplete(self) -> None:
        kept_bytes = self._incoming.kept_bytes
        self._is_incomplete = kept_bytes >= COUNTED_BYTES_MIN
        self._unfinished.note(self, kept_bytes)

    def _read_or_wait(self) -> None:
        """Pauses reading while too many requests or replies are pending; resumes it afterwards."""
        has_room = not self._requests.has_enough
        if has_room == self._is_reading or self._is_ending or self.is_closed:
            return
        self._is_reading = has_room
        if has_room:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Our requests.

    async def call(
        self, header: Header, *, body: Buffer = b"", deadline: Deadline, is_held: bool = False
    ) -> Command:
        """Sends a request and returns the reply, whatever its code.

        Args:
            is_held: whether the server may hold the reply back, as that to a pull.

        Raises:
            CallTimeout: no reply in time. The request may have been carried out.
            ConnectionLost: the connection broke. The request may have been carried out.
            LocalProtocolError: the request cannot be encoded.
        """
        calls = self._calls
        if self._writer.is_full or len(calls) >= self._limits.calls_max or self._closed.done():
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
        if is_held:
            calls.held.add(number)
        self._writer.send(frame)
        try:
            return await future
        except asyncio.CancelledError:
            calls.forget(number)
            raise
        finally:
            if is_held:
                calls.held.discard(number)

    @property
    def newest_call(self) -> int:
        """The number of our newest call; see `is_unanswered`."""
        return self._calls.newest

    def is_unanswered(self, until: int, *, including_held: bool = False) -> bool:
        """Whether one of our calls up to that number still waits for its reply.

        Args:
            including_held: whether calls count whose replies the peer may hold back.
        """
        return self._calls.is_waiting(until, including_held=including_held)

    def number_of_call(self) -> int | None:
        """A number for `call_written` on an open connection; None if a request must wait."""
        calls = self._calls
        if self._writer.is_full or len(calls) >= self._limits.calls_max:
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
        self._writer.send([head, body])
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
        if self._writer.is_full or self.is_closed:
            return
        self._writer.send(
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
        if self._calls.settle(reply) and not self._writer.is_full:
            self._writer.room.set()

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
            if not self._writer.is_full and len(self._calls) < self._limits.calls_max:
                return
            self._writer.room.clear()
            try:
                async with asyncio.timeout_at(None if deadline.is_never else deadline.at):
                    await self._writer.room.wait()
            except TimeoutError:
                raise CallTimeout(f"{self.address} takes no more requests") from None
        raise ConnectionLost(f"the connection to {self.address} is closed{self._lost_why}")

    # Closing.

    @property
    def is_closed(self) -> bool:
        """Whether it is closed or closing."""
        return self._closed.done() or self._transport.is_closing()

    @property
    def is_busy(self) -> bool:
        """Whether a request of either side waits for its reply."""
        return self._requests.is_busy or len(self._calls) > 0

    @property
    def is_full(self) -> bool:
        """Whether the other side reads too little of what it is sent."""
        return self._writer.is_full

    def on_close(self, callback: Callable[[Peer], None]) -> None:
        """Calls `callback(peer)` once the connection is closed; at once if it is already."""
        if self._closed.done():
            callback(self)
        else:
            self._on_close.append(callback)

    def close(self) -> None:
        """Closes after writing all pending frames."""
        self._writer.flush()
        self._transport.close()

    def abort(self) -> None:
        """Closes at once; unwritten data is lost."""
        self._transport.abort()

    async def drain(self, deadline: Deadline) -> None:
        """Reads nothing more, finishes requests in progress, closes; aborts at the deadline."""
        answered: asyncio.Future[None] = self._loop.create_future()
        self._end(then=lambda: answered.set_result(None))
        await asyncio.wait([answered, self._closed], timeout=deadline.left(), return_when=_FIRST)
        if tasks := self._requests.tasks:
            await asyncio.wait(tasks, timeout=deadline.left())
        self.close()
        await self.wait_closed(deadline)

    def _end(self, *, then: Callable[[], None]) -> None:
        """Reads nothing more; calls `then` once all requests that were read are handled."""
        self._is_ending = True
        if not self.is_closed:
            self._transport.pause_reading()
        self._requests.when_handled(then)

    async def wait_closed(self, deadline: Deadline) -> None:
        """Returns when the connection is closed; at the deadline it is aborted."""
        await asyncio.wait([self._closed], timeout=deadline.left())
        if not self._closed.done():
            self.abort()
            await asyncio.wait([self._closed])
