"""An elector over RocketMQ's controller, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from sprocket.base.deadline import Deadline
from sprocket.election.controller_elector import ControllerElector, GroupOfBrokers
from sprocket.election.elector import ElectionRefused, ElectorUnavailable, GroupView, LogPosition
from sprocket.election.identity import IdentityFile
from sprocket.protocol.codes import RequestCode as Request
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.election import ExchangeReplicaAddressReply
from sprocket.remoting.endpoints import one_by_one
from sprocket.remoting.pool import Pool
from sprocket.remoting.server import Server
from sprocket.remoting.transport import Peer
from sprocket.testing.clock import LoopClock
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.election.controllers import Controllers

CLUSTER, NAME = "c", "b"


def elector_at(
    controllers: Controllers, pool: Pool, disk: MemoryDisk, priority: int = 0
) -> ControllerElector:
    return ControllerElector(
        controllers.addresses,
        GroupOfBrokers(CLUSTER, NAME, priority),
        IdentityFile(disk, "/store", CLUSTER, NAME),
        pool=pool,
        clock=LoopClock(),
    )


@asynccontextmanager
async def member(
    controllers: Controllers, port: int, disk: MemoryDisk | None = None, *, priority: int = 0
) -> AsyncIterator[ControllerElector]:
    async with Pool() as pool:
        elector = elector_at(controllers, pool, disk or MemoryDisk(), priority)
        await elector.join(f"127.0.0.1:{port}", f"127.0.0.1:{port + 5}")
        running = asyncio.create_task(elector.run())
        try:
            yield elector
        finally:
            running.cancel()
            await elector.leave()


async def changed(elector: ControllerElector, what: Callable[[GroupView], bool]) -> float:
    """Waits for a view; returns for how many seconds."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    while not what(elector.view):
        assert await elector.changes.reach(elector.changes.value + 1, Deadline.after(30))
    return loop.time() - started


def now() -> float:
    return asyncio.get_running_loop().time()


def test_members_get_numbers_in_turn_and_keep_them() -> None:
    async def main(network: Network) -> None:
        disks = [MemoryDisk() for _ in range(3)]
        async with Controllers(9000) as controllers:
            for disk, port in zip(disks, (1000, 2000, 3000), strict=True):
                async with member(controllers, port, disk):
                    pass
            assert [disk.read("/store/brokerIdentity") for disk in disks] == [
                b"c#b#1",
                b"c#b#2",
                b"c#b#3",
            ]
            assert disks[0].read("/store/brokerIdentity-temp") is None
            async with member(controllers, 2500, disks[1]) as again:
                assert again.view.members[2].address == "127.0.0.1:2500"
                assert again.view.members[2].replication_address == "127.0.0.1:2505"
                assert again.view.members[3].replication_address == "127.0.0.1:3001"

    simulate(main)


def test_members_that_join_at_once_get_different_numbers() -> None:
    async def main(network: Network) -> None:
        disks = [MemoryDisk() for _ in range(4)]
        async with Controllers(9000) as controllers, Pool() as pool:
            joining = (
                elector_at(controllers, pool, disk).join(f"127.0.0.1:{port}", "")
                for disk, port in zip(disks, range(1000, 1400, 100), strict=True)
            )
            numbers = await asyncio.gather(*joining)
            assert sorted(numbers) == [1, 2, 3, 4]
            assert controllers.groups[NAME].addresses.keys() == {1, 2, 3, 4}

    simulate(main)


def test_a_number_whose_answer_was_lost_is_the_same_after_a_restart() -> None:
    async def main(network: Network) -> None:
        disk = MemoryDisk()
        async with Controllers(9000) as controllers, Pool() as pool:
            controllers.silent.add(Request.CONTROLLER_APPLY_BROKER_ID)
            with pytest.raises(ElectorUnavailable):
                await elector_at(controllers, pool, disk).join("127.0.0.1:1000", "")
            assert controllers.groups[NAME].addresses.keys() == {1}
            controllers.silent.clear()
            assert await elector_at(controllers, pool, disk).join("127.0.0.1:1000", "") == 1
            assert controllers.groups[NAME].addresses.keys() == {1}

    simulate(main)


def test_a_controller_that_does_not_know_the_number_refuses_it() -> None:
    async def main(network: Network) -> None:
        disk = MemoryDisk()
        async with Controllers(9000) as controllers, Pool() as pool:
            await elector_at(controllers, pool, disk).join("127.0.0.1:1000", "")
            controllers.groups.clear()
            with pytest.raises(ElectionRefused, match="CONTROLLER_BROKER_NEED_TO_BE_REGISTERED"):
                await elector_at(controllers, pool, disk).join("127.0.0.1:1000", "")

    simulate(main)


def test_the_set_changes_only_as_it_was_seen() -> None:
    async def main(network: Network) -> None:
        async with (
            Controllers(9000) as controllers,
            member(controllers, 1000) as one,
            member(controllers, 2000) as two,
        ):
            first = await one.claim(one.view)
            assert (first.master, first.epoch, first.in_sync) == (1, 1, {1})
            await changed(one, lambda view: 2 in view.members)
            seen = one.view
            assert (await one.set_in_sync(frozenset({1, 2}), seen)).in_sync == {1, 2}
            with pytest.raises(ElectionRefused, match="changed"):
                await one.set_in_sync(frozenset({1}), seen)
            # The controller compares as well: this one has not seen the last change.
            two.view = seen
            with pytest.raises(ElectionRefused, match="CONTROLLER_INVALID_MASTER"):
                await two.set_in_sync(frozenset({2}), seen)
            controllers.groups[NAME].set_epoch += 1
            with pytest.raises(ElectionRefused, match="FENCED_SYNC_STATE_SET_EPOCH"):
                await one.set_in_sync(frozenset({1}), one.view)

    simulate(main)


def test_a_change_without_an_answer_is_not_sent_twice_and_is_seen_soon() -> None:
    async def main(network: Network) -> None:
        async with (
            Controllers(9000) as controllers,
            member(controllers, 1000) as one,
            member(controllers, 2000),
        ):
            await one.claim(one.view)
            await changed(one, lambda view: 2 in view.members)
            controllers.silent.add(Request.CONTROLLER_ALTER_SYNC_STATE_SET)
            asked = len(controllers.asked)
            with pytest.raises(ElectorUnavailable):
                await one.set_in_sync(frozenset({1, 2}), one.view)
            codes = [code for code, _ in controllers.asked[asked:]]
            assert codes.count(Request.CONTROLLER_ALTER_SYNC_STATE_SET) == 1
            await changed(one, lambda view: view.in_sync == {1, 2})

    simulate(main)


def test_who_follows_learns_of_a_new_master_within_a_second_or_at_once_when_told() -> None:
    async def main(network: Network) -> None:
        async with (
            Controllers(9000) as controllers,
            member(controllers, 1000) as one,
            member(controllers, 2000) as two,
        ):
            await one.claim(one.view)
            await changed(one, lambda view: 2 in view.members)
            await one.set_in_sync(frozenset({1, 2}), one.view)
            controllers.elect(NAME, 2)
            assert await changed(two, lambda view: view.master == 2) < 1.1
            controllers.groups[NAME].in_sync.add(1)
            controllers.elect(NAME, 1)
            two.look_soon()
            assert await changed(two, lambda view: view.master == 1) < 0.1

    simulate(main)


def test_many_notices_are_one_look_at_a_time() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, member(controllers, 1000) as one:
            asked = len(controllers.asked)
            for _ in range(1000):
                one.look_soon()
                await asyncio.sleep(0.001)
            assert len(controllers.asked) - asked < 2 * 1.2 / 0.02

    simulate(main)


def test_only_a_member_in_sync_is_made_the_master() -> None:
    async def main(network: Network) -> None:
        async with (
            Controllers(9000) as controllers,
            member(controllers, 1000) as one,
            member(controllers, 2000),
        ):
            await one.claim(one.view)
            with pytest.raises(ElectionRefused, match="not in sync"):
                await one.hand_over(2, one.view)
            await one.set_in_sync(frozenset({1, 2}), one.view)
            seen = one.view
            after = await one.hand_over(2, seen)
            assert (after.master, after.in_sync, after.epoch) == (2, {2}, 2)
            with pytest.raises(ElectionRefused, match="changed"):
                await one.hand_over(1, seen)

    simulate(main)


def test_the_last_master_of_a_group_comes_back_and_an_outsider_does_not_lead() -> None:
    async def main(network: Network) -> None:
        disk = MemoryDisk()
        async with Controllers(9000) as controllers, member(controllers, 2000) as other:
            async with member(controllers, 1000, disk) as one:
                await one.claim(one.view)
            await asyncio.sleep(1)
            controllers.scan()
            await changed(other, lambda view: view.epoch == 2)
            assert other.view.master is None
            with pytest.raises(ElectionRefused, match="CONTROLLER_ELECT_MASTER_FAILED"):
                await other.claim(other.view)
            async with member(controllers, 1000, disk) as one:
                assert (await one.claim(one.view)).master == 2
                assert one.view.epoch == 3

    simulate(main)


def test_heartbeats_carry_position_and_priority() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, member(controllers, 1000, priority=7) as one:
            one.report(LogPosition(epoch=3, end=500, confirmed=400))
            await asyncio.sleep(1.5)
            life = controllers.lives[NAME, 1]
            assert (life.epoch, life.end, life.priority, life.timeout) == (3, 500, 7, 10.0)

    simulate(main)


def test_the_right_to_write_ends_as_long_after_the_last_heartbeat_as_the_controller_waits() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, member(controllers, 1000) as one:
            await one.claim(one.view)
            await asyncio.sleep(5)
            assert now() + 8 < one.writes_until <= now() + 10
            await controllers.stop(0)
            await asyncio.sleep(20)
            assert one.writes_until < now()
            beaten = controllers.lives[NAME, 1].at
            assert one.writes_until <= beaten + 10
            await controllers.start(0)
            await asyncio.sleep(5)
            assert now() + 8 < one.writes_until

    simulate(main)


def test_a_controller_that_no_longer_leads_prolongs_nothing() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, member(controllers, 1000) as one:
            await asyncio.sleep(3)
            controllers.leader = None
            before = one.writes_until
            await asyncio.sleep(5)
            assert one.writes_until <= before + 1.1

    simulate(main)


def test_another_controller_leads() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000, 9001, 9002) as controllers, member(controllers, 1000) as one:
            await one.claim(one.view)
            await asyncio.sleep(2)
            beats = {index for code, index in controllers.asked if code == Request.BROKER_HEARTBEAT}
            assert beats == {0, 1, 2}
            await controllers.stop(0)
            controllers.leader = 1
            await asyncio.sleep(3)
            assert one.writes_until > now() + 8
            controllers.leader = 2
            await asyncio.sleep(3)
            assert one.writes_until > now() + 8

    simulate(main)


@pytest.mark.parametrize(
    "code", [ResponseCode.SYSTEM_ERROR, ResponseCode.CONTROLLER_JRAFT_INTERNAL_ERROR]
)
def test_failures_of_the_controller_are_no_refusals(code: int) -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, member(controllers, 1000) as one:
            controllers.failing[Request.CONTROLLER_ELECT_MASTER] = code
            with pytest.raises(ElectorUnavailable):
                await one.claim(one.view)

    simulate(main)


def test_a_slave_asks_the_master_where_its_log_is_sent_from() -> None:
    async def main(network: Network) -> None:
        def answer(command: Command, peer: Peer) -> Reply:
            assert command.code == Request.EXCHANGE_BROKER_HA_INFO
            return Reply(header=ExchangeReplicaAddressReply(master_ha_address="127.0.0.1:4711"))

        async with (
            Server(one_by_one(answer), host="127.0.0.1", port=1000),
            Controllers(9000) as controllers,
            member(controllers, 1000) as one,
            member(controllers, 2000) as two,
        ):
            await one.claim(one.view)
            await changed(two, lambda view: view.master == 1)
            assert two.view.members[1].replication_address == "127.0.0.1:4711"

    simulate(main)


def test_an_older_state_of_a_controller_changes_nothing() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, member(controllers, 1000) as one:
            await one.claim(one.view)
            controllers.groups[NAME].epoch = 0
            await asyncio.sleep(3)
            assert one.view.epoch == 1

    simulate(main)


def test_nothing_is_sent_after_leaving() -> None:
    async def main(network: Network) -> None:
        async with Controllers(9000) as controllers, Pool() as pool:
            one = elector_at(controllers, pool, MemoryDisk())
            await one.join("127.0.0.1:1000", "")
            running = asyncio.create_task(one.run())
            await asyncio.sleep(2)
            await one.leave()
            asked = len(controllers.asked)
            await asyncio.sleep(5)
            assert running.done()
            assert len(controllers.asked) == asked
            assert not controllers.is_alive(NAME, 1)
            assert one.writes_until <= 0

    simulate(main)
