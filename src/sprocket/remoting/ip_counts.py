"""How many connections each IP address has at a server, those in their TLS handshake too."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from sprocket.base.troubles import Troubles
from sprocket.remoting import address as addresses

logger = logging.getLogger(__name__)


class IpRules(Protocol):
    """Says how many connections an IP address may have."""

    def connections_max(self, ip: str) -> int | None:
        """The most connections of an address; None for any number."""
        ...

    def connection_refused(self, ip: str) -> None:
        """Counts a connection that was closed because of it."""
        ...


class IpCounts:
    """The connections by IP address at one port.

    Args:
        rules: asked for each connection; None if there may be any number.
        beside: the counts of another port, with which an address has one limit.
    """

    def __init__(self, rules: IpRules | None, *, beside: IpCounts | None = None) -> None:
        self._rules = rules
        #: By IP address, the port and the whole addresses, of which each is one connection.
        self._open: dict[str, set[tuple[object, str]]] = {} if beside is None else beside._open
        self._port = object()
        self._troubles: Troubles | None = None

    def enter(self, address: str) -> bool:
        """Counts a connection, once however often it is told; whether it may stay.

        One that may not is not counted.
        """
        ip = ip_of(address)
        limit = self._limit(ip)
        known = self._open.get(ip)
        if known is not None and (self._port, address) in known:
            return True
        if limit is not None and len(known or ()) >= limit:
            self._refused(ip, limit)
            return False
        self._open.setdefault(ip, set()).add((self._port, address))
        return True

    def leave(self, address: str) -> None:
        """Counts a connection no more."""
        ip = ip_of(address)
        known = self._open.get(ip)
        if known is None:
            return
        known.discard((self._port, address))
        if self._troubles is not None and len(known) < (self._limit(ip) or 0):
            self._troubles.ended(ip, f"{ip} has fewer connections than it may have again")
        if not known:
            del self._open[ip]

    def count(self, ip: str) -> int:
        """How many connections an address has, at all ports together."""
        return len(self._open.get(ip, ()))

    def _limit(self, ip: str) -> int | None:
        return None if self._rules is None else self._rules.connections_max(ip)

    def _refused(self, ip: str, limit: int) -> None:
        if self._rules is not None:
            self._rules.connection_refused(ip)
        if self._troubles is None:
            self._troubles = Troubles(asyncio.get_running_loop().time, logger)
        self._troubles.failed(
            ip, f"{ip} has {limit} connections, its limit: further ones are closed"
        )


def ip_of(address: str) -> str:
    """The IP address in `host:port`."""
    return addresses.bare(address.rpartition(":")[0])
