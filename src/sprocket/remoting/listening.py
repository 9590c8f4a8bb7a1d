"""What all servers do that take connections: listen at an address, own the connections, and end."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar, cast

from sprocket.base.deadline import Deadline
from sprocket.base.errors import UsageError
from sprocket.remoting import address
from sprocket.remoting.tls.entrance import Entrance
from sprocket.remoting.turns import turns_of

logger = logging.getLogger(__name__)

#: How long leaving `async with` waits for what is being written, s.
_CLOSE_SECONDS = 1.0
#: Least time between two warnings that there are too many connections.
_WARN_SECONDS = 60.0


class ServedConnection(Protocol):
    """A connection of a client: a protocol of asyncio with these."""

    def close(self) -> None: ...

    async def drain(self, deadline: Deadline) -> None: ...

    async def wait_closed(self, deadline: Deadline) -> None: ...


P = TypeVar("P", bound=ServedConnection)


class ListeningServer(ABC, Generic[P]):
    """A server at one address.

    Use it with `async with`. Leaving it closes all connections; call `drain` before to finish what
    is in progress.

    Args:
        host: IP address or name to listen at; "" for every interface.
        port: 0 for a free one.
        idle_seconds: the pause between two looks at each connection.
        connections_max: the most connections at a time; further ones are closed at once. The
            default is a quarter of the process's limit of open files, since a store that cannot
            open a file fails.
        is_shared: whether other processes may listen at the same port, which the system then
            shares between them.
    """

    def __init__(
        self,
        *,
        host: str,
        port: int,
        idle_seconds: float,
        connections_max: int | None = None,
        is_shared: bool = False,
    ) -> None:
        self._host = address.bare(host)
        self._port = port
        self._idle_seconds = idle_seconds
        self._connections_max = connections_max or _share_of_files()
        self._is_shared = is_shared
        #: The connected clients, in the order of arrival.
        self._peers: dict[P, None] = {}
        self._listening: asyncio.Server | None = None
        self._idle_check: asyncio.TimerHandle | None = None
        self._entrance: Entrance | None = None
        self._warned_at = -_WARN_SECONDS

    @abstractmethod
    def _new_entrance(self) -> Entrance | None:
        """Where connections begin, if some of them may have TLS.

        Raises:
            ConfigError: a certificate, key or file of authorities cannot be used.
        """

    @abstractmethod
    def _new_peer(self) -> P:
        """A new connection, which calls `_forget` when it is closed."""

    @abstractmethod
    def _look_at(self, peer: P) -> None:
        """Closes a connection that is idle."""

    @property
    def address(self) -> str:
        """`host:port` of the listening socket, with the actual port."""
        return address.join(self._host or "0.0.0.0", self.port)

    @property
    def port(self) -> int:
        """The actual port."""
        return self._port

    @property
    def peers(self) -> list[P]:
        """The connected clients, in the order of arrival."""
        return list(self._peers)

    async def __aenter__(self) -> Self:
        """Starts to listen.

        Raises:
            UsageError: the address is in use, or not one of this machine.
            ConfigError: a certificate, key or file of authorities cannot be used.
        """
        loop = asyncio.get_running_loop()
        self._turns = turns_of(loop)
        self._entrance = self._new_entrance()
        try:
            self._listening = await loop.create_server(
                self._accept,
                self._host or None,
                self._port,
                backlog=1024,
                reuse_port=self._is_shared or None,
            )
        except OSError as error:
            raise UsageError(
                f"cannot listen at {self.address}: {why_not_listening(error)}"
            ) from error
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
        for peer in self.peers:
            peer.close()
        for peer in self.peers:
            await peer.wait_closed(deadline)

    async def drain(self, deadline: Deadline) -> None:
        """Accepts no more connections and requests, finishes those in progress, and closes.

        What is unfinished at the deadline is dropped.
        """
        self._stop_listening()
        await asyncio.gather(*(peer.drain(deadline) for peer in self._peers))

    def _accept(self) -> asyncio.Protocol:
        entrance = self._entrance
        count = len(self._peers) + (0 if entrance is None else entrance.count)
        if count >= self._connections_max:
            self._warn()
            return _Refused()
        return self._greeted() if entrance is None else entrance.greet(self._greeted)

    def _greeted(self) -> asyncio.Protocol:
        peer = self._new_peer()
        self._peers[peer] = None
        return cast(asyncio.Protocol, peer)

    def _warn(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._warned_at >= _WARN_SECONDS:
            self._warned_at = now
            logger.warning(
                "%s has %d connections, its limit: more are refused (connections_max sets another)",
                self.address,
                self._connections_max,
            )

    def _forget(self, peer: P) -> None:
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
            self._look_at(peer)
        loop = asyncio.get_running_loop()
        self._idle_check = loop.call_later(self._idle_seconds, self._look_for_idle)


class _Refused(asyncio.Protocol):
    """A connection above the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Closes it."""
        transport.close()


def why_not_listening(error: OSError) -> str:
    """Why an address cannot be listened at, in the system's words, without Python's own."""
    is_name = isinstance(error, socket.gaierror)
    return os.strerror(error.errno) if error.errno and not is_name else error.strerror or str(error)


def _share_of_files() -> int:
    """The most connections that still let the process open files."""
    if sys.platform == "win32":
        return 1 << 16
    import resource

    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 1 << 16 if allowed == resource.RLIM_INFINITY else max(allowed // 4, 1)
