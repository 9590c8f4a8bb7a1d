"""The entrance of a port that takes TLS: the first byte of a connection decides.

0x16 begins a handshake; no frame and no report of a slave begins with it, since it would be one of
more than 350 MiB, or an offset of more than 10^18. Source: NettyRemotingServer.HandshakeHandler of
RocketMQ 5.x. A connection that is plain is handed over with its first bytes, and costs no more
from then on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from sprocket.base.errors import ConnectionLost
from sprocket.remoting import address as addresses
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.tls.certificates import LOOK_SECONDS, WatchedFiles, watched_serving
from sprocket.remoting.tls.layer import TlsLayer
from sprocket.remoting.tls.settings import ENFORCING, TlsConfig
from sprocket.remoting.turns import Turns

logger = logging.getLogger(__name__)

Factory = Callable[[], asyncio.Protocol]
#: The first byte of a handshake.
_HANDSHAKE = 0x16
#: Least time between two warnings about connections that came to nothing, s.
_WARN_SECONDS = 60.0


class Entrance:
    """The connections of one port until they are known to be plain, or their handshake is over.

    Args:
        config: the settings, with a certificate.
        turns: shares the loop between handshakes and requests.
        silent_seconds: how long a connection may send nothing at all.
        files: the certificate; by default that of the settings.
        ips: counts the connections, and says which are too many.

    Raises:
        ConfigError: a file cannot be read, or the files do not go together.
    """

    def __init__(
        self,
        config: TlsConfig,
        turns: Turns,
        *,
        silent_seconds: float,
        files: WatchedFiles | None = None,
        ips: IpCounts | None = None,
    ) -> None:
        self._config = config
        self._turns = turns
        self.silent_seconds = silent_seconds
        self._loop = asyncio.get_running_loop()
        self._files = files or watched_serving(config)
        self._files.current(self._loop.time())
        #: Connections, with their addresses.
        self._waiting: dict[asyncio.Transport, str] = {}
        self._ips = ips
        self._watch: asyncio.TimerHandle | None = None
        self._warned_at = -_WARN_SECONDS
        self._unwarned = 0
        self._look_again()

    @property
    def count(self) -> int:
        """The connections that are neither plain nor past their handshake yet."""
        return len(self._waiting)

    def greet(self, factory: Factory) -> asyncio.Protocol:
        """The protocol of a new connection, which gives it to that of `factory` in the end."""
        return _Greeting(self, factory)

    def close(self) -> None:
        """Closes the connections that are still here, and looks at files no more."""
        if self._watch is not None:
            self._watch.cancel()
        for transport in tuple(self._waiting):
            transport.close()

    # For the connections.

    def add(self, transport: asyncio.Transport) -> None:
        """Counts a connection, or closes it if its address has too many."""
        address = _address(transport)
        if self._ips is not None and not self._ips.enter(address):
            transport.abort()
        else:
            self._waiting[transport] = address

    # One that goes in is counted on by whoever it goes to, under the same address.
    def forget(self, transport: asyncio.Transport, *, goes_in: bool = False) -> None:
        """Counts it no more."""
        address = self._waiting.pop(transport, None)
        if address is not None and not goes_in and self._ips is not None:
            self._ips.leave(address)

    def go_in(self, transport: asyncio.Transport, data: bytes, factory: Factory) -> None:
        """Gives a connection that has sent its first bytes to the protocol that they need."""
        inside: asyncio.Protocol
        if data[0] == _HANDSHAKE:
            inside = self._layer(transport, factory)
        elif self._config.mode == ENFORCING:
            self._warn(transport, "it does not speak TLS, and tls.mode is enforcing")
            transport.abort()
            return
        else:
            self.forget(transport, goes_in=True)
            inside = factory()
        transport.set_protocol(inside)
        inside.connection_made(transport)
        inside.data_received(data)

    def _layer(self, transport: asyncio.Transport, factory: Factory) -> TlsLayer:
        def done(layer: TlsLayer, error: ConnectionLost | None) -> None:
            self.forget(transport, goes_in=error is None)
            if error is not None:
                self._warn(transport, str(error))

        return TlsLayer(
            self._files.current(self._loop.time()),
            factory,
            seconds=self._config.handshake_ms / 1000,
            is_client=False,
            on_done=done,
            turns=self._turns,
        )

    def _warn(self, transport: asyncio.Transport, why: str) -> None:
        """Warns of a connection that came to nothing; at most once a minute, since anybody can."""
        now = self._loop.time()
        if now - self._warned_at < _WARN_SECONDS:
            self._unwarned += 1
            return
        more = f" ({self._unwarned} more since the last warning)" if self._unwarned else ""
        self._warned_at, self._unwarned = now, 0
        peer = _address(transport)
        logger.warning("the connection from %s is closed: %s%s", peer, why, more)

    def _look_again(self) -> None:
        self._files.current(self._loop.time())
        self._watch = self._loop.call_later(LOOK_SECONDS, self._look_again)


def entrance_of(
    config: TlsConfig | None,
    turns: Turns,
    *,
    silent_seconds: float,
    ips: IpCounts | None = None,
) -> Entrance | None:
    """The entrance of a port; None if all of its connections are plain.

    Raises:
        ConfigError: a certificate, key or file of authorities cannot be used.
    """
    if config is None or not config.is_serving:
        return None
    return Entrance(config, turns, silent_seconds=silent_seconds, ips=ips)


def _address(transport: asyncio.BaseTransport) -> str:
    return addresses.of_socket(transport.get_extra_info("peername"))


class _Greeting(asyncio.Protocol):
    """A connection that has sent nothing yet."""

    def __init__(self, entrance: Entrance, factory: Factory) -> None:
        self._entrance = entrance
        self._factory = factory
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Waits for the first byte."""
        self._transport = cast(asyncio.Transport, transport)
        self._entrance.add(self._transport)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._entrance.silent_seconds, self._transport.close)

    def data_received(self, data: bytes) -> None:
        """Hands over."""
        if self._timer is not None:
            self._timer.cancel()
        self._entrance.go_in(self._transport, data, self._factory)

    def connection_lost(self, error: Exception | None) -> None:
        """It never said anything."""
        if self._timer is not None:
            self._timer.cancel()
        self._entrance.forget(self._transport)
