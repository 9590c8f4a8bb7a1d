"""TLS between a transport and a protocol, by OpenSSL in memory.

The protocol above sees a transport like any other, and gets its `connection_made` after the
handshake. Everything that was read at once is decrypted before the protocol gets it, in one piece,
and nothing waits here: what is written leaves at once. See docs/decisions/0018-tls.md for why this
is not asyncio's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Iterable
from typing import Any, cast

from sprocket.base.errors import ConnectionLost
from sprocket.remoting.tls.faults import in_words
from sprocket.remoting.turns import RUN, Account, Turns

#: The most that the other side may send before the handshake is over: a chain of certificates has
#: at most 100 KiB for OpenSSL.
_HANDSHAKE_BYTES_MAX = 256 * 1024
#: The content of one record of TLS, at most.
_RECORD_BYTES = 16 * 1024


class TlsLayer(asyncio.Protocol):
    """One connection's TLS.

    Args:
        tls: OpenSSL's state of the connection.
        incoming, outgoing: what OpenSSL reads from and writes to.
        factory: makes the protocol above, after the handshake.
        seconds: how long the handshake may take.
        is_client: whether this side begins.
        on_done: is called when the handshake is over, with the error if it failed.
        turns: shares the loop between this connection and others; None for one that we make.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        factory: Callable[[], asyncio.Protocol],
        *,
        seconds: float,
        is_client: bool,
        on_done: Callable[[TlsLayer, ConnectionLost | None], None],
        server_name: str | None = None,
        turns: Turns | None = None,
    ) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=not is_client,
            server_hostname=server_name,
        )
        self._factory = factory
        self._seconds = seconds
        self._is_client = is_client
        self._on_done: Callable[[TlsLayer, ConnectionLost | None], None] | None = on_done
        self._turns = turns
        self._is_in_line = False
        self.account = Account()
        self._received_bytes = 0
        self._fault: ConnectionLost | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: The protocol above, once the handshake is over.
        self.above: asyncio.Protocol | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begins the handshake."""
        self._transport = cast(asyncio.Transport, transport)
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._too_late)
        if self._is_client:
            self._shake()

    def data_received(self, data: bytes) -> None:
        """Decrypts what arrives, or goes on with the handshake."""
        self._incoming.write(data)
        if self.above is not None:
            self._read()
            return
        # A handshake takes as long as a hundred sends, so of many at once each gets its turn.
        self._received_bytes += len(data)
        turns = self._turns
        if self._received_bytes > _HANDSHAKE_BYTES_MAX:
            self._fail("the handshake has too many bytes")
        elif turns is None:
            self._shake()
        elif not self._is_in_line:
            if turns.is_over or turns.is_full:
                self._is_in_line = True
                self._transport.pause_reading()
                turns.join(self)
            else:
                loop = asyncio.get_running_loop()
                began = loop.time()
                self._shake()
                turns.spend(loop.time() - began)
                self._count(turns)

    def take_turn(self, until: float) -> bool:
        """Goes on with the handshake; see `turns.Waiting`."""
        self._is_in_line = False
        if self._on_done is not None and not self._transport.is_closing():
            self._transport.resume_reading()
            self._shake()
            if self._turns is not None:
                self._count(self._turns)
        return False

    def abort(self) -> None:
        """Closes the connection at once."""
        self._transport.abort()

    @staticmethod
    def _count(turns: Turns) -> None:
        """Whoever connects is not known to be modest yet: beside modest peers there is one step of
        a handshake in an iteration."""
        if turns.is_short(asyncio.get_running_loop().time()):
            turns.fill(RUN)

    def eof_received(self) -> bool | None:
        """The other side sends no more; the transport closes."""
        if self.above is not None:
            self.above.eof_received()
        return None

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self._on_done is not None:
            hint = "; perhaps TLS is off there" if self._is_client else ""
            closed = ConnectionLost(f"it was closed during the TLS handshake{hint}")
            self._done(self._fault or closed)
        elif self.above is not None:
            self.above.connection_lost(self._fault or error)

    def pause_writing(self) -> None:
        """The other side has too much unread data."""
        if self.above is not None:
            self.above.pause_writing()

    def resume_writing(self) -> None:
        """The other side has read enough."""
        if self.above is not None:
            self.above.resume_writing()

    # The handshake.

    def _shake(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._send()
            return
        except ssl.SSLError as error:
            self._send()  # the alert, from which the other side learns why
            self._fail(in_words(error))
            return
        self._send()
        self.above = self._factory()
        self._done(None)
        self.above.connection_made(TlsTransport(self, self._transport, self._tls))
        if not self._transport.is_closing():
            self._read()

    def _too_late(self) -> None:
        self._fail(f"the handshake took more than {self._seconds:g} s")

    def _fail(self, why: str) -> None:
        self._fault = ConnectionLost(f"TLS: {why}")
        self._transport.close()
        self._done(self._fault)

    def _done(self, error: ConnectionLost | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._on_done is not None:
            on_done, self._on_done = self._on_done, None
            on_done(self, error)

    # Afterwards.

    def _read(self) -> None:
        """Gives the protocol above all that was received, decrypted, in one piece."""
        tls, incoming = self._tls, self._incoming
        parts: list[bytes] = []
        is_over = False
        try:
            while incoming.pending or tls.pending():
                part = tls.read(_RECORD_BYTES)
                if not part:
                    is_over = True
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            is_over = True
        except ssl.SSLError as error:
            self._fault = ConnectionLost(f"TLS: {in_words(error)}")
        if self._outgoing.pending:
            self._send()
        above = self.above
        assert above is not None
        if parts:
            above.data_received(parts[0] if len(parts) == 1 else b"".join(parts))
        if self._fault is not None:
            self._transport.abort()
        elif is_over and not self._transport.is_closing():
            above.eof_received()
            self._transport.close()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypts and sends."""
        if self._transport.is_closing():
            return
        try:
            sent = self._tls.write(data)
            while sent < len(data):
                data = memoryview(data)[sent:]
                sent = self._tls.write(data)
        except ssl.SSLError as error:
            self._fault = ConnectionLost(f"TLS: {in_words(error)}")
            self._transport.abort()
            return
        self._transport.write(self._outgoing.read())

    def say_goodbye(self) -> None:
        """Announces the end to the other side."""
        if self._transport.is_closing():
            return
        # The other side has not said goodbye yet, which is an error, and nobody waits for that.
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        self._send()

    def _send(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())


class TlsTransport(asyncio.Transport):
    """The transport that the protocol above a `TlsLayer` gets."""

    def __init__(self, layer: TlsLayer, below: asyncio.Transport, tls: ssl.SSLObject) -> None:
        super().__init__()
        self._layer = layer
        self._below = below
        self._tls = tls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """`ssl_object`, or what the transport below knows."""
        return self._tls if name == "ssl_object" else self._below.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypts and sends bytes."""
        if data:
            self._layer.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Encrypts and sends parts as one: each write makes records of its own."""
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        """TLS has no half-closed connections."""
        return False

    def close(self) -> None:
        """Closes after what was written."""
        self._layer.say_goodbye()
        self._below.close()

    def abort(self) -> None:
        """Closes at once."""
        self._below.abort()

    def is_closing(self) -> bool:
        """Whether it is closed or closing."""
        return self._below.is_closing()

    def pause_reading(self) -> None:
        """Reads nothing more."""
        self._below.pause_reading()

    def resume_reading(self) -> None:
        """Reads again."""
        self._below.resume_reading()

    def is_reading(self) -> bool:
        """Whether it reads."""
        return self._below.is_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Sets when writing is paused and resumed, in encrypted bytes."""
        self._below.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Encrypted bytes that are not sent yet."""
        return self._below.get_write_buffer_size()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replaces the protocol above."""
        self._layer.above = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """The protocol above."""
        assert self._layer.above is not None
        return self._layer.above
