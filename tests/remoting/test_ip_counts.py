"""Connections by IP address, at plain ports and at those that speak TLS."""

from __future__ import annotations

import asyncio
import logging

import pytest

from sprocket.base.errors import TransportError
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.ip_counts import IpCounts, ip_of
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.tls.settings import TlsConfig
from tests.certificates import Authority
from tests.remoting.parts import Answers, until
from tests.remoting.tls.parts import echoed, serving_with, trusting
from tests.support import run


class Rules:
    """The same limit for all."""

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.refused: list[str] = []

    def connections_max(self, ip: str) -> int | None:
        return self.most

    def connection_refused(self, ip: str) -> None:
        self.refused.append(ip)


def test_an_address_has_so_many_and_others_have_theirs() -> None:
    async def main() -> None:
        rules = Rules(2)
        ips = IpCounts(rules)
        assert [ips.enter(f"10.0.0.1:{port}") for port in (1, 2, 3)] == [True, True, False]
        assert ips.enter("10.0.0.2:1")
        assert ips.enter("[fe80::1]:1")
        ips.leave("10.0.0.1:1")
        ips.leave("10.0.0.1:1")
        assert ips.enter("10.0.0.1:3")
        assert not ips.enter("10.0.0.1:4")
        assert rules.refused == ["10.0.0.1"] * 2
        assert (ips.count("10.0.0.1"), ips.count("10.0.0.9")) == (2, 0)

    asyncio.run(main())


def test_a_connection_that_is_told_twice_is_one() -> None:
    ips = IpCounts(Rules(1))
    assert ips.enter("10.0.0.1:1")
    assert ips.enter("10.0.0.1:1")
    assert ips.count("10.0.0.1") == 1


def test_two_ports_have_one_limit() -> None:
    async def main() -> None:
        first = IpCounts(Rules(2))
        second, third = IpCounts(Rules(2), beside=first), IpCounts(Rules(2), beside=first)
        assert first.enter("10.0.0.1:7")
        assert second.enter("10.0.0.1:7"), "another connection, although from the same address"
        assert not third.enter("10.0.0.1:7")
        assert not first.enter("10.0.0.1:8")
        first.leave("10.0.0.1:7")
        assert third.enter("10.0.0.1:7")
        assert first.count("10.0.0.1") == 2

    asyncio.run(main())


def test_without_rules_any_number_is_counted() -> None:
    ips = IpCounts(None)
    assert all(ips.enter(f"10.0.0.1:{port}") for port in range(1_000))
    assert ips.count("10.0.0.1") == 1_000


def test_an_ip_is_what_stands_before_the_port() -> None:
    assert (ip_of("10.0.0.1:80"), ip_of("[::1]:80"), ip_of("")) == ("10.0.0.1", "::1", "")


async def is_open(port: int) -> tuple[bool, asyncio.StreamWriter]:
    """Connects; whether the server leaves the connection open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await asyncio.wait_for(reader.read(1), 0.2)
    except TimeoutError:
        return True, writer
    except ConnectionError:
        pass
    return False, writer


async def silent_ones(rules: Rules, tls: TlsConfig | None) -> None:
    """Opens connections that say nothing, above the limit of two; then one when they are gone."""
    async with Server(one_by_one(Answers()), tls=tls, ips=IpCounts(rules)) as server:
        lines = [await is_open(server.port) for _ in range(4)]
        assert [each for each, _ in lines] == [True, True, False, False]
        assert rules.refused == ["127.0.0.1"] * 2
        for _, writer in lines:
            writer.close()
        while not (again := await is_open(server.port))[0]:
            again[1].close()
        again[1].close()


@pytest.mark.usefixtures("either_loop")
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
def test_connections_above_the_limit_are_closed_with_a_reason(
    is_tls: bool, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    tls = serving_with(authority.issue("server")) if is_tls else None
    run(silent_ones(Rules(2), tls))
    said = [each.getMessage() for each in caplog.records]
    assert "127.0.0.1 has 2 connections, its limit: further ones are closed" in said


def test_connections_past_their_handshake_count_once(authority: Authority) -> None:
    async def main() -> None:
        rules, tls = Rules(2), serving_with(authority.issue("server"))
        async with Server(one_by_one(Answers()), tls=tls, ips=IpCounts(rules)) as server:
            for client_tls in (trusting(authority), None, trusting(authority)):
                async with Pool(tls=client_tls) as one, Pool(tls=trusting(authority)) as two:
                    assert await echoed(server, one) == await echoed(server, two)
                    async with Pool(tls=client_tls) as third:
                        with pytest.raises(TransportError):
                            await echoed(server, third)
                await until(lambda: not server.peers)

    run(main())
