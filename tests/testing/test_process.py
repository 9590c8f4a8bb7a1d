"""Simulated processes die as a whole."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import AsyncExitStack

import pytest

from sprocket.protocol.command import Reply
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.server import Server
from sprocket.remoting.turns import Turns, turns_of
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from sprocket.testing.process import SimulatedProcess, current_process


def test_tasks_and_their_tasks_belong_to_the_process_that_started_them() -> None:
    async def main(network: Network) -> None:
        async def inner() -> str:
            return repr(current_process())

        async def outer() -> str:
            return await asyncio.create_task(inner())

        assert await SimulatedProcess("b", "host").run(outer()) == "b@host"
        assert current_process() is None

    simulate(main)


def test_a_kill_ends_all_of_its_tasks_and_no_other() -> None:
    async def main(network: Network) -> None:
        ended: list[str] = []

        async def waits(name: str) -> None:
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                ended.append(name)
                raise

        async def parent(name: str) -> None:
            await asyncio.gather(waits(f"{name}1"), waits(f"{name}2"))

        one, two = SimulatedProcess("one", "a"), SimulatedProcess("two", "a")
        dying, living = one.start(parent("one")), two.start(parent("two"))
        await asyncio.sleep(1)
        one.kill()
        with pytest.raises(asyncio.CancelledError):
            await dying
        assert sorted(ended) == ["one1", "one2"]
        assert not living.done()
        assert (one.is_alive, two.is_alive) == (False, True)

    simulate(main)


def test_finished_tasks_are_not_kept() -> None:
    async def main(network: Network) -> None:
        async def nothing() -> None:
            pass

        process = SimulatedProcess("p", "a")
        for _ in range(1000):
            await process.run(nothing())
        assert len(process._tasks) < 200

    simulate(main)


def test_a_process_that_stands_still_does_late_what_came_meanwhile() -> None:
    async def main(network: Network) -> None:
        ticks: list[float] = []

        async def clock() -> None:
            while True:
                await asyncio.sleep(1)
                ticks.append(network.now())

        process = SimulatedProcess("p", "a")
        process.start(clock())
        await asyncio.sleep(2.5)
        process.stop()
        await asyncio.sleep(120)
        assert ticks == [1.0, 2.0]
        process.wake(timers_first=True)
        await asyncio.sleep(1.5)
        assert ticks == [1.0, 2.0, 122.5, 123.5]
        process.stop()
        process.kill()
        await asyncio.sleep(5)
        assert len(ticks) == 4

    simulate(main)


def test_a_process_that_stands_still_does_not_hold_up_the_servers_of_another() -> None:
    async def main(network: Network) -> None:
        async def turns() -> Turns:
            return turns_of(asyncio.get_running_loop())

        one, two = SimulatedProcess("one", "a"), SimulatedProcess("two", "b")
        own = await one.run(turns())
        assert await one.run(turns()) is own
        assert await two.run(turns()) is not own

    simulate(main)


def test_a_world_that_has_ended_is_forgotten_with_its_servers() -> None:
    networks: list[weakref.ref[Network]] = []

    async def main(network: Network) -> None:
        async def serve() -> None:
            server = Server(one_by_one(lambda command, peer: Reply()), host="a", port=1)
            await AsyncExitStack().enter_async_context(server)  # and it is never closed

        await SimulatedProcess("p", "a").run(serve())
        networks.append(weakref.ref(network))

    simulate(main)
    gc.collect()
    assert networks[0]() is None
