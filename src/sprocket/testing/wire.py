"""One end of a simulated connection, which behaves like an asyncio TCP transport.

Bytes arrive in order, after a delay, and cut at any position. `close` sends the written bytes and
then the end; `abort` loses bytes that have not arrived. An end whose network is cut notices it only
after it writes, with a timeout.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from sprocket.testing.process import SimulatedProcess

if TYPE_CHECKING:
    from sprocket.testing.network import Network

#: Bytes that the two kernels buffer before the transport buffers itself.
WINDOW_BYTES = 1 << 16
#: Seconds without an acknowledgement after which a sender closes the connection.
GIVE_UP_SECONDS = 30.0


class Signal(Enum):
    """Events that arrive in the stream beside bytes."""

    END = "end"
    RESET = "reset"


class SimulatedTransport(asyncio.Transport):
    """One end; `other` is the opposite one."""

    def __init__(
        self,
        network: Network,
        process: SimulatedProcess | None,
        local: tuple[str, int],
        context: Context,
    ) -> None:
        super().__init__()
        self.local = local
        self.network = network
        self.process = process
        self.host = network.host_of(process)
        self.context = context
        self.other: SimulatedTransport = self
        self._protocol: asyncio.Protocol | None = None
        #: Bytes and signals on the way to the other end, in order, with times of arrival.
        self._line: deque[tuple[float, bytes | Signal]] = deque()
        self._last_arrival = 0.0
        self._stalled_since: float | None = None
        #: What has arrived here while reading was paused.
        self._unread: deque[bytes | Signal] = deque()
        #: Number of bytes written here and not read there.
        self._unacknowledged = 0
        self._is_reading = True
        self._is_closing = False
        self.is_lost = False
        self._is_full = False
        #: Whether it is a server's end, whose replies may be lost, doubled or delayed.
        self.is_answering = False
        #: Whether all that it sends is lost.
        self.is_frozen = False
        self._high, self._low = 1 << 16, 1 << 14

    def join(self, other: SimulatedTransport) -> None:
        """Makes `other` the opposite end of this one, and the reverse."""
        self.other, other.other = other, self

    def begin(self, factory: Callable[[], asyncio.BaseProtocol]) -> asyncio.BaseProtocol | None:
        """Connects the protocol, and delivers what has already arrived; None if it is closed."""
        if self.is_lost:
            return None
        self._protocol = protocol = cast(asyncio.Protocol, factory())
        protocol.connection_made(self)
        self._soon(self._read_on)
        return protocol

    # The interface of a transport.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """`sockname` and `peername`."""
        return {"sockname": self.local, "peername": self.other.local}.get(name, default)

    def write(self, data: Any) -> None:
        """Sends bytes."""
        if self._is_closing or not data:
            return
        content = bytes(data)
        for seconds in self.network.fate(self.host) if self.is_answering else (0.0,):
            if seconds:
                loop = self.network.loop
                loop.call_later(seconds, self._send, content, context=self.context)
            else:
                self._send(content)

    def _send(self, content: bytes) -> None:
        if self.is_lost:
            return
        self._unacknowledged += len(content)
        for piece in self.network.pieces(content):
            self._put(piece)
        if self._unacknowledged - WINDOW_BYTES > self._high and not self._is_full:
            self._is_full = True
            if self._protocol is not None:
                self._protocol.pause_writing()

    def can_write_eof(self) -> bool:
        """Half-closed connections are not simulated."""
        return False

    def pause_reading(self) -> None:
        """Keeps what arrives until `resume_reading`."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """Delivers what has arrived, and then what arrives."""
        if not self._is_closing and not self._is_reading:
            self._is_reading = True
            self._soon(self._read_on)

    def is_reading(self) -> bool:
        """Whether what arrives is delivered."""
        return self._is_reading and not self._is_closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Sets at how many buffered bytes the protocol's writing is paused and resumed."""
        self._high = (1 << 16) if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        """Number of written bytes that no kernel has buffered."""
        return max(0, self._unacknowledged - WINDOW_BYTES)

    def is_closing(self) -> bool:
        """Whether it is closed or closing."""
        return self._is_closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Sets the protocol."""
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol."""
        assert self._protocol is not None
        return self._protocol

    def close(self) -> None:
        """Sends the written bytes and then the end."""
        if not self._is_closing:
            self._is_closing = True
            self._put(Signal.END)
            self._soon(self._end_when_written)

    def abort(self) -> None:
        """Closes at once; bytes that have not arrived are lost."""
        if not self.is_lost:
            self._is_closing = True
            self._line.clear()
            self._put(Signal.RESET)
            self._soon(self.lose, None)

    # Called by the network.

    def lose(self, error: Exception | None) -> None:
        """Ends the connection at this end."""
        if self.is_lost:
            return
        self.is_lost = self._is_closing = True
        self._unread.clear()
        self.network.forget(self)
        if self._protocol is not None:
            self._protocol.connection_lost(error)

    def die(self, last_word: Signal | None) -> None:
        """Ends the connection of a killed process; the other end gets `last_word`, or nothing.

        The killed process's tasks lose the connection, too, so that they end.
        """
        self._is_closing = True
        if last_word is not None:
            self._put(last_word)
        self._soon(self.lose, ConnectionAbortedError(103, "the process was killed"))

    def sever(self, error: Exception) -> None:
        """Breaks the connection between the ends; nothing on the way arrives."""
        self._line.clear()
        self._soon(self.lose, error)

    def carry_on(self) -> None:
        """Continues delivery, since the network to the other end works again."""
        if self._stalled_since is not None:
            self._stalled_since = None
            self._carry_at(self.network.now() + self.network.draw_seconds(0.01, 1.0))

    def _put(self, item: bytes | Signal) -> None:
        arrival = self.network.now() + self.network.draw_delay(self.host, self.other.host)
        self._last_arrival = arrival = max(arrival, self._last_arrival)
        self._line.append((arrival, item))
        self._carry_at(arrival)

    def _carry_at(self, at: float) -> None:
        self.network.loop.call_at(at, self._carry, context=self.other.context)

    def _carry(self) -> None:
        """Delivers what is due, unless the network between is cut."""
        if self.is_frozen:
            self._line.clear()
        now = self.network.now() + 1e-9
        while self._line and self._line[0][0] <= now:
            if self.network.is_cut(self.host, self.other.host):
                self._stall()
                return
            self.other._receive(self._line.popleft()[1])

    def _stall(self) -> None:
        if self._stalled_since is None:
            self._stalled_since = since = self.network.now()
            self.network.loop.call_later(
                GIVE_UP_SECONDS, self._give_up, since, context=self.context
            )

    def _give_up(self, since: float) -> None:
        if self._stalled_since == since and not self.is_lost:
            self._last_arrival = self.network.now()
            self._line.append((self._last_arrival, Signal.RESET))
            self.lose(TimeoutError(110, "connection timed out"))

    def _receive(self, item: bytes | Signal) -> None:
        if self.is_lost:
            if self.process is not None and not self.process.is_alive and isinstance(item, bytes):
                self._put(Signal.RESET)  # a machine that does not know the connection
        elif item is Signal.RESET:
            self.lose(ConnectionResetError(104, "connection reset by peer"))
        elif self._protocol is None or not self._is_reading or self._unread:
            self._unread.append(item)
        else:
            self._deliver(self._protocol, item)

    def _read_on(self) -> None:
        while self._unread and self._protocol is not None and self._is_reading:
            self._deliver(self._protocol, self._unread.popleft())

    def _deliver(self, protocol: asyncio.Protocol, item: bytes | Signal) -> None:
        if isinstance(item, bytes):
            self.network.note_delivery(self, item)
            self.other._acknowledge(len(item))
            if not self._is_closing:
                protocol.data_received(item)
        elif not self._is_closing and not protocol.eof_received():
            self.close()

    def _acknowledge(self, size: int) -> None:
        self._unacknowledged -= size
        if self._is_full and self.get_write_buffer_size() <= self._low:
            self._is_full = False
            if not self.is_lost and self._protocol is not None:
                self._soon(self._protocol.resume_writing)
        if self._is_closing:
            self._soon(self._end_when_written)

    def _end_when_written(self) -> None:
        if self.get_write_buffer_size() == 0:
            self.lose(None)

    def _soon(self, callback: Any, *args: Any) -> None:
        self.network.loop.call_soon(callback, *args, context=self.context)
