"""The connections of a server, and under which names their requests count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command
from sprocket.quotas.meters import Meter, MeterTable
from sprocket.quotas.refusals import Refusals
from sprocket.quotas.requests import NOTHING, Subject
from sprocket.quotas.rules import QuotaKind
from sprocket.remoting.ip_counts import ip_of
from sprocket.remoting.transport import Peer

#: After these a connection may have another client id.
_NAMING = frozenset({RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT})
_COUNTING = (QuotaKind.CLIENT, QuotaKind.USER)


class Origin:
    """A connection.

    Attributes:
        ip: its address without the port.
        client: its client id, once a heartbeat has said it; until then its address.
        user: who signed its last request; empty if that is not known.
        ahead: how many of its next requests are admitted already.
        version: of the table, when its meters were asked for; below 0 its client id must be asked
            for first.
        meters: those of its address, client and user.
    """

    __slots__ = ("ahead", "client", "counted", "ip", "meters", "user", "version")

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self.client = ""
        self.user = ""
        self.ahead = 0
        self.version = -1
        self.meters: list[Meter] = []
        #: The meters that count it as a connection.
        self.counted: dict[QuotaKind, Meter] = {}


class Origins:
    """All connections that have sent a request while there were rules.

    Args:
        client_of, user_of: see `Admission`.
    """

    def __init__(
        self,
        meters: MeterTable,
        refusals: Refusals,
        *,
        client_of: Callable[[Peer], str],
        user_of: Callable[[Command], str],
    ) -> None:
        self._meters = meters
        self._refusals = refusals
        self._client_of = client_of
        self._user_of = user_of
        self._callers: dict[Peer, Origin] = {}

    def of(self, peer: Peer) -> Origin:
        """A connection."""
        origin = self._callers.get(peer)
        if origin is None:
            origin = self._callers[peer] = Origin(ip_of(peer.address))
            peer.on_close(self._closed)
        return origin

    def meters_of(
        self, origin: Origin, command: Command, peer: Peer, about: Subject, now: float
    ) -> Sequence[Meter]:
        """The meters that count a request.

        Raises:
            SystemBusy: its client or user has too many connections; this one is closed.
        """
        user = self._user_of(command)
        if origin.version != self._meters.version or user != origin.user:
            self._learn(origin, peer, user, now)
        if command.code in _NAMING:
            origin.version = -1
        if about is NOTHING:
            return origin.meters
        found, of = [*origin.meters], self._meters.of
        if about.topic and (meter := of(QuotaKind.TOPIC, about.topic, now)) is not None:
            found.append(meter)
        if about.group and (meter := of(QuotaKind.GROUP, about.group, now)) is not None:
            found.append(meter)
        return found

    def _learn(self, origin: Origin, peer: Peer, user: str, now: float) -> None:
        """Asks for the meters of a connection."""
        if origin.version < 0:
            origin.client = self._client_of(peer) or peer.address
        origin.user, origin.meters = user, []
        for kind, name in (
            (QuotaKind.IP, origin.ip),
            (QuotaKind.CLIENT, origin.client),
            (QuotaKind.USER, user),
        ):
            if name and (meter := self._meters.of(kind, name, now)) is not None:
                if kind in _COUNTING and origin.counted.get(kind) is not meter:
                    self._count(origin, peer, meter)
                origin.meters.append(meter)
        origin.version = self._meters.version

    def are_alike(self, origin: Origin, commands: Sequence[Command]) -> int:
        """How many of the first requests have the code and the user of the first one."""
        code, user = commands[0].code, origin.user
        for number, command in enumerate(commands):
            if command.code != code or self._user_of(command) != user:
                return number
        return len(commands)

    def _count(self, origin: Origin, peer: Peer, meter: Meter) -> None:
        before = origin.counted.pop(meter.kind, None)
        if before is not None:
            before.connections -= 1
        most = meter.quota.connections
        if most is not None and meter.connections >= most:
            # After the refusal is written.
            asyncio.get_running_loop().call_soon(peer.close)
            raise self._refusals.refusal(meter, "connections")
        meter.connections += 1
        origin.counted[meter.kind] = meter

    def _closed(self, peer: Peer) -> None:
        origin = self._callers.pop(peer, None)
        if origin is not None:
            for meter in origin.counted.values():
                meter.connections -= 1
