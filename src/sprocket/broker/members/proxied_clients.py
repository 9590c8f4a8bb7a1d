"""The clients behind proxies as members: a proxy lists them over its one connection.

A broker knows members by their connections. A client of a proxy has none here, so another peer
stands for it, which is gone with the proxy's connection. The proxy sends what has changed since its
last list, and compares how many clients the broker knows: after a restart it lists them all again.
RocketMQ has no such request: its brokers do not see the clients of a proxy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from functools import partial
from itertools import islice
from typing import TypeVar

from sprocket.base.deadline import Deadline, loop_ms
from sprocket.base.errors import RemoteProtocolError
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.membership import MembershipRequests
from sprocket.broker.tables.clients import ClientInfo
from sprocket.protocol.bodies import HeartbeatBody, ProxiedClientBody, ProxiedClientsBody
from sprocket.protocol.codes import OwnRequestCode
from sprocket.protocol.command import Buffer, Command, Header, Reply
from sprocket.protocol.requests.client import IdsChanged, ProxiedClients, ProxiedClientsReply
from sprocket.remoting.inner_peer import InnerPeer
from sprocket.remoting.transport import Peer

T = TypeVar("T")

_BODY_BYTES_MAX = 4 << 20
_WORD_MAX = 64
_ID_MAX = 512
#: Clients in one turn of the loop.
_AT_ONCE = 16


class ProxiedPeer(InnerPeer):
    """Stands for a client; requests to it go to its proxy.

    Attributes:
        groups: what it is a member of, by whether as a consumer.
        info: what the table of members has of it.
    """

    def __init__(self, proxy: Peer, address: str, language: str) -> None:
        super().__init__(address, language=language)
        self._proxy = proxy
        self.groups: frozenset[tuple[bool, str]] = frozenset()
        self.info: ClientInfo | None = None

    def described(self, info: ClientInfo, groups: frozenset[tuple[bool, str]]) -> None:
        """Records what the proxy said of it last."""
        self.info, self.groups = info, groups

    def lives(self, now_ms: int, heard_ms: int) -> None:
        """Records a sign of life: its proxy has one of it."""
        if self.info is not None:
            self.info.seen_ms, self.info.heard_ms = now_ms, heard_ms

    async def call(
        self, header: Header, *, body: Buffer = b"", deadline: Deadline, is_held: bool = False
    ) -> Command:
        """Has the client answer a request."""
        return await self._proxy.call(header, body=body, deadline=deadline, is_held=is_held)

    def send_oneway(self, header: Header, *, body: Buffer = b"") -> None:
        """Sends a request without a reply. Clients that pop share no queues: they need no notice of
        other members."""
        if header.code != IdsChanged.code and not self.is_closed:
            self._proxy.send_oneway(header, body=body)

    @property
    def is_closed(self) -> bool:
        """Whether the client or its proxy is gone."""
        return super().is_closed or self._proxy.is_closed

    @property
    def is_full(self) -> bool:
        """Whether the proxy reads too little of what it is sent."""
        return self._proxy.is_full


class ProxiedClientRequests:
    """Keeps the members behind proxies up to date."""

    def __init__(self, membership: MembershipRequests, clock: Clock) -> None:
        self._membership = membership
        self._clock = clock
        #: By the proxy's connection and the client's id.
        self._known: dict[Peer, dict[str, ProxiedPeer]] = {}

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {OwnRequestCode.PROXIED_CLIENTS: self.update}

    def update(self, command: Command, peer: Peer) -> Awaitable[Reply]:
        """Records which clients have come, changed and left; all others live on.

        Raises:
            RemoteProtocolError: the body is no list of clients.
            SystemBusy: there are too many topics, groups or members.
        """
        header = command.read(ProxiedClients)
        if len(command.body) > _BODY_BYTES_MAX:
            raise RemoteProtocolError(f"a list of clients has at most {_BODY_BYTES_MAX} bytes")
        body = ProxiedClientsBody.of_request(command.body)
        if peer not in self._known:
            self._known[peer] = {}
            peer.on_close(self._gone)
        return self._updated(header, body, peer)

    async def _updated(self, header: ProxiedClients, body: ProxiedClientsBody, peer: Peer) -> Reply:
        known = self._known.get(peer, {})
        left = list(known) if header.is_whole else body.left
        for names in _slices(iter(left)):
            for name in names:
                if (client := known.pop(name, None)) is not None:
                    client.close()
            await asyncio.sleep(0)
        for clients in _slices(iter(body.clients)):
            for each in clients:
                if each.heartbeat is not None and not peer.is_closed:
                    await self._described(each, each.heartbeat, known, peer)
            await asyncio.sleep(0)
        now_ms, heard_ms = self._clock.now_ms(), loop_ms()
        for client in known.values():
            client.lives(now_ms, heard_ms)
        return Reply(ProxiedClientsReply(known=len(known)))

    async def _described(
        self,
        each: ProxiedClientBody,
        beat: HeartbeatBody,
        known: dict[str, ProxiedPeer],
        peer: Peer,
    ) -> None:
        groups = _groups_of(beat)
        if not groups or len(beat.client_id) > _ID_MAX:
            return
        client = known.get(beat.client_id)
        if client is not None and (client.is_closed or not client.groups <= groups):
            client.close()
            client = None
        if client is None:
            language = (each.language or "OTHER")[:_WORD_MAX]
            client = ProxiedPeer(peer, each.address[:_WORD_MAX], language)
        info = self._membership.described(
            client, beat.client_id, language=client.language, version=each.version
        )
        outcome = self._membership.record(beat, info, client)
        client.described(info, groups)
        if known.get(beat.client_id) is not client:
            known[beat.client_id] = client
            client.on_close(partial(_forget, known, beat.client_id))
        if not isinstance(outcome, Reply):
            await outcome

    def _gone(self, peer: Peer) -> None:
        """The clients of a closed connection are gone; if they are many, in several turns."""
        known = self._known.get(peer, {})
        for name in list(islice(known, _AT_ONCE)):
            known.pop(name).close()
        if known:
            asyncio.get_running_loop().call_soon(self._gone, peer)
        else:
            self._known.pop(peer, None)


def _forget(known: dict[str, ProxiedPeer], name: str, client: Peer) -> None:
    if known.get(name) is client:
        del known[name]


def _groups_of(beat: HeartbeatBody) -> frozenset[tuple[bool, str]]:
    consumed = {(True, each.group_name) for each in beat.consumers}
    return frozenset(consumed | {(False, each.group_name) for each in beat.producers})


def _slices(items: Iterator[T]) -> Iterator[list[T]]:
    while some := list(islice(items, _AT_ONCE)):
        yield some
