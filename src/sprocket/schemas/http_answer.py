"""One GET of one answer: bounded in time and in bytes, and never redirected.

The standard library's timeout is for each read, so that a server which sends a byte now and then
holds its client for ever; here one deadline counts for connecting, sending and all reads.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult

from sprocket.schemas.errors import RegistryUnavailable, reason_of

_PORTS = {"http": 80, "https": 443}


class HttpAnswer(NamedTuple):
    """An answer: its status and its body."""

    status: int
    body: bytes


def get(
    server: SplitResult,
    path: str,
    *,
    headers: Mapping[str, str],
    tls: ssl.SSLContext | None,
    seconds: float,
    bytes_max: int,
) -> HttpAnswer:
    """Asks a server.

    Args:
        server: its scheme, host and port.
        path: what to ask for.
        tls: for https.
        seconds: limit for all of it.
        bytes_max: limit of the body.

    Raises:
        RegistryUnavailable: no answer came in time, or none that could be read.
    """
    place = f"{server.scheme}://{server.hostname}:{server.port or _PORTS[server.scheme]}"
    connection = _Timed(server, tls, seconds)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        body = response.read(bytes_max + 1)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise RegistryUnavailable(
            f"the registry {place} does not answer: {reason_of(error)}"
        ) from None
    finally:
        connection.shut()
    if len(body) > bytes_max:
        raise RegistryUnavailable(f"the registry {place} answers with more than {bytes_max} bytes")
    return HttpAnswer(response.status, body)


class _Timed(http.client.HTTPConnection):
    """A connection whose every wait ends at one time."""

    def __init__(self, server: SplitResult, tls: ssl.SSLContext | None, seconds: float) -> None:
        super().__init__(server.hostname or "", server.port or _PORTS[server.scheme])
        self._tls = tls
        self._until = time.monotonic() + seconds
        self._plain: socket.socket | None = None

    def connect(self) -> None:
        left = _left(self._until)
        plain = socket.create_connection((self.host, self.port), left)
        if self._tls is not None:
            plain.settimeout(_left(self._until))
            try:
                plain = self._tls.wrap_socket(plain, server_hostname=self.host)
            except BaseException:  # raised again; only the socket must not stay open
                plain.close()
                raise
        self._plain = plain
        # All that `http.client` does with a socket.
        self.sock: Any = _TimedSocket(plain, self._until)

    def shut(self) -> None:
        """Closes the socket."""
        self.close()
        if self._plain is not None:
            self._plain.close()


class _TimedSocket:
    """A socket whose operations end at a time."""

    def __init__(self, inner: socket.socket, until: float) -> None:
        self._inner = inner
        self._until = until

    def sendall(self, content: bytes) -> None:
        self._inner.settimeout(_left(self._until))
        self._inner.sendall(content)

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReads(self._inner, self._until))

    def close(self) -> None:
        """Nothing: `http.client` closes before it has read an answer to its end."""


class _TimedReads(io.RawIOBase):
    """Reads of a socket that end at a time."""

    def __init__(self, inner: socket.socket, until: float) -> None:
        self._inner = inner
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._inner.settimeout(_left(self._until))
        return self._inner.recv_into(buffer)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("no complete answer in time")
    return left
