"""The elector over leased keys, in virtual time, alone and with everything that may go wrong."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sprocket.election.elector import ElectionRefused, ElectorUnavailable, LogPosition
from sprocket.election.key_elector import KeyElector
from sprocket.election.leased_keys import Put, Transacted
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.key_state import KeyState
from sprocket.testing.leased_keys import KeyServers, SimulatedKeys
from sprocket.testing.loop import simulate
from sprocket.testing.network import Fates, Network
from sprocket.testing.process import SimulatedProcess
from tests.election.contract import keeps_its_promises
from tests.election.participants import GROUP, LEASE, Group, elector_of

SEEDS = range(20)


class World:
    """Servers of keys, and electors that a test moves by hand."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.servers = KeyServers(network)
        self.disks: dict[int, MemoryDisk] = {}
        self.starts = 0

    async def elector(
        self, number: int, *, runs: bool = True, keys: SimulatedKeys | None = None, **more: Any
    ) -> KeyElector:
        """The elector of the broker on host `number`; a second one is its next start."""
        process = SimulatedProcess(f"broker-{number}", f"broker-{number}")
        disk = self.disks.setdefault(number, MemoryDisk())
        disk.make_directory("/data")
        self.starts += 1
        entropy = SeededEntropy(f"{number} {self.starts}")
        machine = type("Place", (), {"disk": disk})()
        made = elector_of(machine, keys or self.servers.client(), entropy, **more)
        await process.run(made.join(f"host-{number}:10911", f"host-{number}:10912"))
        if runs:
            process.start(made.run())
        return made


def play(story: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main(network: Network) -> None:
        world = World(network)
        await world.servers.start()
        await story(world)

    simulate(main)


async def moment(seconds: float = 0.1) -> None:
    await asyncio.sleep(seconds)


def test_simulated_keys_keep_what_a_store_of_leased_keys_promises() -> None:
    async def story(world: World) -> None:
        await keeps_its_promises(world.servers.client(), world.servers.client())

    play(story)


def test_members_get_numbers_from_one_on_and_keep_them() -> None:
    async def story(world: World) -> None:
        one, two = await world.elector(7), await world.elector(8)
        assert (one.id, two.id) == (1, 2)
        assert (await world.elector(8)).id == 2
        assert (await world.elector(9)).id == 3
        await moment()
        assert sorted(one.view.members) == [1, 2, 3]
        assert one.view.members[2].address == "host-8:10911"
        assert one.view.members[2].replication_address == "host-8:10912"

    play(story)


def test_a_number_is_found_again_if_the_answer_was_lost() -> None:
    async def story(world: World) -> None:
        for machine in world.servers.machines:
            world.network.distort(machine.name, Fates(lost=0.5))
        numbers = set()
        for host in range(6):
            while True:
                try:
                    numbers.add((await world.elector(host)).id)
                except ElectorUnavailable:
                    await moment()
                else:
                    break
        assert numbers == {1, 2, 3, 4, 5, 6}

    play(story)


def test_two_brokers_with_one_number_do_not_both_join() -> None:
    async def story(world: World) -> None:
        await world.elector(1)
        world.disks[2] = world.disks[1]
        with pytest.raises(ElectionRefused, match=r"host-1.*was its folder copied"):
            await world.elector(2)

    play(story)


def test_a_broker_that_moves_takes_its_number_along_when_its_old_lease_is_over() -> None:
    async def story(world: World) -> None:
        await world.elector(1, runs=False)
        world.disks[2] = world.disks[1]
        moved = await world.elector(2)
        assert moved.id == 1
        assert moved.view.members[1].address == "host-2:10911"

    play(story)


def test_a_folder_of_another_broker_is_refused() -> None:
    async def story(world: World) -> None:
        disk = world.disks[1] = MemoryDisk()
        disk.make_directory("/data")
        disk.replace("/data/brokerIdentity", b"C#other#4")
        with pytest.raises(ElectionRefused, match="belongs to broker other of cluster C"):
            await world.elector(1)

    play(story)


def test_a_claim_takes_the_old_master_out_of_the_set_and_keeps_the_others() -> None:
    async def story(world: World) -> None:
        one, two, three = [await world.elector(n) for n in (1, 2, 3)]
        first = await one.claim(one.view)
        assert (first.epoch, first.master, first.in_sync) == (1, 1, {1})
        view = await one.set_in_sync(frozenset({1, 2, 3}), first)
        assert (view.epoch, view.set_epoch, view.in_sync) == (1, 2, {1, 2, 3})
        await moment()
        view = await two.claim(two.view)
        assert (view.epoch, view.master, view.in_sync, view.set_epoch) == (2, 2, {2, 3}, 3)
        await moment()
        assert one.view.master == three.view.master == 2
        # The one that leads already claims anew after a restart: the set stays.
        view = await two.claim(two.view)
        assert (view.epoch, view.master, view.in_sync) == (3, 2, {2, 3})

    play(story)


def test_an_old_view_changes_nothing() -> None:
    async def story(world: World) -> None:
        one, two = await world.elector(1), await world.elector(2)
        view = await one.set_in_sync(frozenset({1, 2}), await one.claim(one.view))
        await moment()
        await two.claim(two.view)
        for change in (
            one.set_in_sync(frozenset({1}), view), one.claim(view), one.hand_over(2, view)
        ):  # fmt: skip
            with pytest.raises(ElectionRefused, match="member 2 is the master of epoch 2"):
                await change
        await moment()
        with pytest.raises(ElectionRefused, match="not the master of epoch 2"):
            await one.set_in_sync(frozenset({1, 2}), one.view)
        with pytest.raises(ElectionRefused, match="may not lead"):
            await one.claim(one.view)

    play(story)


def test_of_many_that_claim_at_once_one_leads() -> None:
    async def story(world: World) -> None:
        electors = [await world.elector(n) for n in range(5)]
        await moment()
        tried = [each.claim(each.view) for each in electors]
        outcomes = await asyncio.gather(*tried, return_exceptions=True)
        won = [each for each in outcomes if not isinstance(each, ElectionRefused)]
        assert len(won) == 1
        await moment()
        assert {(each.view.epoch, each.view.master) for each in electors} == {
            (1, electors[0].view.master)
        }

    play(story)


def test_who_is_not_in_sync_leads_only_if_allowed_and_nobody_else_is_left() -> None:
    async def story(world: World) -> None:
        one = await world.elector(1)
        clean, unclean = await world.elector(2), await world.elector(3, elect_unclean=True)
        await one.claim(one.view)
        await moment()
        with pytest.raises(ElectionRefused, match="not among those"):
            await clean.claim(clean.view)
        with pytest.raises(ElectionRefused, match="1, with everything that was acknowledged, is"):
            await unclean.claim(unclean.view)
        await one.leave()
        await moment()
        with pytest.raises(ElectionRefused, match="not among those"):
            await clean.claim(clean.view)
        view = await unclean.claim(unclean.view)
        assert (view.epoch, view.master, view.in_sync) == (2, 3, {3})

    play(story)


def test_handing_over_needs_a_living_member_in_sync_unless_an_operator_insists() -> None:
    async def story(world: World) -> None:
        one, two, three = [await world.elector(n) for n in (1, 2, 3)]
        view = await one.set_in_sync(frozenset({1, 2}), await one.claim(one.view))
        with pytest.raises(ElectionRefused, match="9 is no member of the group"):
            await one.hand_over(9, view)
        with pytest.raises(ElectionRefused, match="member 3 may not lead"):
            await one.hand_over(3, view)
        await two.leave()
        await moment()
        with pytest.raises(ElectionRefused, match="does not seem to live"):
            await one.hand_over(2, view)
        view = await three.hand_over(3, three.view, is_unclean=True)
        assert (view.epoch, view.master, view.in_sync) == (2, 3, {3})
        await moment()
        assert one.view.master == 3

    play(story)


def test_epochs_rise_above_those_of_the_log_even_if_the_keys_were_lost() -> None:
    async def story(world: World) -> None:
        one = await world.elector(1)
        one.report(LogPosition(epoch=7))
        assert (await one.claim(one.view)).epoch == 8

    play(story)


def test_the_right_to_write_ends_without_an_answer_and_begins_again_with_one() -> None:
    async def story(world: World) -> None:
        loop = asyncio.get_running_loop()
        one, two = await world.elector(1), await world.elector(2)
        await one.claim(one.view)
        assert two.writes_until < 0 < one.writes_until <= loop.time() + LEASE
        world.network.cut_off("broker-1")
        await moment(LEASE)
        assert one.writes_until <= loop.time()
        await moment(LEASE)
        assert not two.view.members[1].is_alive
        world.network.heal()
        await moment(LEASE)
        assert one.writes_until > loop.time()
        assert two.view.members[1].is_alive

    play(story)


def test_a_master_that_could_not_watch_stops_writing_when_another_leads() -> None:
    class WithoutWatch(SimulatedKeys):
        async def watch(self, prefix: str, revision: int) -> Any:
            await asyncio.sleep(1_000)
            yield 0

    async def story(world: World) -> None:
        blind = WithoutWatch(world.servers.addresses, 0.6)
        one, two = await world.elector(1, keys=blind), await world.elector(2)
        await one.set_in_sync(frozenset({1, 2}), await one.claim(one.view))
        await moment()
        await two.claim(two.view)
        await moment(LEASE / 3)
        assert one.view.master == 2
        assert one.writes_until < 0

    play(story)


def test_a_change_is_seen_at_once() -> None:
    async def story(world: World) -> None:
        one, two = await world.elector(1), await world.elector(2)
        await moment(1.0)
        before = two.changes.value
        await one.claim(one.view)
        await moment(0.03)
        assert two.view.master == 1
        assert two.changes.value > before
        await one.leave()
        await moment(0.03)
        assert not two.view.members[1].is_alive

    play(story)


def test_a_watch_that_is_dead_without_an_error_is_begun_again() -> None:
    async def story(world: World) -> None:
        one, two = await world.elector(1), await world.elector(2)
        await moment(1.0)
        world.network.freeze("broker-2")
        view = await one.claim(one.view)
        await moment(LEASE)
        await one.set_in_sync(frozenset({1, 2}), view)
        await moment(0.05)
        assert two.view.in_sync == {1, 2}

    play(story)


class DeafKeys(SimulatedKeys):
    """A client that hears no answer of so many next transactions, which are made."""

    deaf = 0

    async def transact(self, compares: Any, changes: Any) -> Transacted:
        made = await super().transact(compares, changes)
        if self.deaf:
            self.deaf -= 1
            raise ElectorUnavailable("the answer is lost")
        return made


@pytest.mark.parametrize("lost", [1, 3])
def test_whoever_does_not_hear_that_it_leads_finds_out(lost: int) -> None:
    async def story(world: World) -> None:
        keys = DeafKeys(world.servers.addresses, 0.6)
        one, two = await world.elector(1, keys=keys), await world.elector(2)
        keys.deaf = lost
        view = await one.claim(one.view)
        assert (view.epoch, view.master) == (1, 1)
        keys.deaf = lost
        await moment()
        view = await one.set_in_sync(frozenset({1, 2}), view)
        assert (view.epoch, view.in_sync) == (1, {1, 2})
        await moment()
        assert two.view == one.view

    play(story)


def test_keys_that_hold_something_else_stop_nobody_for_good() -> None:
    async def story(world: World) -> None:
        one = await world.elector(1)
        await one.claim(one.view)
        keys = world.servers.client()
        good = (await keys.get(GROUP)).keys[GROUP]
        await keys.transact([], [Put(GROUP, "[1, 2"), Put("/sprocket/C/b/members/x", "?")])
        await keys.transact([], [Put("/sprocket/C/b/members/5", "[]"), Put("/sprocket/C/b/z", "")])
        await moment(LEASE)
        assert one.view.master == 1
        assert one.writes_until < asyncio.get_running_loop().time()
        await keys.transact([], [Put(GROUP, good.value)])
        await moment(LEASE)
        assert one.writes_until > asyncio.get_running_loop().time()

    play(story)


def test_a_state_from_a_backup_is_not_believed() -> None:
    async def story(world: World) -> None:
        one, two = await world.elector(1), await world.elector(2)
        old = await one.claim(one.view)
        kept = (await world.servers.client().get(GROUP)).keys[GROUP]
        await one.set_in_sync(frozenset({1, 2}), old)
        await moment()
        await two.claim(two.view)
        await moment()
        await world.servers.client().transact([], [Put(GROUP, kept.value)])
        await moment(LEASE * 2)
        assert one.view.master == two.view.master == 2
        assert two.writes_until < asyncio.get_running_loop().time()

    play(story)


def check_history(group: Group) -> None:
    """What must hold of everything that was ever decided."""
    states = group.states()
    masters: dict[int, int] = {}
    for state in states:
        assert masters.setdefault(state.epoch, state.master) == state.master, "two masters"
    marks = [state.mark for state in states]
    assert len(marks) == len(set(marks)), "one change was made twice"
    for before, after in itertools.pairwise(states):
        assert after.set_epoch == before.set_epoch + 1, "a change was based on an old view"
        if after.epoch == before.epoch:
            assert after.mark.startswith(f"{before.master}-"), "not the master changed the set"
            assert after.master in after.in_sync
        else:
            assert after.epoch > before.epoch
            assert after.master in before.in_sync, "the new master may have missed something"
            assert after.in_sync <= before.in_sync, "the set grew without a master"


async def check_always(group: Group) -> None:
    """What must hold at every moment, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(0.01)
        for each in group.electors:
            if each.writes_until > loop.time():
                end = group.servers.state.lasts_until(f"/sprocket/C/b/alive/{each.id}")
                assert end >= each.writes_until, "it writes longer than its lease lasts"


async def history(network: Network, seed: int, group: Group) -> None:
    """Faults for a minute, and then peace in which all must go on."""
    await group.start()
    watching = asyncio.ensure_future(check_always(group))
    for _ in range(3):
        await group.suffer(20.0)
        check_history(group)
        if watching.done():
            watching.result()
    for broker in group.brokers:
        broker.is_busy = False
    await asyncio.sleep(4 * LEASE)
    loop = asyncio.get_running_loop()
    newest = group.states()[-1]
    assert len(group.electors) == len(group.brokers)
    for each in group.electors:
        assert (each.view.epoch, each.view.master) == (newest.epoch, newest.master)
        assert each.view.in_sync == newest.in_sync
        assert all(member.is_alive for member in each.view.members.values())
    master = next(each for each in group.electors if each.id == newest.master)
    assert master.writes_until > loop.time()
    view = await master.set_in_sync(frozenset(master.view.members), master.view)
    assert view.in_sync == {1, 2, 3}
    watching.cancel()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_rules_hold_whatever_fails(seed: int) -> None:
    simulate(lambda network: history(network, seed, Group(network, seed)), seed=seed)


def caught(make: Callable[[Network, int], Group], seeds: range = range(6)) -> bool:
    """Whether a planted fault is found by one of few seeds."""
    for seed in seeds:
        try:
            simulate(lambda network, s=seed: history(network, s, make(network, s)), seed=seed)
        except AssertionError:
            return True
    return False


class LateLease(KeyElector):
    """A planted fault: the right to write is counted from the answer."""

    async def _show_life(self) -> int:
        newest = await super()._show_life()
        self._until = asyncio.get_running_loop().time() + LEASE
        return newest


class Forgetful(KeyElector):
    """A planted fault: a change whose answer is lost is made anew, upon whatever is there now."""

    async def _change(self, seen: Any, state: Any) -> Any:
        try:
            return await super()._change(seen, state)
        except ElectionRefused:
            return await super()._change(self.view, state)


@pytest.mark.parametrize("kind", [LateLease, Forgetful])
def test_planted_faults_of_an_elector_are_found(kind: type[KeyElector]) -> None:
    assert caught(lambda network, seed: Group(network, seed, kind=kind))


def test_a_store_that_compares_nothing_is_found() -> None:
    assert caught(
        lambda network, seed: Group(network, seed, state=KeyState(ignores_comparisons=True))
    )
