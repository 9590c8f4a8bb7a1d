"""One connection of a gRPC server: `peer_calls` with a socket.

It promises: the replies to the calls of one read leave in one write; nothing that a client sends
can end more than its own connection; unread replies take bounded memory; and however many calls one
client makes at once, the others get their turns.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import cast

from sprocket.base.deadline import Deadline
from sprocket.proxy.http2 import frames as wire
from sprocket.proxy.http2.call_form import Method
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.peer_calls import PeerCalls
from sprocket.remoting import address
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.turns import Account, Turns
from sprocket.remoting.unfinished import COUNTED_BYTES_MIN, UnfinishedFrames

logger = logging.getLogger(__name__)

#: Frames between two looks at the clock: a few calls, which may have compressed messages.
_FRAMES_A_STEP = 8
#: So many bytes of calls take as long as one send in RocketMQ's own protocol.
_BYTES_A_REQUEST = 16
#: The most bytes of data that are made into frames for one write, and the most parts of replies
#: that wait for the end of a read: a short reply has six.
_WRITE_BYTES = 1 << 18
_WRITE_PARTS = 768
#: A client that waits for its turn is read up to so many bytes: to pause it and go on costs two
#: calls of the system.
_UNHANDLED_BYTES_MAX = 1 << 16


class GrpcPeer(asyncio.Protocol):
    """A client.

    Args:
        methods: what it may call, by path.
        limits: the limits of its connection.
        turns: shares the loop between the clients.
        unfinished: bounds the incomplete messages of all clients.
        unread: bounds the replies that wait for them.
        on_close: is called when the connection is gone.
        ips: counts its connection, and closes it if its address has too many.

    Attributes:
        address: `host:port` of the client.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        limits: GrpcLimits,
        *,
        turns: Turns,
        unfinished: UnfinishedFrames,
        unread: UnfinishedFrames,
        on_close: Callable[[GrpcPeer], None],
        ips: IpCounts | None = None,
    ) -> None:
        self._limits = limits
        self._turns = turns
        self._unfinished = unfinished
        self._unread = unread
        self._on_close = on_close
        self._ips = ips
        self._loop = asyncio.get_running_loop()
        self._calls = PeerCalls(
            methods,
            limits,
            turns=turns,
            address=lambda: self.address,
            on_output=self._flush_soon,
            on_kept=self._count_incomplete,
        )
        self._http = self._calls.http
        self._is_counted = self._is_unread_counted = False
        self._is_full = False
        self._is_in_line = False
        self.account = Account()
        self._is_reading = True
        self._is_flush_due = False
        self._has_spoken = True
        self._is_asked = False
        self._drained: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.address = ""

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Takes over the new connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._limits.unwritten_bytes_max)
        self.address = address.of_socket(transport.get_extra_info("peername"))
        self._first_timer = self._loop.call_later(self._limits.first_seconds, self._check_begun)
        if self._ips is not None and not self._ips.enter(self.address):
            self._ips = None
            self.abort()
        self._flush()

    def data_received(self, data: bytes) -> None:
        """Handles received bytes; what takes too long waits for its turn."""
        self._has_spoken = True
        self._http.receive(data)
        if self._is_in_line:
            self._read_or_wait()
            return
        turns = self._turns
        is_full = turns.is_full and not turns.is_modest(self)
        if is_full or turns.is_over or turns.is_behind(self):
            self._wait_for_turn()
            return
        began = self._loop.time()
        has_more = self._handle(turns.turn_until(began))
        seconds = self._loop.time() - began
        turns.spend(seconds)
        turns.charge(self, seconds)
        if has_more:
            self._wait_for_turn()

    def take_turn(self, until: float) -> bool:
        """Handles more frames; see `turns.Waiting`."""
        self._is_in_line = not self.is_closed and self._handle(until)
        self._read_or_wait()
        return self._is_in_line

    def connection_lost(self, error: Exception | None) -> None:
        """Cancels the client's calls."""
        self._first_timer.cancel()
        self._closed.set_result(None)
        if self._ips is not None:
            self._ips.leave(self.address)
        self._calls.cancel()
        self._unfinished.forget(self)
        self._unread.forget(self)
        self._http.end(wire.NO_ERROR, "the connection is lost")
        self._on_close(self)

    def pause_writing(self) -> None:
        """The client has too much unread data."""
        self._is_full = True
        self._read_or_wait()

    def resume_writing(self) -> None:
        """The client has read enough."""
        self._is_full = False
        self._flush()
        if not self._is_in_line and not self._is_full:
            self._wait_for_turn()  # frames may wait that were read before

    def _wait_for_turn(self) -> None:
        self._is_in_line = True
        self._turns.join(self)
        self._read_or_wait()

    def _handle(self, until: float) -> bool:
        """Handles frames until a loop time. Returns whether there may be more."""
        http, turns, clock = self._http, self._turns, self._loop.time
        unhandled_bytes = http.unhandled_bytes
        self._is_flush_due = True  # by the end of this
        while True:
            has_more = http.step(_FRAMES_A_STEP)
            now, left_bytes = clock(), http.unhandled_bytes
            requests = (unhandled_bytes - left_bytes) // _BYTES_A_REQUEST
            turns.count(self, requests + 1, now)
            unhandled_bytes = left_bytes
            if not has_more or now >= until or (turns.is_full and not turns.is_modest(self)):
                break
            if len(http.out.frames) > _WRITE_PARTS:
                self._flush()
                self._is_flush_due = True
                if self._is_full:
                    break
        self._flush()
        return has_more and not self._is_full and not self.is_closed

    def _read_or_wait(self) -> None:
        """Pauses reading while much is unread, or waits for its turn; resumes it afterwards."""
        has_room = not self._is_full and (
            not self._is_in_line or self._http.unhandled_bytes < _UNHANDLED_BYTES_MAX
        )
        if has_room != self._is_reading and not self.is_closed:
            self._is_reading = has_room
            if has_room:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _check_begun(self) -> None:
        if not self._http.has_settings:
            logger.info("%s is let go: it has not begun HTTP/2 in time", self.address)
            self._transport.abort()

    def _count_incomplete(self, kept_bytes: int) -> None:
        if self._is_counted or kept_bytes >= COUNTED_BYTES_MIN:
            self._is_counted = kept_bytes >= COUNTED_BYTES_MIN
            self._unfinished.note(self, kept_bytes)

    # Bytes out.

    def _flush_soon(self) -> None:
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Writes what there is, until the client has too much unread data."""
        self._is_flush_due = False
        http, out = self._http, self._http.out
        while not self.is_closed:
            if out.has_data and not self._is_full:
                out.pump(_WRITE_BYTES)
            if not out.frames:
                break
            frames, out.frames = out.frames, []
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
        out.frames.clear()
        if self._is_unread_counted or out.queued_bytes >= COUNTED_BYTES_MIN:
            self._is_unread_counted = out.queued_bytes >= COUNTED_BYTES_MIN
            self._unread.note(self, out.queued_bytes)
        if http.fault is not None and not self.is_closed:
            logger.info("%s is let go: %s", self.address, http.fault)
            self._calls.cancel()
            self._transport.close()
        if self._drained is not None and not http.streams and not self._drained.done():
            self._drained.set_result(None)

    # Closing.

    @property
    def is_closed(self) -> bool:
        """Whether it is closed or closing."""
        return self._closed.done() or self._transport.is_closing()

    def check(self) -> None:
        """Closes the connection if the client is idle or gone, and ends what is stuck.

        The server calls it from time to time. A client that has calls and is silent is asked by a
        PING first.
        """
        if self._transport.is_closing():
            self.abort()  # it does not read what it was left
            return
        self._http.calm()
        self._calls.reset_stuck()
        if self._has_spoken:
            self._has_spoken = self._is_asked = False
        elif self._is_asked:
            logger.info("%s is let go: it does not answer", self.address)
            self.abort()
        elif self._http.streams:
            self._is_asked = True
            self._http.ask()
        else:
            self.close()
        self._flush()

    def close(self) -> None:
        """Closes after writing what there is; calls are cancelled."""
        if not self.is_closed:
            self._http.end(wire.NO_ERROR, "it is closed here")
            self._flush()

    def abort(self) -> None:
        """Closes at once."""
        self._transport.abort()

    async def drain(self, deadline: Deadline) -> None:
        """Takes no more calls, lets those in progress end, and closes; aborts at the deadline."""
        self._drained = self._loop.create_future()
        self._http.drain()
        self._flush()
        await asyncio.wait(
            [self._drained, self._closed],
            timeout=deadline.left(),
            return_when=asyncio.FIRST_COMPLETED,
        )
        self.close()
        await self.wait_closed(deadline)

    async def wait_closed(self, deadline: Deadline) -> None:
        """Returns when the connection is closed; at the deadline it is aborted."""
        await asyncio.wait([self._closed], timeout=deadline.left())
        if not self._closed.done():
            self.abort()
            await asyncio.wait([self._closed])
