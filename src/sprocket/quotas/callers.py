"""The connections of a server, and under which names their requests count."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command
from sprocket.quotas.meters import Meter, MeterTable
from sprocket.quotas.refusals import Refusals
from sprocket.quotas.requests import Subject
from sprocket.quotas.rules import QuotaKind
from sprocket.remoting.ip_counts import ip_of
from sprocket.remoting.transport import Peer

#: After these a connection may have another client id.
_NAMING = frozenset({RequestCode.HEART_BEAT, RequestCode.UNREGISTER_CLIENT})
_COUNTING = (QuotaKind.CLIENT, QuotaKind.USER)


class Caller:
    """A connection.

    Attributes:
        ip: its address without the port.
        client: its client id, once a heartbeat has said it; until then its address.
        user: who signed its last request; empty if that is not known.
        ahead: how many of its next requests are admitted already.
        is_stale: whether its client id must be asked for.
    """

    __slots__ = ("ahead", "client", "counted", "ip", "is_stale", "user")

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self.client = ""
        self.user = ""
        self.ahead = 0
        self.is_stale = True
        #: The meters that count it as a connection.
        self.counted: dict[QuotaKind, Meter] = {}


class Callers:
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
        self._callers: dict[Peer, Caller] = {}

    def of(self, peer: Peer) -> Caller:
        """A connection."""
        caller = self._callers.get(peer)
        if caller is None:
            caller = self._callers[peer] = Caller(ip_of(peer.address))
            peer.on_close(self._closed)
        return caller

    def meters_of(
        self, caller: Caller, command: Command, peer: Peer, about: Subject, now: float
    ) -> list[Meter]:
        """The meters that count a request.

        Raises:
            SystemBusy: its client or user has too many connections; this one is closed.
        """
        if caller.is_stale:
            caller.client = self._client_of(peer) or peer.address
            caller.is_stale = False
        if command.code in _NAMING:
            caller.is_stale = True
        caller.user = self._user_of(command)
        of, found = self._meters.of, []
        for kind, name in (
            (QuotaKind.IP, caller.ip),
            (QuotaKind.CLIENT, caller.client),
            (QuotaKind.USER, caller.user),
            (QuotaKind.TOPIC, about.topic),
            (QuotaKind.GROUP, about.group),
        ):
            if name and (meter := of(kind, name, now)) is not None:
                if kind in _COUNTING and caller.counted.get(kind) is not meter:
                    self._count(caller, peer, meter)
                found.append(meter)
        return found

    def changed(self) -> None:
        """Forgets who is counted where: the rules are others now."""
        for caller in self._callers.values():
            caller.is_stale = True

    def are_alike(self, caller: Caller, commands: Sequence[Command]) -> int:
        """How many of the first requests have the code and the user of the first one."""
        code, user = commands[0].code, caller.user
        for number, command in enumerate(commands):
            if command.code != code or self._user_of(command) != user:
                return number
        return len(commands)

    def _count(self, caller: Caller, peer: Peer, meter: Meter) -> None:
        before = caller.counted.pop(meter.kind, None)
        if before is not None:
            before.connections -= 1
        most = meter.quota.connections
        if most is not None and meter.connections >= most:
            # After the refusal is written.
            asyncio.get_running_loop().call_soon(peer.close)
            raise self._refusals.refusal(meter, "connections")
        meter.connections += 1
        caller.counted[meter.kind] = meter

    def _closed(self, peer: Peer) -> None:
        caller = self._callers.pop(peer, None)
        if caller is not None:
            for meter in caller.counted.values():
                meter.connections -= 1
