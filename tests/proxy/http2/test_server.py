"""Listening, TLS on the same port, many connections, and clients of others on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sprocket.base.errors import UsageError
from sprocket.proxy.http2.call_form import Method, Unary
from sprocket.proxy.http2.calls import GrpcCall
from sprocket.proxy.http2.limits import GrpcLimits
from sprocket.proxy.http2.server import GrpcServer
from sprocket.remoting.ip_counts import IpCounts
from sprocket.remoting.tls.settings import ENFORCING, TlsConfig
from tests.certificates import OPENSSL, Authority
from tests.proxy.http2.kit import HELLO, Client, Methods, connect, message, serving, until
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


@pytest.mark.parametrize("is_tls", [False, True])
def test_an_address_with_too_many_connections_gets_no_more(tmp_path: Path, is_tls: bool) -> None:
    class Rules:
        refused = 0

        def connections_max(self, ip: str) -> int | None:
            return 2

        def connection_refused(self, ip: str) -> None:
            self.refused += 1

    async def main() -> None:
        rules, tls = Rules(), None
        if is_tls:
            issued = Authority(tmp_path).issue("node")
            tls = TlsConfig(certificate=issued.certificate, key=issued.key)
        async with serving(Methods(), tls=tls, ips=IpCounts(rules)) as server:
            clients = [await connect(server) for _ in range(2)]
            for client in clients:
                assert (await client.call()).status == 0
            third = await connect(server)
            await until(lambda: third.is_lost)
            assert rules.refused == 1
            clients[0].transport.close()
            await until(lambda: clients[0].is_lost and len(server.peers) == 1)
            assert (await (await connect(server)).call()).status == 0

    run(main())


def test_beside_a_flood_a_modest_client_waits_for_a_few_of_its_calls() -> None:
    class Counting(Methods):
        flood = last = 0
        waits: ClassVar[list[int]] = []

        def table(self) -> Mapping[str, Method]:
            return {"/echo.Echo/Unary": Unary(self._count), "/echo.Echo/One": Unary(self._one)}

        def _count(self, call: GrpcCall, request: bytes) -> bytes:
            self.flood += 1
            return request

        def _one(self, call: GrpcCall, request: bytes) -> bytes:
            self.waits.append(self.flood - self.last)
            return request

    async def keep_calling(client: Client) -> None:
        numbers = [client.start() for _ in range(90)]
        for number in numbers:
            client.send(number, message(b"x" * 100), ends=True)
        while not client.is_lost:
            await client.over(numbers.pop(0))
            numbers.append(client.start())
            client.send(numbers[-1], message(b"x" * 100), ends=True)

    async def main() -> None:
        methods = Counting()
        async with serving(methods) as server:
            tasks = [asyncio.create_task(keep_calling(await connect(server))) for _ in range(4)]
            client = await connect(server)
            for _ in range(40):
                before = methods.flood
                while methods.flood < before + 60:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                methods.last = methods.flood
                assert (await client.call("/echo.Echo/One")).status == 0
            for task in tasks:
                task.cancel()
        # Where the machine does other things for a second, nobody counts as modest any more.
        assert sorted(methods.waits[20:])[16] <= 16

    run(main())
