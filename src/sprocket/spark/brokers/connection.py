"""A blocking connection to a name server or broker, for Spark's processes, which have no loop.

Each frame is read into one buffer, header and body together, and the caller gets that buffer.
Several requests may be pending at once; replies are matched by number. Not for several threads.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from sprocket.base.errors import (
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    RemoteProtocolError,
)
from sprocket.protocol.command import Buffer, Command, Header
from sprocket.protocol.frame import FRAME_BYTES_MAX, PREFIX_BYTES, decode_header, encode_request
from sprocket.protocol.signing import Signer
from sprocket.remoting.address import split

if TYPE_CHECKING:
    from sprocket.remoting.tls.dialling import TlsDialler

#: Bytes of a frame that its length field does not count.
_LENGTH_BYTES = 4
#: At most this many requests are sent before replies are read, so that neither side stops reading.
_AHEAD_MAX = 64


class BlockingConnection:
    """One connection.

    Args:
        address: `host:port`.
        timeout_s: for connecting, and for each reply unless `receive` gets another.
        signer: signs requests, for servers with access control.
        dialler: makes TLS of the connection; None for a plain one.

    Raises:
        ConnectFailed: no server accepts the connection.
        ConfigError: a file of the settings of TLS cannot be used.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float,
        signer: Signer | None = None,
        dialler: TlsDialler | None = None,
    ) -> None:
        self.address = address
        self._timeout_s = timeout_s
        self._signer = signer
        self._opaque = 0
        self._waiting: dict[int, Command | None] = {}
        try:
            self._socket = socket.create_connection(split(address), timeout_s)
        except OSError as error:
            raise ConnectFailed(f"no connection to {address}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if dialler is not None:
            try:
                now = time.monotonic()
                self._socket = dialler.wrapped(self._socket, split(address)[0], now)
            except ConnectFailed as error:
                self._socket.close()
                raise ConnectFailed(f"no connection to {address}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; pending replies are lost."""
        self._socket.close()

    def send(self, header: Header, *, body: Buffer = b"") -> int:
        """Sends a request, and returns its number, with which `receive` gives the reply.

        Raises:
            ConnectionLost: the connection broke.
        """
        self._opaque += 1
        frame = encode_request(header, self._opaque, body=body, signer=self._signer)
        try:
            self._socket.settimeout(self._timeout_s)
            self._socket.sendall(b"".join(frame))
        except OSError as error:
            raise self._lost(error) from error
        self._waiting[self._opaque] = None
        return self._opaque

    def receive(self, opaque: int, *, timeout_s: float | None = None) -> Command:
        """The reply to a request, whatever its code.

        Raises:
            CallTimeout: none came in time. The connection must not be used afterwards.
            ConnectionLost: the connection broke.
            RemoteProtocolError: the server sent something that is not a frame.
        """
        end = time.monotonic() + (self._timeout_s if timeout_s is None else timeout_s)
        while True:
            found = self._waiting.get(opaque)
            if found is not None:
                del self._waiting[opaque]
                return found
            command = self._read(end)
            # Requests from the server, and replies without a pending request, are ignored.
            if command.is_response and command.opaque in self._waiting:
                self._waiting[command.opaque] = command

    def ask(self, header: Header, *, body: Buffer = b"") -> Command:
        """Sends a request and returns its reply if that is a success.

        Raises:
            ReplyError: the server refused.
            TransportError: no reply came.
        """
        return self.receive(self.send(header, body=body)).checked()

    def call_all(self, headers: Sequence[Header]) -> list[Command]:
        """Replies to many requests at once, in their order, whatever their codes.

        Raises:
            TransportError: a reply did not come.
        """
        replies: list[Command] = []
        for first in range(0, len(headers), _AHEAD_MAX):
            numbers = [self.send(header) for header in headers[first : first + _AHEAD_MAX]]
            replies += [self.receive(number) for number in numbers]
        return replies

    def _read(self, end: float) -> Command:
        prefix = self._read_exactly(PREFIX_BYTES, end)
        total = int.from_bytes(prefix[:_LENGTH_BYTES], "big", signed=True)
        header_bytes = int.from_bytes(prefix[5:], "big")
        if not header_bytes + 4 <= total <= FRAME_BYTES_MAX:
            raise RemoteProtocolError(
                f"{self.address} sent a frame of {total} bytes, its header {header_bytes}"
            )
        rest = memoryview(self._read_exactly(total - 4, end)).toreadonly()
        command = decode_header(bytes(rest[:header_bytes]), prefix[4])
        command.body = rest[header_bytes:]
        return command

    def _read_exactly(self, size: int, end: float) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        done = 0
        while done < size:
            left = end - time.monotonic()
            if left <= 0:
                raise CallTimeout(f"no reply from {self.address} in time")
            try:
                self._socket.settimeout(left)
                got = self._socket.recv_into(view[done:])
            except TimeoutError:
                continue
            except OSError as error:
                raise self._lost(error) from error
            if got == 0:
                raise self._lost("the other side closed it")
            done += got
        return data

    def _lost(self, why: object) -> ConnectionLost:
        return ConnectionLost(f"the connection to {self.address} broke: {why}")
