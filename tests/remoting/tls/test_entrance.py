"""One port for plain connections and for TLS, and what comes to nothing."""

from __future__ import annotations

import asyncio

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, ConnectionLost
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.certificates import Authority
from tests.remoting.parts import Answers, Echo, soon, until
from tests.remoting.tls.parts import echoed, pair, serving_with, trusting
from tests.support import run


@pytest.fixture(params=["asyncio", "uvloop"], autouse=True)
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests import support
    from tests.remoting.conftest import LOOPS

    if request.param not in LOOPS:
        pytest.skip("no uvloop here")
    monkeypatch.setattr(support, "new_loop", LOOPS[request.param])


def test_one_port_takes_plain_connections_and_tls(authority: Authority) -> None:
    async def main() -> None:
        tls = serving_with(authority.issue("server"))
        async with pair(tls, trusting(authority)) as (server, secret), Pool() as plain:
            body = bytes(range(256)) * 2_000
            assert await echoed(server, secret, body) == body
            assert await echoed(server, plain, body) == body
            assert len(server.peers) == 2

    run(main())


def test_many_calls_at_once_are_answered_over_tls(authority: Authority) -> None:
    async def main() -> None:
        tls = serving_with(authority.issue("server"))
        async with pair(tls, trusting(authority)) as (server, pool):
            bodies = [bytes([number]) * number * 700 for number in range(200)]
            assert await asyncio.gather(*(echoed(server, pool, each) for each in bodies)) == bodies

    run(main())


def test_enforcing_refuses_plain_connections_and_disabled_tls(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        issued = authority.issue("server")
        async with pair(serving_with(issued, mode="enforcing"), None) as (server, plain):
            with pytest.raises(ConnectionLost):
                await echoed(server, plain)
            async with Pool(tls=trusting(authority)) as secret:
                assert await echoed(server, secret) == b"body"
        async with pair(serving_with(issued, mode="disabled"), None) as (server, plain):
            assert await echoed(server, plain) == b"body"
            async with Pool(tls=trusting(authority)) as secret:
                with pytest.raises(ConnectFailed, match="perhaps TLS is off there"):
                    await echoed(server, secret)

    with caplog.at_level("INFO"):
        run(main())
    assert "it does not speak TLS, and tls.mode is enforcing" in caplog.text
    assert "it speaks TLS, and this server has no certificate" in caplog.text


def test_connections_in_their_handshake_count_for_the_limit(authority: Authority) -> None:
    async def main() -> None:
        tls = serving_with(authority.issue("server"))
        async with pair(tls, trusting(authority), connections_max=2) as (server, pool):
            silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
            with pytest.raises(ConnectFailed):
                await echoed(server, pool)
            for _, writer in silent:
                writer.close()

    run(main())


def test_bytes_that_are_no_handshake_end_their_connection_only(authority: Authority) -> None:
    async def main() -> None:
        tls = serving_with(authority.issue("server"))
        async with pair(tls, trusting(authority)) as (server, pool):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"\x16\x03\x01\x00\x05hello")
            while await reader.read(100):
                pass  # an alert, and the end
            assert await echoed(server, pool) == b"body"

    run(main())


def test_a_first_byte_alone_decides(authority: Authority) -> None:
    async def main() -> None:
        tls = serving_with(authority.issue("server"))
        async with pair(tls, None) as (server, _):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            frame = b'\x00\x00\x00\x1e\x00\x00\x00\x1a{"code":9003,"opaque":1,...}'
            writer.write(frame[:1])
            await until(lambda: len(server.peers) == 1)
            writer.close()
            assert reader is not None

    run(main())


# In virtual time: what waits.


def test_whoever_begins_a_handshake_and_stops_is_let_go(authority: Authority) -> None:
    async def main(network: Network) -> None:
        tls = serving_with(authority.issue("server"), handshake_ms=5_000)
        async with Server(one_by_one(Answers()), port=1000, tls=tls):
            reader, writer = await asyncio.open_connection("localhost", 1000)
            began = network.now()
            writer.write(b"\x16\x03\x01")
            assert await reader.read() == b""
            assert 5.0 <= network.now() - began < 6.0

    simulate(main)


def test_whoever_says_nothing_is_let_go_as_idle_clients_are(authority: Authority) -> None:
    async def main(network: Network) -> None:
        tls = serving_with(authority.issue("server"))
        limits = ConnectionLimits(idle_seconds=20.0)
        async with Server(one_by_one(Answers()), port=1000, tls=tls, limits=limits):
            reader, _ = await asyncio.open_connection("localhost", 1000)
            began = network.now()
            assert await reader.read() == b""
            assert 20.0 <= network.now() - began < 21.0

    simulate(main)


def test_a_server_that_stops_leaves_no_connection_behind(authority: Authority) -> None:
    async def main(network: Network) -> None:
        tls = serving_with(authority.issue("server"))
        async with Server(one_by_one(Answers()), port=1000, tls=tls) as server:
            reader, _ = await asyncio.open_connection("localhost", 1000)
            begun, writer = await asyncio.open_connection("localhost", 1000)
            writer.write(b"\x16\x03")
            await asyncio.sleep(1)
            await server.drain(Deadline.after(1))
        assert await reader.read() == b""
        assert await begun.read() == b""

    simulate(main)


def test_a_crowd_of_handshakes_does_not_keep_a_plain_client_waiting(authority: Authority) -> None:
    async def main() -> None:
        tls = serving_with(authority.issue("rsa", is_rsa=True))
        async with pair(tls, None) as (server, plain):
            await echoed(server, plain)
            patient = ConnectionLimits(connect_seconds=60)
            pools = [Pool(limits=patient, tls=trusting(authority)) for _ in range(60)]
            crowd = asyncio.gather(
                *(pool.call(server.address, Echo(), deadline=soon()) for pool in pools)
            )
            answered = 0
            while not crowd.done():
                await echoed(server, plain)
                answered += 1
            assert {reply.code for reply in await crowd} == {0}
            # 60 handshakes take 5 ms at most in one iteration of the loop, so there are many.
            assert answered >= 3
            for pool in pools:
                await pool.close()

    run(main())
