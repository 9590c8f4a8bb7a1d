"""Brokers of a group that RocketMQ's controller watches over, as far as its rules are simulated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.election.controller_elector import ControllerElector
from sprocket.election.opening import ElectorRequest, open_elector
from sprocket.protocol.bodies import EpochEntriesBody
from sprocket.protocol.requests.election import EpochEntries
from sprocket.testing.cluster import Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.scripted import ScriptedGroup, scripted
from tests.election.controllers import Controllers

SCAN_SECONDS = 0.1
START_SECONDS = 5.0


async def scan(controllers: Controllers) -> None:
    """As a controller does; one that starts waits first, since it knows of nobody's life."""
    loop = asyncio.get_running_loop()
    begin = loop.time()
    while True:
        if not controllers.is_running:
            begin = loop.time() + START_SECONDS
        if loop.time() >= begin:
            controllers.scan()
        await asyncio.sleep(SCAN_SECONDS)


def play(test: Callable[[ScriptedGroup, Controllers], Awaitable[None]], **settings: object) -> None:
    async def main(network: Network) -> None:
        controllers = Controllers(9000, address=network.address_of("outside"))

        def elect(machine: Machine) -> ControllerElector:
            entropy = SeededEntropy(f"elector {machine.name} {machine.starts}")
            place = f"controller://{controllers.addresses[0]}"
            elector = open_elector(
                ElectorRequest(place, "c", "group", machine.disk, "/data", entropy, machine.clock)
            )
            assert isinstance(elector, ControllerElector)
            return elector

        settings["elector"] = f"controller://{controllers.addresses[0]}"
        async with controllers, scripted(network, elect=elect, **settings) as running:  # type: ignore[arg-type]
            scanning = asyncio.ensure_future(scan(controllers))
            await running.asker(running.master).create("T")
            await in_sync(controllers, {1, 2, 3})
            await test(running, controllers)
            scanning.cancel()

    simulate(main)


async def in_sync(controllers: Controllers, members: set[int]) -> None:
    async with asyncio.timeout(30):
        while controllers.groups["group"].in_sync != members:  # noqa: ASYNC110 - it has no watermark
            await asyncio.sleep(0.05)


def test_sends_go_on_after_the_master_is_killed_and_it_follows_when_it_is_back() -> None:
    async def test(running: ScriptedGroup, controllers: Controllers) -> None:
        first = running.master
        await running.asker(first).send("T", b"1")
        running.machine(first).kill()
        second = await running.led(but=first)
        await running.asker(second).send("T", b"2")
        await running.machine(first).start()
        await in_sync(controllers, {1, 2, 3})
        await running.copied()
        assert await running.asker(second).bodies("T") == [b"1", b"2"]

    play(test, role="SYNC_MASTER", copies_min=1)


def test_a_clean_stop_hands_over_and_epochs_are_shown() -> None:
    async def test(running: ScriptedGroup, controllers: Controllers) -> None:
        first = running.master
        await running.asker(first).send("T", b"1")
        await running.machine(first).stop()
        second = await running.led(but=first)
        await running.asker(second).send("T", b"2")
        body = (await running.asker(second).call(EpochEntries())).body
        shown = EpochEntriesBody.decode(body)
        assert [each.epoch for each in shown.epoch_list] == [1, 2]
        assert shown.epoch_list[0].end_offset == shown.epoch_list[1].start_offset
        assert shown.max_offset == running.machine(second).server._store.log_end
        assert (shown.broker_name, shown.broker_id) == ("group", 0)

    play(test, role="SYNC_MASTER", copies_min=1)


def test_a_synchronous_group_outlives_its_controller() -> None:
    async def test(running: ScriptedGroup, controllers: Controllers) -> None:
        master = running.master
        await controllers.stop(0)
        for number in range(30):
            await running.asker(master).send("T", b"%d" % number)
            await asyncio.sleep(1)
        await controllers.start(0)
        await asyncio.sleep(5)
        assert running.master == master
        assert controllers.groups["group"].epoch == 1

    play(test, role="SYNC_MASTER")
