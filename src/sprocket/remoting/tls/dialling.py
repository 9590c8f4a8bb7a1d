"""Connections to servers over TLS: for a protocol, or blocking."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import TypeVar, cast

from sprocket.base.errors import ConnectFailed, ConnectionLost
from sprocket.remoting.address import bare
from sprocket.remoting.tls.certificates import watched_asking
from sprocket.remoting.tls.faults import in_words
from sprocket.remoting.tls.layer import TlsLayer
from sprocket.remoting.tls.settings import ClientTls

P = TypeVar("P", bound=asyncio.Protocol)


class TlsDialler:
    """Makes connections with the same certificates and authorities, which are read when needed.

    Args:
        tls: the client's settings.
    """

    def __init__(self, tls: ClientTls) -> None:
        self._tls = tls
        self._files = watched_asking(tls)

    async def connect(self, factory: Callable[[], P], host: str, port: int, *, seconds: float) -> P:
        """The protocol of a new connection, once its handshake is over.

        Args:
            seconds: how long the handshake may take.

        Raises:
            ConnectFailed: the handshake failed.
            OSError: no connection could be made.
            ConfigError: the files of the settings cannot be used.
        """
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[P] = loop.create_future()

        def done(layer: TlsLayer, error: ConnectionLost | None) -> None:
            if ready.done():
                return
            if error is not None:
                ready.set_exception(ConnectFailed(str(error)))
            else:
                ready.set_result(cast(P, layer.above))

        context = self._files.current(loop.time())
        transport, _ = await loop.create_connection(
            lambda: TlsLayer(
                context,
                factory,
                seconds=seconds,
                is_client=True,
                on_done=done,
                server_name=self._name(host),
            ),
            host,
            port,
        )
        try:
            return await ready
        except asyncio.CancelledError:
            transport.abort()
            raise

    def wrapped(self, connected: socket.socket, host: str, now: float) -> ssl.SSLSocket:
        """A connected, blocking socket, after its handshake, for which its own timeout counts.

        Args:
            now: a time that only rises, s.

        Raises:
            ConnectFailed: the handshake failed.
            ConfigError: the files of the settings cannot be used.
        """
        context = self._files.current(now)
        try:
            return context.wrap_socket(connected, server_hostname=self._name(host))
        except ssl.SSLError as error:
            raise ConnectFailed(f"TLS: {in_words(error)}") from error
        except OSError as error:
            why = str(error) or "it does not answer"
            raise ConnectFailed(f"TLS: the handshake failed: {why}") from error

    def _name(self, host: str) -> str:
        return self._tls.server_name or bare(host)
