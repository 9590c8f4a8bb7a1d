"""Connections made on demand."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    CallTimeout,
    ClosedError,
    ConnectFailed,
    ConnectionLost,
    TopicNotFound,
)
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.limits import ConnectionLimits
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.remoting.parts import Answers, Echo, Refuse, Wait, serving, soon, until
from tests.support import run

pytestmark = pytest.mark.usefixtures("either_loop")


def test_concurrent_callers_share_one_connection() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            calls = (pool.call(server.address, Echo(str(i)), deadline=soon()) for i in range(20))
            replies = await asyncio.gather(*calls)
            assert [r.read(Echo).text for r in replies] == [str(i) for i in range(20)]
            assert len(server.peers) == 1
            assert pool.is_connected(server.address)

    run(main())


def test_asking_raises_the_class_of_the_servers_answer() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            reply = await pool.ask(server.address, Echo("x"), deadline=soon())
            assert reply.code == 0
            with pytest.raises(TopicNotFound, match="no such topic"):
                await pool.ask(server.address, Refuse(), deadline=soon())

    run(main())


def test_one_way_requests_arrive() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            await pool.send_oneway(server.address, Echo(), deadline=soon())
            await until(lambda: answers.seen)

    run(main())


def test_a_server_that_is_not_there_fails_the_call_and_is_left_alone_for_a_while() -> None:
    async def main(network: Network) -> None:
        async with Pool() as pool:
            with pytest.raises(ConnectFailed, match=r"127.0.0.1:5 cannot be reached"):
                await pool.call("127.0.0.1:5", Echo(), deadline=soon())
            async with Server(one_by_one(Answers()), port=5) as server:
                with pytest.raises(ConnectFailed):
                    await pool.call(server.address, Echo(), deadline=soon())
                await asyncio.sleep(0.1)
                reply = await pool.call(server.address, Echo("back"), deadline=soon())
                assert reply.read(Echo).text == "back"

    simulate(main)


def test_pauses_after_failed_connects_grow_to_two_seconds() -> None:
    async def main(network: Network) -> list[float]:
        loop, tries = asyncio.get_running_loop(), []
        connect = network.connect

        async def counted(*what: Any) -> Any:
            tries.append(round(loop.time(), 1))
            return await connect(*what)

        network.connect = counted  # type: ignore[method-assign]
        async with Pool() as pool:
            while loop.time() < 9:
                with pytest.raises(ConnectFailed):
                    await pool.call("127.0.0.1:5", Echo(), deadline=soon())
                await asyncio.sleep(0.01)
        return tries

    assert simulate(main) == pytest.approx([0.0, 0.1, 0.3, 0.7, 1.5, 3.1, 5.1, 7.1], abs=0.11)


def test_a_broken_connection_is_made_again_by_the_next_call() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            for _ in range(3):
                await pool.call(server.address, Echo(), deadline=soon())
                server.peers[0].abort()
                await until(lambda: not pool.is_connected(server.address))

    run(main())


def test_a_server_that_never_accepts_costs_no_more_than_the_deadline() -> None:
    async def main() -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen(0)
            port = silent.getsockname()[1]
            blockers = [socket.socket() for _ in range(3)]
            for blocker in blockers:
                blocker.setblocking(False)
                blocker.connect_ex(("127.0.0.1", port))
            async with Pool(limits=ConnectionLimits(connect_seconds=0.2)) as pool:
                with pytest.raises(CallTimeout):
                    await pool.call(f"127.0.0.1:{port}", Echo(), deadline=Deadline.after(0.05))
                with pytest.raises(ConnectFailed, match="does not answer"):
                    await pool.call(f"127.0.0.1:{port}", Echo(), deadline=soon())
            for blocker in blockers:
                blocker.close()

    run(main())


def test_a_cancelled_caller_does_not_take_the_connecting_with_it() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            first = asyncio.ensure_future(pool.call(server.address, Echo(), deadline=soon()))
            second = asyncio.ensure_future(pool.call(server.address, Echo(), deadline=soon()))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).code == 0

    run(main())


def test_calls_on_a_connection_that_was_given_up_go_on_beside_a_new_one() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            waiting = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
            await until(lambda: answers.seen)
            given_up = pool.give_up(server.address)
            assert given_up is not None
            assert pool.give_up(server.address) is None
            reply = await pool.ask(server.address, Echo("x"), deadline=soon())
            assert reply.read(Echo).text == "x"
            assert len(server.peers) == 2
            assert not waiting.done()
            answers.go.set()
            assert (await waiting).code == 0
            given_up.abort()
            await until(lambda: len(server.peers) == 1)
            assert pool.is_connected(server.address)

    run(main())


def test_closing_ends_calls_and_refuses_new_ones() -> None:
    async def main() -> None:
        answers = Answers()
        async with serving(answers) as (server, pool):
            held = asyncio.ensure_future(pool.call(server.address, Wait(), deadline=soon()))
            await until(lambda: answers.waiting)
            await pool.close()
            with pytest.raises(ConnectionLost):
                await held
            with pytest.raises(ClosedError):
                await pool.call(server.address, Echo(), deadline=soon())

    run(main())


def test_closing_while_connecting_ends_the_callers() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            call = asyncio.ensure_future(pool.call(server.address, Echo(), deadline=soon()))
            await asyncio.sleep(0)
            await pool.close()
            with pytest.raises(ClosedError):
                await call

    run(main())


def test_a_server_may_ask_a_pool_that_answers_nothing() -> None:
    async def main() -> None:
        async with serving(Answers()) as (server, pool):
            await pool.peer(server.address, soon())
            await until(lambda: server.peers)
            reply = await server.peers[0].call(Echo(), deadline=soon())
            assert reply.code == 3

    run(main())


@pytest.mark.parametrize("speaks", [False, True])
def test_a_server_that_is_silent_for_long_while_answers_are_overdue_is_called_anew(
    speaks: bool,
) -> None:
    async def main(network: Network) -> list[bool]:
        stands = []
        async with serving(Answers()) as (server, pool):
            for _ in range(5):
                with pytest.raises(CallTimeout):
                    await pool.call(server.address, Wait(), deadline=Deadline.after(10))
                await asyncio.sleep(0)
                stands.append(pool.is_connected(server.address))
                if speaks:
                    await pool.call(server.address, Echo(), deadline=soon())
        return stands

    assert simulate(main) == [True, True, True, speaks, True]
