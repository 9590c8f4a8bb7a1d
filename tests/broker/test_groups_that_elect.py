"""Brokers of a group with a simulated store of keys as their elector, through faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.election.opening import ElectorRequest, key_elector
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.testing.cluster import Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.parts import Asker
from tests.broker.scripted import LEASE, ScriptedGroup, scripted

SYSTEM_ERROR, FLUSH_SLAVE_TIMEOUT, SERVICE_NOT_AVAILABLE = 1, 12, 14


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
            running.keys = keys
            await test(running)

    simulate(main)


async def sent(asker: Asker) -> int:
    header = SendMessageV2(
        producer_group="p", topic="T", queue_id=0, properties="", born_timestamp=1
    )
    return await asker.code(header, b"x")


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_group_elects_one_master_and_has_all_members_in_sync() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        assert running.view.in_sync == {1, 2, 3}

    play(test)


def test_sends_go_on_after_the_master_is_killed_as_long_as_there_are_copies() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        first = running.master
        await running.asker(first).send("T", b"1")
        killed_at = now()
        running.machine(first).kill()
        second = await running.led(but=first)
        assert now() - killed_at < 0.5
        await running.asker(second).send("T", b"2")
        assert now() - killed_at < 0.7
        running.machine(second).kill()
        third = await running.led(but=second)
        assert await sent(running.asker(third)) == SYSTEM_ERROR, "one copy is not enough"
        await running.machine(first).start()
        await asyncio.sleep(LEASE)
        await running.asker(third).send("T", b"3")
        await running.machine(second).start()
        await running.copied()
        assert await running.asker(third).bodies("T") == [b"1", b"2", b"3"]

    play(test, role="SYNC_MASTER")


def test_a_master_that_stands_still_is_replaced_and_its_slaves_that_do_are_not_waited_for() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        master = running.master
        slave = next(iter({1, 2, 3} - {master}))
        running.machine(slave).pause()
        began = now()
        await running.asker(master).send("T", b"1")
        assert now() - began < 0.6 * LEASE
        running.machine(slave).wake()
        await asyncio.sleep(LEASE)
        assert running.view.in_sync == {1, 2, 3}
        began = now()
        running.machine(master).pause()
        second = await running.led(but=master)
        await running.asker(second).send("T", b"2")
        assert now() - began < 1.2 * LEASE
        running.machine(master).wake()
        await asyncio.sleep(LEASE)
        assert running.view.in_sync == {1, 2, 3}
        assert running.master == second

    play(test, role="SYNC_MASTER")


def test_a_clean_stop_hands_over() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        first = running.master
        await running.asker(first).send("T", b"1")
        began = now()
        stopping = asyncio.ensure_future(running.machine(first).stop())
        second = await running.led(but=first)
        assert now() - began < 0.1
        await running.asker(second).send("T", b"2")
        await stopping
        assert await running.asker(second).bodies("T") == [b"1", b"2"]
        await running.machine(first).start()
        await running.copied()

    play(test, role="SYNC_MASTER")


def test_a_master_that_is_cut_off_acknowledges_nothing_that_the_next_one_has_not() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        first = running.master
        await running.asker(first).send("T", b"1")
        for other in [*running.machines, *running.keys.machines]:
            if other is not running.machine(first):
                running.network.cut(running.machine(first).name, other.name)
        lost = asyncio.ensure_future(sent(running.asker(first)))
        second = await running.led(but=first)
        await running.asker(second).send("T", b"2")
        assert await lost in {FLUSH_SLAVE_TIMEOUT, SERVICE_NOT_AVAILABLE}
        running.network.heal()
        await asyncio.sleep(3 * LEASE)
        await running.copied()
        assert running.view.in_sync == {1, 2, 3}
        assert await running.asker(second).bodies("T") == [b"1", b"2"]

    play(test, role="SYNC_MASTER")
