"""What an operator sees of groups of brokers, and how one changes who leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sprocket.admin.caller import Caller
from sprocket.admin.replica_groups import elect, replica_groups
from sprocket.base.errors import ReplyError, UsageError
from sprocket.election.opening import ElectorRequest, key_elector
from sprocket.protocol.requests.replica import GroupStateOf
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.broker.groups import BrokerGroup, group
from tests.broker.scripted import LEASE, ScriptedGroup, scripted

Test = Callable[[ScriptedGroup, Caller], Awaitable[None]]


def play(test: Test, **settings: object) -> None:
    """Plays a test with a group of three that elects, whose members are all in sync."""

    async def main(network: Network) -> None:
        keys = KeyServers(network)
        await keys.start()

        def elector(machine: Machine) -> object:
            entropy = SeededEntropy(f"elector {machine.name} {machine.starts}")
            request = ElectorRequest(
                "", "c", "group", machine.disk, "/data", entropy, machine.clock
            )
            return key_elector(keys.client(), request)

        async with (
            scripted(network, elect=elector, elector="etcd://k:1", **settings) as running,  # type: ignore[arg-type]
            Pool() as pool,
        ):
            await running.asker(running.master).create("T")
            await asyncio.sleep(LEASE)
            nameservers = running.cluster.nameserver_addresses
            await test(running, Caller(pool, nameservers, timeout_ms=1_000))

    simulate(main)


def test_a_group_that_elects_is_shown_with_all_its_members() -> None:
    async def test(running: ScriptedGroup, caller: Caller) -> None:
        await running.asker(running.master).send("T", b"1")
        await running.copied()
        (found,) = await replica_groups(caller)
        assert (found.cluster, found.broker, found.elector) == (
            "DefaultCluster", "group", "etcd://k:1",
        )  # fmt: skip
        assert (found.epoch, found.master, found.in_sync) == (1, 1, [1, 2, 3])
        assert [each.number for each in found.members] == [1, 2, 3]
        assert [each.role for each in found.members] == ["master", "slave", "slave"]
        end = running.machine(1).server._store.log_end
        for each, machine in zip(found.members, running.machines, strict=True):
            assert each.address == f"{machine.address}:10911"
            assert (each.is_alive, each.is_in_sync, each.epoch) == (True, True, 1)
            assert each.log_end == each.confirmed == end
            assert (each.behind_bytes, each.behind_seconds) == (0, 0.0)
        assert found.leader == found.members[0]

    play(test)


def test_a_member_that_is_behind_or_dead_is_shown_so() -> None:
    async def test(running: ScriptedGroup, caller: Caller) -> None:
        master, (behind, dead) = running.master, sorted({1, 2, 3} - {running.master})
        await running.asker(master).send("T", b"1")
        await running.copied()
        running.network.cut(running.machine(master).name, running.machine(behind).name)
        running.machine(dead).kill()
        await asyncio.sleep(LEASE)
        for _ in range(3):
            await running.asker(master).send("T", b"x" * 100)
            await asyncio.sleep(1.0)
        (found,) = await replica_groups(caller, broker="group")
        members = {each.number: each for each in found.members}
        assert found.in_sync == [master]
        assert members[dead][3:5] == (False, False)
        assert members[dead].log_end is None
        assert members[behind].is_alive
        assert not members[behind].is_in_sync
        assert (members[behind].behind_bytes or 0) > 300
        assert (members[behind].behind_seconds or 0) >= 2.0
        assert members[behind].priority is not None

    play(test)


def test_an_operator_makes_another_member_the_master() -> None:
    async def test(running: ScriptedGroup, caller: Caller) -> None:
        await running.asker(1).send("T", b"1")
        found = await elect(caller, "group", to=3)
        assert (found.master, found.epoch) == (3, 2)
        assert await running.led(but=1) == 3
        assert await running.asker(3).bodies("T") == [b"1"]
        await asyncio.sleep(2 * LEASE)
        assert (await elect(caller, "group", to=3)).epoch == 2, "it leads already"
        await elect(caller, "group")
        assert await running.led(but=3) in {1, 2}
        await asyncio.sleep(2 * LEASE)
        with pytest.raises(ReplyError, match="member 9 may not take over"):
            await elect(caller, "group", to=9)

    play(test, role="SYNC_MASTER")


def test_whoever_is_not_in_sync_leads_only_by_an_unclean_election() -> None:
    async def test(running: ScriptedGroup, caller: Caller) -> None:
        running.network.cut("member-1", "member-3")
        await asyncio.sleep(LEASE)
        await running.asker(1).send("T", b"lost")
        with pytest.raises(ReplyError, match=r"member 3 may not take over; in sync .*: 2"):
            await elect(caller, "group", to=3)
        for number in (1, 2):
            running.machine(number).kill()
        await asyncio.sleep(3 * LEASE)
        with pytest.raises(ReplyError, match="no member may take over"):
            await elect(caller, "group")
        with pytest.raises(ReplyError, match="member 3 may not lead: it is not among those"):
            await elect(caller, "group", to=3)
        with pytest.raises(UsageError, match="needs the number"):
            await elect(caller, "group", is_unclean=True)
        found = await elect(caller, "group", to=3, is_unclean=True)
        assert (found.master, found.in_sync) == (3, [3])
        assert await running.led(but=1) == 3

    play(test)


def test_a_master_and_its_slave_without_elector_are_shown_too() -> None:
    async def story(running: BrokerGroup, caller: Caller) -> None:
        await running.askers[0].create("T")
        await running.askers[0].send("T", b"1")
        await running.equal()
        (found,) = await replica_groups(caller, cluster="DefaultCluster")
        end = running.master.server._store.log_end
        assert found[2:6] == (None, None, 0, [])
        assert [each[0] for each in found.members] == [0, 1]
        assert [each.role for each in found.members] == ["master", "slave"]
        assert {each.log_end for each in found.members} == {end}
        assert {each.is_in_sync for each in found.members} == {None}
        assert found.members[1].behind_bytes == 0
        with pytest.raises(UsageError, match="has no elector"):
            await elect(caller, found.broker)
        with pytest.raises(UsageError, match="no broker nowhere is known"):
            await replica_groups(caller, broker="nowhere")
        running.slaves[0].kill()
        (found,) = await replica_groups(caller)
        assert [each.is_alive for each in found.members] == [True, False]

    async def main(network: Network) -> None:
        async with group(network) as running, Pool() as pool:
            await story(running, Caller(pool, running.cluster.nameserver_addresses))

    simulate(main)


def test_brokers_of_rocketmq_show_where_their_logs_end() -> None:
    async def main(network: Network) -> None:
        async with group(network) as running, Pool() as pool:
            await running.askers[0].create("T")
            await running.askers[0].send("T", b"1")
            await running.equal()
            for machine in (running.master, *running.slaves):
                table = machine.server._now.dispatch._endpoints
                table.pop(GroupStateOf.code)
            (found,) = await replica_groups(Caller(pool, running.cluster.nameserver_addresses))
            end = running.master.server._store.log_end
            assert [each.role for each in found.members] == ["master", "slave"]
            assert [each.log_end for each in found.members] == [end, end]
            assert [each.confirmed for each in found.members] == [None, None]
            assert found.members[1].behind_bytes == 0
            assert found.members[1].behind_seconds is None

    simulate(main)
