"""Connections, and under which names their requests count."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.base.errors import SystemBusy
from sprocket.protocol.command import Command
from sprocket.protocol.requests.client import Heartbeat
from sprocket.quotas.meters import MeterTable
from sprocket.quotas.origins import Origins
from sprocket.quotas.refusals import Refusals
from sprocket.quotas.requests import Subject
from sprocket.quotas.rules import QuotaKind, QuotaRules
from sprocket.remoting.inner_peer import InnerPeer
from sprocket.remoting.transport import Peer

BEAT = Command.request(Heartbeat())
ABOUT = Subject("t", "")


class Names:
    """What is known of connections."""

    def __init__(self, *texts: str) -> None:
        self.ids: dict[Peer, str] = {}
        self.user = ""
        self.meters = MeterTable(QuotaRules.parse(texts))
        self.origins = Origins(
            self.meters,
            Refusals(lambda: 0.0),
            client_of=lambda peer: self.ids.get(peer, ""),
            user_of=lambda command: self.user,
        )

    def counted(self, peer: Peer) -> list[str]:
        """The names under which a heartbeat counts."""
        origin = self.origins.of(peer)
        found = self.origins.meters_of(origin, BEAT, peer, ABOUT, 0.0)
        return [f"{meter.kind} {meter.name}" for meter in found]


ALL = [f"{kind} * requests=1" for kind in QuotaKind]


def test_a_connection_counts_by_its_address_until_its_client_id_is_known() -> None:
    names, peer = Names(*ALL), InnerPeer("[fe80::1]:77")
    assert names.counted(peer) == ["ip fe80::1", "client [fe80::1]:77", "topic t"]
    names.ids[peer], names.user = "shop@1", "alice"
    assert names.counted(peer) == ["ip fe80::1", "client shop@1", "user alice", "topic t"]


def test_a_connection_counts_for_its_client_until_it_is_closed() -> None:
    async def main() -> None:
        names = Names("client a connections=1", "client b connections=5")
        first, second = InnerPeer("10.0.0.1:1"), InnerPeer("10.0.0.1:2")
        names.ids = {first: "a", second: "a"}
        assert names.counted(first) == names.counted(first) == ["client a"]
        with pytest.raises(SystemBusy, match="1 connections"):
            names.counted(second)
        await asyncio.sleep(0)
        assert second.is_closed
        third = InnerPeer("10.0.0.1:3")
        names.ids[third] = names.ids[first] = "b"
        assert names.counted(first) == ["client b"]  # so it counts for the other no more
        names.ids[third] = "a"
        assert names.counted(third) == ["client a"]
        third.close()
        first.close()
        left = (names.meters.of(QuotaKind.CLIENT, name, 0.0) for name in "ab")
        assert [meter.connections for meter in left if meter is not None] == [0, 0]

    asyncio.run(main())


def test_requests_of_two_users_are_not_counted_together() -> None:
    names, peer = Names(*ALL), InnerPeer("10.0.0.1:1")
    names.user = "alice"
    names.counted(peer)
    origin = names.origins.of(peer)
    assert names.origins.are_alike(origin, [BEAT, BEAT, BEAT]) == 3
    names.user = "bob"
    assert names.origins.are_alike(origin, [BEAT, BEAT]) == 0
