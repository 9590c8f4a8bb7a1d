"""A gRPC server, plain and with TLS at one port."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sprocket.proxy.http2.call_form import Method
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.peer import GrpcPeer
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.listening import ListeningServer
from sprocket.remoting.tls.certificates import watched_serving
from sprocket.remoting.tls.entrance import Entrance
from sprocket.remoting.tls.self_signed import self_signed
from sprocket.remoting.tls.settings import DISABLED, TlsConfig
from sprocket.remoting.unfinished import UnfinishedFrames

logger = logging.getLogger(__name__)

#: What we speak above TLS.
_ALPN = ("h2",)


class GrpcServer(ListeningServer[GrpcPeer]):
    """Answers calls at one address; see `ListeningServer`.

    Args:
        methods: what clients may call, by path: `/package.Service/Method`.
        limits: its limits, and those of each connection.
        tls: whether and how it speaks TLS; without it every connection is plain. If no certificate
            is set, one is made up.
        ips: counts the connections by IP address, and says which are too many.
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
        ips: IpCounts | None = None,
    ) -> None:
        self._limits = limits or GrpcLimits()
        super().__init__(
            host=host,
            port=port,
            idle_seconds=self._limits.idle_seconds,
            connections_max=connections_max,
            is_shared=is_shared,
        )
        self._methods = methods
        self._tls = tls
        self._ips = ips
        self._unfinished = UnfinishedFrames(
            max(self._limits.unfinished_bytes_max, self._limits.message_bytes_max)
        )
        self._unread = UnfinishedFrames(self._limits.unread_bytes_total_max, "unread replies")

    def _new_entrance(self) -> Entrance | None:
        tls, files = self._tls, None
        if tls is None or tls.mode == DISABLED:
            return None
        if tls.certificate is not None:
            files = watched_serving(tls, _ALPN)
        elif (files := self_signed(_ALPN)) is None:
            logger.warning(
                "%s takes plain connections only, and most gRPC clients begin with TLS: set "
                "tls.certificate, or install the package `cryptography`, which makes one up",
                self.address,
            )
            return None
        else:
            logger.info("a certificate is made up, since tls.certificate is not set")
        return Entrance(
            tls,
            self._turns,
            silent_seconds=self._limits.first_seconds,
            files=files,
            ips=self._ips,
        )

    def _new_peer(self) -> GrpcPeer:
        return GrpcPeer(
            self._methods,
            self._limits,
            turns=self._turns,
            unfinished=self._unfinished,
            unread=self._unread,
            ips=self._ips,
            on_close=self._forget,
        )

    def _look_at(self, peer: GrpcPeer) -> None:
        peer.check()
