"""The transport that a protocol above TLS gets."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sprocket.base.errors import ConnectionLost
from sprocket.remoting.tls.certificates import asking, serving
from sprocket.remoting.tls.layer import TlsLayer
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.certificates import Authority, Issued
from tests.remoting.tls.parts import serving_with, trusting

PORT = 1000


class Sink(asyncio.Protocol):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.got = b""
        self.calls: list[str] = []
        self.lost: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.calls.append("made")

    def data_received(self, data: bytes) -> None:
        self.got += data

    def eof_received(self) -> None:
        self.calls.append("eof")

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = error
        self.calls.append("lost")


class Two:
    """Both ends of one connection."""

    def __init__(
        self, network: Network, authority: Authority, *, issued: Issued | None = None
    ) -> None:
        self.network = network
        self.server, self.client = Sink(), Sink()
        self.outcomes: list[ConnectionLost | None] = []
        self._contexts: dict[bool, ssl.SSLContext] = {
            False: serving(serving_with(issued or authority.issue("server"))),
            True: asking(trusting(authority)),
        }

    def layer(self, *, is_client: bool) -> TlsLayer:
        return TlsLayer(
            self._contexts[is_client],
            lambda: self.client if is_client else self.server,
            seconds=5.0,
            is_client=is_client,
            on_done=lambda layer, error: self.outcomes.append(error),
            server_name="localhost" if is_client else None,
        )

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.create_server(lambda: self.layer(is_client=False), "", PORT)
        await loop.create_connection(lambda: self.layer(is_client=True), "localhost", PORT)
        await asyncio.sleep(1)


def test_bytes_arrive_whole_and_in_order_both_ways(authority: Authority) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        await two.connect()
        assert two.outcomes == [None, None]
        parts = [bytes([number % 256]) * (number * 37) for number in range(100)]
        for part in parts:
            two.client.transport.write(part)
        two.server.transport.writelines(parts)
        await asyncio.sleep(1)
        assert two.server.got == two.client.got == b"".join(parts)

    for seed in range(5):
        simulate(main, seed=seed)


def test_a_close_ends_both_sides_after_what_was_written(authority: Authority) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        await two.connect()
        two.client.transport.write(b"x" * 100_000)
        two.client.transport.close()
        assert two.client.transport.is_closing()
        two.client.transport.write(b"too late")
        await asyncio.sleep(1)
        assert two.server.got == b"x" * 100_000
        assert two.server.calls == ["made", "eof", "lost"]
        assert two.client.calls == ["made", "lost"]
        assert two.server.lost is None

    simulate(main)


def test_an_abort_ends_both_sides_at_once(authority: Authority) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        await two.connect()
        two.server.transport.abort()
        await asyncio.sleep(1)
        assert two.client.calls == ["made", "lost"]
        assert two.server.calls == ["made", "lost"]

    simulate(main)


def test_a_changed_byte_ends_the_connection_with_a_reason(authority: Authority) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        await two.connect()
        below = two.client.transport._below
        below.write(b"\x17\x03\x03\x00\x20" + b"?" * 32)
        await asyncio.sleep(1)
        assert isinstance(two.server.lost, ConnectionLost)
        assert "bad record mac" in str(two.server.lost)
        assert two.server.got == b""

    simulate(main)


def test_reading_and_writing_pause_as_without_tls(authority: Authority) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        await two.connect()
        two.server.transport.pause_reading()
        assert not two.server.transport.is_reading()
        two.client.transport.set_write_buffer_limits(high=1000)
        two.client.transport.write(b"y" * 3_000_000)
        await asyncio.sleep(1)
        assert two.client.calls[-1] == "pause"
        assert two.client.transport.get_write_buffer_size() > 1000
        assert two.server.got == b""
        two.server.transport.resume_reading()
        await asyncio.sleep(1)
        assert len(two.server.got) == 3_000_000
        assert two.client.calls[-1] == "resume"

    simulate(main)


def test_a_transport_knows_its_peer_and_its_cipher(authority: Authority) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        await two.connect()
        transport = two.client.transport
        assert transport.get_extra_info("peername")[1] == PORT
        assert transport.get_extra_info("ssl_object").version() == "TLSv1.3"
        assert transport.get_protocol() is two.client
        other = Sink()
        transport.set_protocol(other)
        two.server.transport.write(b"hello")
        await asyncio.sleep(1)
        assert other.got == b"hello"
        assert not transport.can_write_eof()

    simulate(main)


def test_a_handshake_has_a_bound_of_bytes_and_of_time(authority: Authority) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        loop = asyncio.get_running_loop()
        await loop.create_server(lambda: two.layer(is_client=False), "", PORT)
        _, slow = await loop.create_connection(Sink, "localhost", PORT)
        await asyncio.sleep(6)
        assert "took more than 5 s" in str(two.outcomes[0])
        assert "lost" in slow.calls
        transport, _ = await loop.create_connection(Sink, "localhost", PORT)
        # A record of TLS may have 16 KiB, and its header says that more follows.
        for _ in range(20):
            transport.write(b"\x16\x03\x01\x40\x00" + b"\x01\x03\xff\xff" + b"\x00" * 16380)
        await asyncio.sleep(2)
        assert two.outcomes[1] is not None
        assert not two.server.calls

    simulate(main)


@pytest.mark.parametrize("cut", [1, 5, 6, 100, 16_000])
def test_pieces_of_any_size_are_put_together(authority: Authority, cut: int) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority)
        await two.connect()
        layer = two.server.transport._layer
        two.client.transport._tls.write(b"z" * 40_000)
        outgoing = two.client.transport._layer._outgoing.read()
        for start in range(0, len(outgoing), cut):
            layer.data_received(outgoing[start : start + cut])
        assert two.server.got == b"z" * 40_000

    simulate(main)


@given(st.lists(st.binary(min_size=1, max_size=600), max_size=12), st.integers(0, 3))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_break_anything_but_their_connection(
    authority: Authority, parts: list[bytes], after: int
) -> None:
    async def main(network: Network) -> None:
        two = Two(network, authority, issued=_issued(authority))
        await two.connect()
        below = two.client.transport._below
        if after:  # in the middle of a good connection
            two.client.transport.write(b"good")
        for part in parts:
            below.write(part)
        below.close()
        await asyncio.sleep(10)
        assert two.server.calls[-1] == "lost"
        assert two.server.got in (b"", b"good")
        raw, _ = await asyncio.get_running_loop().create_connection(Sink, "localhost", PORT)
        for part in parts:
            raw.write(b"\x16" + part)
        await asyncio.sleep(10)

    simulate(main)


_made: list[Issued] = []


def _issued(authority: Authority) -> Issued:
    """One certificate for all examples."""
    if not _made:
        _made.append(authority.issue("server"))
    return _made[0]
