"""A server of RocketMQ's remoting protocol."""

from __future__ import annotations

from sprocket.remoting.endpoints import BatchEndpoint, Shortcut
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.listening import ListeningServer
from sprocket.remoting.tls.entrance import Entrance, entrance_of
from sprocket.remoting.tls.settings import TlsConfig
from sprocket.remoting.transport import Peer
from sprocket.remoting.unfinished import UnfinishedFrames


class Server(ListeningServer[Peer]):
    """Handles requests at one address; see `ListeningServer`.

    Args:
        endpoint: handles the requests of one read, on the event loop. See `one_by_one`.
        limits: the limits of each connection.
        tls: whether and how it speaks TLS; without it every connection is plain.
        ips: counts the connections by IP address, and says which are too many.
        shortcut: handles the first requests of a read, if it can.
    """

    def __init__(
        self,
        endpoint: BatchEndpoint,
        *,
        shortcut: Shortcut | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        limits: ConnectionLimits | None = None,
        connections_max: int | None = None,
        tls: TlsConfig | None = None,
        ips: IpCounts | None = None,
    ) -> None:
        self._limits = limits or ConnectionLimits()
        super().__init__(
            host=host,
            port=port,
            idle_seconds=self._limits.idle_seconds,
            connections_max=connections_max,
        )
        self._endpoint = endpoint
        self._shortcut = shortcut
        self._unfinished = UnfinishedFrames(self._limits.unfinished_bytes_allowed)
        self._tls = tls
        self._ips = ips

    def _new_entrance(self) -> Entrance | None:
        return entrance_of(
            self._tls, self._turns, silent_seconds=self._limits.idle_seconds, ips=self._ips
        )

    def _new_peer(self) -> Peer:
        peer = Peer(
            self._endpoint,
            self._limits,
            is_client=True,
            turns=self._turns,
            unfinished=self._unfinished,
            ips=self._ips,
            shortcut=self._shortcut,
        )
        peer.on_close(self._forget)
        return peer

    def _look_at(self, peer: Peer) -> None:
        if not peer.has_spoken and not peer.is_busy:
            peer.close()
        peer.has_spoken = False
