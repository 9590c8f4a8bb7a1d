"""The simulated network: manners of TCP, and weather by seed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sprocket.testing.loop import simulate
from sprocket.testing.network import Fates, Network
from sprocket.testing.process import SimulatedProcess

PORT = 5


class Sink(asyncio.Protocol):
    """Remembers what the transport tells it."""

    def __init__(self) -> None:
        self.got = b""
        self.reads = 0
        self.error: Exception | str | None = "none yet"
        self.is_paused = False
        self.pauses = 0
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        self.reads += 1

    def pause_writing(self) -> None:
        self.is_paused = True
        self.pauses += 1

    def resume_writing(self) -> None:
        self.is_paused = False

    def connection_lost(self, error: Exception | None) -> None:
        self.error = error
        self.ended.set_result(None)


class Pair:
    """A connection between a process on `left` and one on `right`."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.left, self.right = SimulatedProcess("l", "left"), SimulatedProcess("r", "right")
        self.server: Sink
        self.client: Sink

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        sinks: list[Sink] = []

        def factory() -> Sink:
            sinks.append(Sink())
            return sinks[-1]

        async def listen() -> None:
            await loop.create_server(factory, "", PORT)

        async def connect() -> Sink:
            return (await loop.create_connection(Sink, "right", PORT))[1]

        await self.right.run(listen())
        self.client = await self.left.run(connect())
        (self.server,) = sinks


def with_pair(test: Callable[[Pair], Awaitable[None]], seed: int = 0) -> None:
    async def main(network: Network) -> None:
        pair = Pair(network)
        await pair.connect()
        await test(pair)

    simulate(main, seed=seed)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**9), st.lists(st.binary(max_size=40), max_size=20))
def test_bytes_arrive_in_order_however_they_are_cut(seed: int, writes: list[bytes]) -> None:
    async def test(pair: Pair) -> None:
        for content in writes:
            pair.client.transport.write(content)
        pair.server.transport.writelines(writes)
        pair.client.transport.close()
        await pair.server.ended
        assert pair.server.got == b"".join(writes)
        assert pair.server.error is None
        assert pair.client.error is None

    with_pair(test, seed)


def test_both_ends_know_their_addresses() -> None:
    async def test(pair: Pair) -> None:
        assert pair.client.transport.get_extra_info("peername") == (
            pair.network.address_of("right"),
            PORT,
        )
        peername = pair.server.transport.get_extra_info("peername")
        assert peername == pair.client.transport.get_extra_info("sockname")
        assert peername[0] == pair.network.address_of("left")

    with_pair(test)


def test_a_paused_reader_holds_up_the_writer_and_loses_nothing() -> None:
    async def test(pair: Pair) -> None:
        pair.server.transport.pause_reading()
        for _ in range(100):
            pair.client.transport.write(bytes(4096))
        await asyncio.sleep(1)
        assert pair.client.is_paused
        assert pair.server.got == b""
        pair.server.transport.resume_reading()
        await asyncio.sleep(1)
        assert not pair.client.is_paused
        assert len(pair.server.got) == 100 * 4096

    with_pair(test)


def test_aborting_resets_the_other_end() -> None:
    async def test(pair: Pair) -> None:
        pair.client.transport.abort()
        await pair.server.ended
        assert isinstance(pair.server.error, ConnectionResetError)
        assert pair.client.error is None

    with_pair(test)


def test_a_broken_connection_is_lost_for_both_ends() -> None:
    async def test(pair: Pair) -> None:
        pair.client.transport.write(b"lost")
        pair.network.break_connections("left")
        await asyncio.gather(pair.client.ended, pair.server.ended)
        assert isinstance(pair.client.error, ConnectionResetError)
        assert isinstance(pair.server.error, ConnectionResetError)
        assert pair.server.got == b""
        pair.client.transport.write(b"nobody hears")

    with_pair(test)


def test_a_cut_holds_up_bytes_until_it_is_healed() -> None:
    async def test(pair: Pair) -> None:
        pair.network.cut("left", "right")
        pair.client.transport.write(b"a")
        await asyncio.sleep(5)
        pair.client.transport.write(b"b")
        assert pair.server.got == b""
        pair.network.heal()
        await asyncio.sleep(2)
        assert pair.server.got == b"ab"

    with_pair(test)


def test_a_long_cut_ends_the_connection_of_whoever_writes() -> None:
    async def test(pair: Pair) -> None:
        pair.network.cut_off("left")
        pair.client.transport.write(b"a")
        await pair.client.ended
        assert isinstance(pair.client.error, TimeoutError)
        assert not pair.server.ended.done()
        pair.network.heal()
        pair.server.transport.write(b"b")
        await asyncio.sleep(40)
        assert not pair.client.got

    with_pair(test)


def test_a_slow_way_is_slow() -> None:
    async def test(pair: Pair) -> None:
        pair.network.slow("left", "right", 10.0)
        pair.client.transport.write(b"a")
        await asyncio.sleep(9)
        assert not pair.server.got
        await asyncio.sleep(2)
        assert pair.server.got == b"a"

    with_pair(test)


@pytest.mark.parametrize("silently", [False, True])
def test_peers_of_a_killed_process_hear_of_it_unless_its_machine_is_gone(silently: bool) -> None:
    async def test(pair: Pair) -> None:
        pair.network.kill(pair.right, silently=silently)
        pair.right.kill()
        await asyncio.sleep(1)
        assert pair.client.ended.done() is not silently
        pair.client.transport.write(b"a")
        await pair.client.ended
        loop = asyncio.get_running_loop()
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Sink, "right", PORT)

    with_pair(test)


def test_nobody_listens_twice_or_at_another_hosts_address() -> None:
    async def main(network: Network) -> None:
        loop = asyncio.get_running_loop()

        async def listen(host: str) -> None:
            await loop.create_server(Sink, host, PORT)

        one = SimulatedProcess("p", "one")
        await one.run(listen("127.0.0.1"))
        with pytest.raises(OSError, match="in use"):
            await one.run(listen(""))
        with pytest.raises(OSError, match="assign"):
            await one.run(listen("two"))
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Sink, "one", PORT)
        with pytest.raises(OSError, match="no simulated host"):
            await loop.create_connection(Sink, "10.9.9.9", PORT)

    simulate(main)


def test_streams_of_asyncio_work_too() -> None:
    async def main(network: Network) -> bytes:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(100):
                writer.write(data.upper())
                await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"hello\n")
        answer = await reader.readline()
        writer.close()
        await asyncio.sleep(1)
        return answer

    assert simulate(main) == b"HELLO\n"


def test_the_seed_alone_decides_the_history() -> None:
    def history(seed: int) -> tuple[str, float]:
        async def main(network: Network) -> tuple[str, float]:
            pair = Pair(network)
            await pair.connect()
            for number in range(20):
                pair.client.transport.write(bytes([number]) * number)
                await asyncio.sleep(0.001)
            pair.client.transport.close()
            await pair.server.ended
            return network.history, network.now()

        return simulate(main, seed=seed)

    assert history(1) == history(1)
    assert len({history(seed) for seed in range(10)}) == 10


def test_answers_of_a_host_are_lost_doubled_or_late_until_it_heals() -> None:
    network = Network()
    assert network.fate("a") == (0.0,)
    network.distort("a", Fates(lost=1.0))
    assert network.fate("a") == ()
    assert network.fate("b") == (0.0,)
    network.distort("a", Fates(twice=1.0))
    assert network.fate("a") == (0.0, 0.0)
    network.distort("a", Fates(late=1.0, late_seconds=5.0))
    (seconds,) = network.fate("a")
    assert 0.0 < seconds < 5.0
