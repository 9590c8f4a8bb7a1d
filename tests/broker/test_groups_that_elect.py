"""Brokers of a group with a simulated store of keys as their elector, through faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.election.opening import ElectorRequest, key_elector
from sprocket.testing.cluster import Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.scripted import LEASE, ScriptedGroup, scripted


def play(test: Callable[[ScriptedGroup], Awaitable[None]], **settings: object) -> None:
    async def main(network: Network) -> None:
        keys = KeyServers(network)
        await keys.start()

        def elect(machine: Machine) -> object:
            entropy = SeededEntropy(f"elector {machine.name} {machine.starts}")
            request = ElectorRequest("", "c", "group", machine.disk, "/data", entropy)
            return key_elector(keys.client(), request)

        async with scripted(network, elect=elect, **settings) as running:  # type: ignore[arg-type]
            await running.asker(running.master).create("T")
            await running.copied()
            await test(running)

    simulate(main)


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_group_elects_one_master_and_has_all_members_in_sync() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        assert running.view.in_sync == {1, 2, 3}

    play(test)
