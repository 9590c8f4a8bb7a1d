"""Listening, TLS on the same port, many connections, and clients of others on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from sprocket.base.errors import UsageError
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.server import GrpcServer
from sprocket.remoting.tls.settings import ENFORCING, TlsConfig
from tests.certificates import OPENSSL, Authority
from tests.proxy.http2.kit import HELLO, Client, Methods, connect, serving, until
from tests.support import run


async def connect_tls(server: GrpcServer, alpn: list[str], authorities: str | None = None) -> Any:
    """A client with TLS, and what was agreed on above it."""
    context = ssl.create_default_context(cafile=authorities)
    if authorities is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(alpn)
    transport, client = await asyncio.get_running_loop().create_connection(
        Client, "127.0.0.1", server.port, ssl=context, server_hostname="localhost"
    )
    return client, transport.get_extra_info("ssl_object").selected_alpn_protocol()


def test_a_port_in_use_is_one_clear_error() -> None:
    async def main() -> None:
        async with serving(Methods()) as server:
            with pytest.raises(UsageError, match=rf"127.0.0.1:{server.port}.*in use"):
                async with serving(Methods(), port=server.port):
                    pass

    run(main())


@pytest.mark.skipif(sys.platform != "linux", reason="the system must share ports")
def test_servers_may_share_a_port() -> None:
    async def main() -> None:
        async with (
            serving(Methods(), is_shared=True) as one,
            serving(Methods(), is_shared=True, port=one.port) as other,
        ):
            clients = [await connect(one) for _ in range(40)]
            for client in clients:
                assert (await client.call()).status == 0
            assert len(one.peers) + len(other.peers) == 40

    run(main())


def test_connections_above_the_limit_are_closed_and_the_others_stay() -> None:
    async def main() -> None:
        async with serving(Methods(), connections_max=3) as server:
            client = await connect(server)
            more = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(5)]
            assert sum([await reader.read() == b"" for reader, _ in more[2:]]) == 3
            assert (await client.call()).status == 0
            for _, writer in more:
                writer.close()

    run(main())


@pytest.mark.process
def test_plain_and_tls_with_a_certificate_of_its_own_making_at_one_port() -> None:
    pytest.importorskip("cryptography")

    async def main() -> None:
        async with serving(Methods(), tls=TlsConfig()) as server:
            plain = await connect(server)
            assert (await plain.call()).messages == [b"hello"]
            for asked, agreed in ((["h2", "http/1.1"], "h2"), ([], None)):
                client, found = await connect_tls(server, asked)
                assert found == agreed
                assert (await client.call()).messages == [b"hello"]

    run(main())


@pytest.mark.skipif(OPENSSL is None, reason="needs openssl")
def test_enforcing_takes_no_plain_connections(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    tls = TlsConfig(mode=ENFORCING, certificate=issued.certificate, key=issued.key)

    async def main() -> None:
        async with serving(Methods(), tls=tls) as server:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(HELLO)
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            client, agreed = await connect_tls(server, ["h2"], authority.path)
            assert agreed == "h2"
            assert (await client.call()).messages == [b"hello"]
            writer.close()

    run(main())


def test_without_tls_a_client_that_begins_with_it_is_told_of_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with serving(Methods()) as server:
            with pytest.raises((ssl.SSLError, OSError)):
                await connect_tls(server, ["h2"])
            await until(lambda: "it speaks TLS" in caplog.text)

    with caplog.at_level(logging.INFO):
        run(main())


def test_without_the_package_that_makes_certificates_it_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)

    async def main() -> None:
        async with serving(Methods(), tls=TlsConfig()) as server:
            assert (await (await connect(server)).call()).status == 0

    run(main())
    assert "install the package `cryptography`" in caplog.text


def test_many_idle_connections_cost_little_and_others_are_answered() -> None:
    async def main() -> None:
        async with serving(Methods(), GrpcLimits(idle_seconds=3600)) as server:
            idle = []
            for _ in range(200):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(HELLO)
                idle.append((reader, writer))
            client = await connect(server)
            assert (await client.call()).status == 0
            assert len(server.peers) == 201
            for _, writer in idle:
                writer.close()

    run(main())


def test_the_client_of_grpc_itself_is_answered() -> None:
    grpc = pytest.importorskip("grpc")

    def same(content: bytes) -> bytes:
        return content

    def ask(port: int) -> None:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            unary = channel.unary_unary("/echo.Echo/Unary", same, same)
            both = channel.stream_stream("/echo.Echo/Both", same, same)
            refuse = channel.unary_unary("/echo.Echo/Refuse", same, same)
            assert unary(b"x" * 3_000_000, timeout=60) == b"x" * 3_000_000
            assert unary(b"y" * 9, timeout=60, compression=grpc.Compression.Gzip) == b"y" * 9
            sent = [b"1" * size for size in (0, 1, 100_000)]
            assert list(both(iter(sent), timeout=60)) == sent
            with pytest.raises(grpc.RpcError) as told:
                refuse(b"", timeout=60)
            assert told.value.code() == grpc.StatusCode.PERMISSION_DENIED
            assert told.value.details() == "not for you, 100 %\nünd so"

    async def main() -> None:
        async with serving(Methods()) as server:
            await asyncio.to_thread(ask, server.port)

    run(main())
