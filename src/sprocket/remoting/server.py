"""A server: listens at an address and owns the connections of its clients."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from types import TracebackType
from typing import Self

from sprocket.base.deadline import Deadline
from sprocket.base.errors import UsageError
from sprocket.remoting import address
from sprocket.remoting.endpoints import BatchEndpoint
from sprocket.remoting.ip_counts import IpCounts, IpRules
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.tls.entrance import Entrance, entrance_of
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.remoting.transport import Peer
from sprocket.remoting.turns import Turns
from sprocket.remoting.unfinished import UnfinishedFrames

logger = logging.getLogger(__name__)

#: How long leaving `async with` waits for replies that are being written.
_CLOSE_SECONDS = 1.0
#: Least time between two warnings that there are too many connections.
_WARN_SECONDS = 60.0


class Server:
    """Handles requests at one address.

    Use it with `async with`. Leaving it closes all connections; call `drain` before to finish the
    requests in progress.

    Args:
        endpoint: handles the requests of one read, on the event loop. See `one_by_one`.
        host: IP address or name to listen at; "" for every interface.
        port: 0 for a free one.
        limits: the limits of each connection.
        connections_max: the most connections at a time; further ones are closed at once. The
            default is a quarter of the process's limit of open files, since a store that cannot
            open a file fails.
        tls: whether and how it speaks TLS; without it every connection is plain.
        ip_rules: say how many connections an IP address may have; None for any number.
    """

    def __init__(
        self,
        endpoint: BatchEndpoint,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: ConnectionLimits | None = None,
        connections_max: int | None = None,
        tls: TlsConfig | None = None,
        ip_rules: IpRules | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._host = address.bare(host)
        self._port = port
        self._limits = limits or ConnectionLimits()
        #: The connected clients, in the order of arrival.
        self._peers: dict[Peer, None] = {}
        self._unfinished = UnfinishedFrames(self._limits.unfinished_bytes_allowed)
        self._listening: asyncio.Server | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self._connections_max = connections_max or share_of_files()
        self._warned_at = -_WARN_SECONDS
        self._tls = tls
        self._ips = IpCounts(ip_rules)
        self._entrance: Entrance | None = None

    @property
    def address(self) -> str:
        """`host:port` of the listening socket, with the actual port."""
        return address.join(self._host or "0.0.0.0", self.port)

    @property
    def port(self) -> int:
        """The actual port."""
        return self._port

    @property
    def peers(self) -> list[Peer]:
        """The connected clients, in the order of arrival."""
        return list(self._peers)

    async def __aenter__(self) -> Self:
        """Starts to listen.

        Raises:
            UsageError: the address is in use, or not one of this machine.
            ConfigError: a certificate, key or file of authorities cannot be used.
        """
        loop = asyncio.get_running_loop()
        self._turns = Turns(loop)
        self._entrance = entrance_of(
            self._tls, self._turns, silent_seconds=self._limits.idle_seconds, ips=self._ips
        )
        try:
            self._listening = await loop.create_server(
                self._accept, self._host or None, self._port, backlog=1024
            )
        except OSError as error:
            where = address.join(self._host or "0.0.0.0", self._port)
            raise UsageError(f"cannot listen at {where}: {why_not_listening(error)}") from error
        self._port = self._listening.sockets[0].getsockname()[1]
        self._look_for_idle()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop_listening()
        if self._entrance is not None:
            self._entrance.close()
        deadline = Deadline.after(_CLOSE_SECONDS)
        for peer in self._peers:
            peer.close()
        for peer in self.peers:
            await peer.wait_closed(deadline)

    async def drain(self, deadline: Deadline) -> None:
        """Accepts no more connections and requests, finishes those in progress, and closes.

        Requests that are unfinished at the deadline are dropped.
        """
        self._stop_listening()
        await asyncio.gather(*(peer.drain(deadline) for peer in self._peers))

    def _accept(self) -> asyncio.Protocol:
        entrance = self._entrance
        count = len(self._peers) + (0 if entrance is None else entrance.count)
        if count >= self._connections_max:
            self._warn()
            return Refused()
        return self._new_peer() if entrance is None else entrance.greet(self._new_peer)

    def _new_peer(self) -> Peer:
        peer = Peer(
            self._endpoint,
            self._limits,
            is_client=True,
            turns=self._turns,
            unfinished=self._unfinished,
            ips=self._ips,
        )
        self._peers[peer] = None
        peer.on_close(self._forget)
        return peer

    def _warn(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= _WARN_SECONDS:
            self._warned_at = now
            logger.warning(
                "%s has %d connections, its limit: more are refused",
                self.address,
                self._connections_max,
            )

    def _forget(self, peer: Peer) -> None:
        self._peers.pop(peer, None)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.close()
        if self._idle_check is not None:
            self._idle_check.cancel()

    def _look_for_idle(self) -> None:
        """Closes idle connections. It runs every `idle_seconds`, so an idle one lives up to twice
        as long. One check for all costs less than a timer that each request would have to reset.
        """
        for peer in self.peers:
            if not peer.has_spoken and not peer.is_busy:
                peer.close()
            peer.has_spoken = False
        loop = asyncio.get_running_loop()
        self._idle_check = loop.call_later(self._limits.idle_seconds, self._look_for_idle)


class Refused(asyncio.Protocol):
    """A connection above the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Closes it."""
        transport.close()


def why_not_listening(error: OSError) -> str:
    """Why an address cannot be listened at, in the system's words, without Python's own."""
    is_name = isinstance(error, socket.gaierror)
    return os.strerror(error.errno) if error.errno and not is_name else error.strerror or str(error)


def share_of_files() -> int:
    """The most connections that still let the process open files."""
    if sys.platform == "win32":
        return 1 << 16
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 16 if allowed == resource.RLIM_INFINITY else max(allowed // 4, 1)
