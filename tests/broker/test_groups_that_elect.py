"""Brokers of a group with a simulated store of keys as their elector, through faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.election.opening import ElectorRequest, key_elector
from sprocket.protocol.bodies import KvTable, ReplicaStateBody
from sprocket.protocol.requests.admin import BrokerState
from sprocket.protocol.requests.replica import HandOver, ReplicaState
from sprocket.protocol.requests.send import SendMessageV2
from sprocket.testing.cluster import Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.parts import Asker
from tests.broker.scripted import LEASE, ScriptedGroup, scripted

SUCCESS, SYSTEM_ERROR, SYSTEM_BUSY, FLUSH_SLAVE_TIMEOUT, SERVICE_NOT_AVAILABLE = 0, 1, 2, 12, 14


def play(test: Callable[[ScriptedGroup], Awaitable[None]], **settings: object) -> None:
    async def main(network: Network) -> None:
        keys = KeyServers(network)
        await keys.start()

        def elect(machine: Machine) -> object:
            entropy = SeededEntropy(f"elector {machine.name} {machine.starts}")
            request = ElectorRequest(
                "", "c", "group", machine.disk, "/data", entropy, machine.clock
            )
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


def test_an_operator_gives_the_lead_to_another_member_and_nothing_that_waits_is_lost() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        first = running.master
        other = max({1, 2, 3} - {first})
        sending = [asyncio.ensure_future(sent(running.asker(first))) for _ in range(5)]
        handing = asyncio.ensure_future(running.asker(first).code(HandOver(to=other)))
        codes = await asyncio.gather(*sending)
        assert await handing == SUCCESS
        assert set(codes) <= {SUCCESS, SYSTEM_BUSY, SERVICE_NOT_AVAILABLE}
        assert await running.led(but=first) == other
        await asyncio.sleep(LEASE)
        stored = await running.asker(other).bodies("T")
        assert len(stored) == codes.count(SUCCESS)
        assert running.view.in_sync == {1, 2, 3}

    play(test, role="SYNC_MASTER")


def test_the_state_of_a_broker_shows_the_group() -> None:
    async def test(running: ScriptedGroup) -> None:
        await running.asker(running.master).send("T", b"1")
        await asyncio.sleep(LEASE)
        reply = await running.asker(running.master).call(BrokerState())
        figures = KvTable.decode(reply.body).table
        end = running.machine(running.master).server._store.log_end
        shown = {key: figures[key] for key in ("groupRole", "groupEpoch", "inSyncSet")}
        assert shown == {"groupRole": "master", "groupEpoch": "1", "inSyncSet": "1,2,3"}
        assert figures["confirmOffset"] == str(end)
        others = {1, 2, 3} - {running.master}
        assert {figures[f"behindBytes.{each}"] for each in others} == {"0"}
        assert all(int(figures[f"behindMs.{each}"]) < 1000 for each in others)
        reply = await running.asker(running.master).call(ReplicaState())
        assert ReplicaStateBody.decode(reply.body).in_sync_slave_nums == 2
        slave = running.asker(min(others))
        figures = KvTable.decode((await slave.call(BrokerState())).body).table
        assert (figures["groupRole"], figures["groupEpoch"]) == ("slave", "1")

    play(test)


def test_a_master_whose_disk_is_slow_is_not_replaced_before_it_listens() -> None:
    async def test(running: ScriptedGroup) -> None:
        await asyncio.sleep(LEASE)
        first = running.master
        for machine in running.machines:
            machine.disk._sync_seconds = (0.2, 0.3)
        running.machine(first).kill()
        await running.led(but=first)
        await asyncio.sleep(2 * LEASE)
        assert running.view.epoch == 2

    play(test)
