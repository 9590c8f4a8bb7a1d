"""Clients behind a proxy, as a broker is told of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sprocket.protocol.bodies import (
    ConsumerConnection,
    ConsumerData,
    HeartbeatBody,
    ProxiedClientBody,
    ProxiedClientsBody,
)
from sprocket.protocol.requests.client import (
    ConsumerConnections,
    ProxiedClients,
    ProxiedClientsReply,
)
from tests.broker.parts import SUCCESS, Asker, another, play, settle


def client(name: str, *groups: str, **more: Any) -> ProxiedClientBody:
    consumers = [ConsumerData(group_name=group) for group in groups]
    beat = HeartbeatBody(client_id=name, consumers=consumers)
    return ProxiedClientBody(address="10.1.1.1:5", heartbeat=beat, language="GO", **more)


async def told(
    asker: Asker, *clients: ProxiedClientBody, left: tuple[str, ...] = (), is_whole: bool = False
) -> int:
    body = ProxiedClientsBody(clients=list(clients), left=list(left))
    reply = await asker.call(ProxiedClients(is_whole=is_whole), body.encode())
    assert reply.code == SUCCESS, reply.remark
    return reply.read(ProxiedClientsReply).known


async def members(asker: Asker, group: str = "g") -> list[str]:
    reply = await asker.call(ConsumerConnections(consumer_group=group))
    found = [] if reply.code else ConsumerConnection.decode(reply.body).connection_set
    return sorted(each.client_id for each in found)


def test_clients_come_change_and_leave() -> None:
    async def test(asker: Asker) -> None:
        assert await told(asker, client("a", "g"), client("b", "g", "h")) == 2
        assert (await members(asker), await members(asker, "h")) == (["a", "b"], ["b"])
        assert await told(asker, client("b", "h"), left=("a", "nobody")) == 1
        assert (await members(asker), await members(asker, "h")) == ([], ["b"])
        assert await told(asker, client("c", "g"), is_whole=True) == 1
        assert (await members(asker), await members(asker, "h")) == (["c"], [])
        assert await told(asker) == 1

    play(test)


def test_clients_are_gone_with_the_connection_of_their_proxy() -> None:
    async def test(asker: Asker) -> None:
        async with another(asker) as proxy:
            assert await told(proxy, *(client(f"c{at}", "g") for at in range(100))) == 100
            assert len(await members(asker)) == 100
        await settle()
        assert await members(asker) == []

    play(test)


def test_clients_of_a_silent_proxy_are_gone_and_those_of_one_that_speaks_are_not() -> None:
    async def test(asker: Asker) -> None:
        async with another(asker) as silent:
            await told(silent, client("s", "g"))
            for _ in range(30):
                await told(asker, client("a", "g"))
                await asyncio.sleep(10)
            assert await members(asker) == ["a"]
            assert await told(silent) == 0

    play(test)


def test_lists_that_are_none_are_refused_and_what_is_in_no_group_is_not_kept() -> None:
    async def test(asker: Asker) -> None:
        assert await told(asker, client("a"), client("x" * 600, "g"), ProxiedClientBody()) == 0
        for body in (b"[]", b"{", b'{"clients":[1]}', b" " * (5 << 20)):
            assert await asker.code(ProxiedClients(), body) != SUCCESS
        assert await told(asker, client("a", "g", version=3)) == 1

    play(test)


@pytest.mark.parametrize("most", [2, 3])
def test_members_are_bounded(most: int) -> None:
    async def test(asker: Asker) -> None:
        body = ProxiedClientsBody(clients=[client(f"c{at}", "g") for at in range(5)])
        assert await asker.code(ProxiedClients(), body.encode()) == 2
        assert await members(asker) == [f"c{at}" for at in range(most)]

    play(test, members_max=most)
