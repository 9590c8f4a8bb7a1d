"""A gRPC server: listens at an address, plain and with TLS, and owns its connections."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from sprocket.base.deadline import Deadline
from sprocket.base.errors import UsageError
from sprocket.proxy.http2.call_form import Method
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.peer import GrpcPeer
from sprocket.remoting import address
from sprocket.remoting.server import Refused, share_of_files, why_not_listening
from sprocket.remoting.tls.certificates import watched_serving
from sprocket.remoting.tls.entrance import Entrance
from sprocket.remoting.tls.self_signed import self_signed
from sprocket.remoting.tls.settings import DISABLED, TlsConfig
from sprocket.remoting.turns import Turns
from sprocket.remoting.unfinished import UnfinishedFrames

logger = logging.getLogger(__name__)

#: How long leaving `async with` waits for what is being written, s.
_CLOSE_SECONDS = 1.0
#: What we speak above TLS.
_ALPN = ("h2",)


class GrpcServer:
    """Answers calls at one address. Use it with `async with`; `drain` before lets calls end.

    Args:
        methods: what clients may call, by path: `/package.Service/Method`.
        host: IP address or name to listen at; "" for every interface.
        port: 0 for a free one.
        limits: its limits, and those of each connection.
        connections_max: the most connections at a time; further ones are closed at once. The
            default is a quarter of the process's limit of open files.
        tls: whether and how it speaks TLS; without it every connection is plain. If no certificate
            is set, one is made up.
        is_shared: whether other processes may listen at the same port, which the system then
            shares between them.
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: GrpcLimits | None = None,
        connections_max: int | None = None,
        tls: TlsConfig | None = None,
        is_shared: bool = False,
    ) -> None:
        self._methods = methods
        self._host = address.bare(host)
        self._port = port
        self._limits = limits or GrpcLimits()
        self._connections_max = connections_max or share_of_files()
        self._tls = tls
        self._is_shared = is_shared
        #: The connected clients, in the order of arrival.
        self._peers: dict[GrpcPeer, None] = {}
        self._unfinished = UnfinishedFrames(
            max(self._limits.unfinished_bytes_max, self._limits.message_bytes_max)
        )
        self._unread = UnfinishedFrames(self._limits.unread_bytes_total_max, "unread replies")
        self._listening: asyncio.Server | None = None
        self._idle_check: asyncio.TimerHandle | None = None
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
    def peers(self) -> list[GrpcPeer]:
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
            where = address.join(self._host or "0.0.0.0", self._port)
            raise UsageError(f"cannot listen at {where}: {why_not_listening(error)}") from error
        self._port = self._listening.sockets[0].getsockname()[1]
        self._check_peers()
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
        """Accepts no more connections and calls, lets those in progress end, and closes.

        Calls that are not over at the deadline are cancelled.
        """
        self._stop_listening()
        await asyncio.gather(*(peer.drain(deadline) for peer in self._peers))

    def _new_entrance(self) -> Entrance | None:
        """Where connections begin, if some of them may have TLS."""
        tls, files = self._tls, None
        if tls is None or tls.mode == DISABLED:
            return None
        if tls.certificate is not None:
            files = watched_serving(tls, _ALPN)
        elif (files := self_signed(_ALPN)) is None:
            logger.warning(
                "%s takes plain connections only, and most gRPC clients begin with TLS: set "
                "tls.certificate, or install the package `cryptography`, which makes one up",
                address.join(self._host or "0.0.0.0", self._port),
            )
            return None
        else:
            logger.info("a certificate is made up, since tls.certificate is not set")
        return Entrance(tls, self._turns, silent_seconds=self._limits.first_seconds, files=files)

    def _accept(self) -> asyncio.Protocol:
        entrance = self._entrance
        count = len(self._peers) + (0 if entrance is None else entrance.count)
        if count >= self._connections_max:
            return Refused()
        return self._new_peer() if entrance is None else entrance.greet(self._new_peer)

    def _new_peer(self) -> GrpcPeer:
        peer = GrpcPeer(
            self._methods,
            self._limits,
            turns=self._turns,
            unfinished=self._unfinished,
            unread=self._unread,
            on_close=self._forget,
        )
        self._peers[peer] = None
        return peer

    def _forget(self, peer: GrpcPeer) -> None:
        self._peers.pop(peer, None)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.close()
        if self._idle_check is not None:
            self._idle_check.cancel()

    def _check_peers(self) -> None:
        """Closes idle connections. It runs every `idle_seconds`, so an idle one lives up to twice
        as long; one check for all costs less than a timer for each.
        """
        for peer in self.peers:
            peer.check()
        loop = asyncio.get_running_loop()
        self._idle_check = loop.call_later(self._limits.idle_seconds, self._check_peers)
