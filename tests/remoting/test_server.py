"""Listening, draining, letting go."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import cast

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, ConnectionLost, UsageError
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.frame import encode_reply, encode_request
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from sprocket.remoting.turns import RUN
from tests.remoting.parts import Answers, Echo, Wait, serving, soon, until
from tests.support import run

pytestmark = pytest.mark.usefixtures("either_loop")


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_a_port_in_use_is_one_clear_error() -> None:
    async def main() -> None:
        async with Server(one_by_one(Answers())) as server:
            with pytest.raises(UsageError, match=rf"127.0.0.1:{server.port}.*in use"):
                async with Server(one_by_one(Answers()), port=server.port):
                    pass

    run(main())


def test_a_host_that_nobody_knows_is_one_clear_error() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match=r"cannot listen at no\.such\.invalid:0: \w+") as told:
            async with Server(one_by_one(Answers()), host="no.such.invalid"):
                pass
        assert "Unknown error" not in str(told.value)

    run(main())


def test_connections_beyond_the_limit_are_let_go_and_others_stay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with (
            Server(one_by_one(Answers()), connections_max=3) as server,
            Pool() as pool,
        ):
            assert (await pool.call(server.address, Echo(), deadline=soon())).code == 0
            silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]
            assert await silent[-1][0].read() == b""
            assert len(server.peers) == 3
            assert (await pool.call(server.address, Echo(), deadline=soon())).code == 0
            for _, writer in silent:
                writer.close()
            await until(lambda: len(server.peers) == 1)
            async with Pool() as late:
                assert (await late.call(server.address, Echo(), deadline=soon())).code == 0

    run(main())
    assert caplog.text.count("more are refused") == 1


def test_draining_answers_what_is_in_flight_and_takes_nothing_new() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            held = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
            await until(lambda: answers.waiting)
            draining = asyncio.ensure_future(server.drain(soon()))
            await asyncio.sleep(0)
            with pytest.raises(ConnectFailed):
                await Pool().call(server.address, Echo(), deadline=soon())
            assert not draining.done()
            answers.go.set()
            assert (await held).remark == "went"
            await draining
            assert not server.peers

    run(main())


def test_draining_ends_at_its_deadline() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            held = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
            await until(lambda: answers.waiting)
            await server.drain(Deadline.after(0.02))
            with pytest.raises(ConnectionLost):
                await held
            assert answers.cancelled == 1

    run(main())


def test_leaving_lets_go_of_everybody() -> None:
    async def main() -> None:
        answers = Answers()
        async with Pool() as pool:
            async with Server(one_by_one(answers)) as server:
                held = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
                await until(lambda: answers.waiting)
            with pytest.raises(ConnectionLost):
                await held
            assert not server.peers

    run(main())


def test_a_silent_client_is_let_go_and_one_that_waits_is_not() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers, limits=ConnectionLimits(idle_seconds=0.05)) as (server, pool):
            held = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()
            assert not held.done()
            answers.go.set()
            assert (await held).remark == "went"

    run(main())


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_ipv6_addresses_work_on_both_sides() -> None:
    async def main() -> None:
        async with serving(Answers(), host="::1") as (server, pool):
            assert server.address == f"[::1]:{server.port}"
            reply = await pool.call(server.address, Echo("six"), deadline=soon())
            assert reply.read(Echo).text == "six"
            assert server.peers[0].address.startswith("[::1]:")

    run(main())


class Flooding(asyncio.Protocol):
    """A client that keeps so many requests in flight."""

    def __init__(self, in_flight: int) -> None:
        self.in_flight, self.rest = in_flight, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.write(_FLOOD * self.in_flight)

    def data_received(self, data: bytes) -> None:
        data = self.rest + data
        count, rest = divmod(len(data), _REPLY_BYTES)
        self.rest = data[len(data) - rest :]
        self.transport.write(_FLOOD * count)


_FLOODS = 1
_FLOOD = b"".join(encode_request(Echo("x" * 400), _FLOODS))
_REPLY_BYTES = len(b"".join(encode_reply(Command(1, _FLOODS), Reply())))


async def requests_before_it(clients: int, in_flight: int) -> list[int]:
    """How many requests of those who flood are answered before each of one who asks rarely."""
    flood, last, waits = 0, 0, list[int]()
    asked = b"".join(encode_request(Echo("one"), 2))

    def answer(commands: Sequence[Command], peer: Peer) -> list[Reply]:
        nonlocal flood
        if commands[0].opaque == _FLOODS:
            flood += len(commands)
        else:
            waits.append(flood - last)
        return [Reply()] * len(commands)

    loop = asyncio.get_running_loop()
    async with Server(answer) as server:
        made = [
            (await loop.create_connection(lambda: Flooding(in_flight), "127.0.0.1", server.port))[0]
            for _ in range(clients)
        ]
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for _ in range(60):
            before, last = flood, flood
            while last < before + 300:
                await asyncio.sleep(0)
                last = flood
            writer.write(asked)
            await reader.readexactly(_REPLY_BYTES)
        writer.close()
        for transport in made:
            transport.close()
    return waits


@pytest.mark.parametrize(("clients", "in_flight"), [(1, 64), (4, 64), (1, 256), (40, 16)])
def test_beside_a_flood_a_modest_client_waits_for_two_runs_of_its_requests(
    clients: int, in_flight: int
) -> None:
    async def main() -> None:
        waits = await requests_before_it(clients, in_flight)
        # Where the machine does other things for a second, nobody counts as modest any more.
        assert sorted(waits[30:])[24] <= 2 * RUN

    run(main())
