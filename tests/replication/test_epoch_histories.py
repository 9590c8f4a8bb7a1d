"""Histories of three members whose master changes: what was acknowledged stays, and logs are one.

The test decides who leads, in place of an elector: a member of the in-sync set, in a new epoch. An
old master may go on for a while and append what nobody confirms.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest

from sprocket.base.deadline import Deadline
from sprocket.base.errors import StoreError
from sprocket.base.watermark import Watermark
from sprocket.replication.epoch_file import EpochFile
from sprocket.replication.in_sync_copies import InSyncCopies
from sprocket.replication.slave_forms import LogsDiffer, SlaveMember
from sprocket.testing.disk import FaultyDisk, MemoryDisk
from sprocket.testing.loop import simulate
from sprocket.testing.network import Network
from tests.replication.members import Leading, Replica, following, leading, replica
from tests.sim.planting import Plant
from tests.store.making import a_draft

MEMBERS = (1, 2, 3)
SEEDS = 15
#: What was cut came back with a loss of power, under the name of a new epoch.
FOUND = (251,)


@dataclass
class Group:
    """What an elector would know."""

    epoch: int = 0
    master: int = 0
    in_sync: frozenset[int] = frozenset(MEMBERS)
    version: int = 0
    changes: Watermark = field(default_factory=Watermark)


@dataclass
class Acknowledged:
    """A message that was acknowledged: where it is, and its bytes."""

    start: int
    record: bytes


@dataclass
class Member:
    """One broker: its disk, and what it does now."""

    number: int
    group: Group
    disk: MemoryDisk
    replica: Replica | None = None
    lead: Leading | None = None
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    task: asyncio.Task[None] | None = None
    cuts: int = 0

    async def open(self, *, is_copy: bool, cut_at: int | None = None) -> Replica:
        self.replica = await replica(self.number, self.disk, is_copy=is_copy, cut_at=cut_at)
        return self.replica

    async def stop(self, *, loses_power: bool = False) -> None:
        """Ends as a kill does."""
        if self.task is not None:
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)
        await self.stack.aclose()
        self.stack, self.task, self.lead, self.replica = AsyncExitStack(), None, None, None
        is_lost = loses_power and isinstance(self.disk, FaultyDisk)
        self.disk = self.disk.after_power_loss() if is_lost else self.disk.after_kill()

    async def begin_to_lead(self) -> None:
        group = self.group
        await self.stop()
        one = await self.open(is_copy=False)
        self.lead = await self.stack.enter_async_context(
            leading(one, group.epoch, in_sync=tuple(group.in_sync))
        )
        self.lead.set_in_sync(*group.in_sync, version=group.version)

    async def begin_to_follow(self, *, loses_power: bool = False) -> None:
        await self.stop(loses_power=loses_power)
        self.task = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        cut_at = None
        while True:
            one = await self.open(is_copy=True, cut_at=cut_at)
            port, changes = 10000 + self.group.master, self.group.changes
            async with following(one, port, epoch_min=lambda: self.group.epoch) as follower:
                other = asyncio.ensure_future(changes.reach(changes.value + 1, Deadline.never()))
                await asyncio.wait({other, follower.task}, return_when=asyncio.FIRST_COMPLETED)
                other.cancel()
                differs = follower.task.exception() if follower.task.done() else None
            await one.store.close()
            self.disk = self.disk.after_kill()
            cut_at = None
            if isinstance(differs, LogsDiffer):
                cut_at = differs.cut_at
                self.cuts += 1
            elif differs is not None:
                raise differs


class History:
    """One history."""

    def __init__(self, seed: int, network: Network) -> None:
        self.random = random.Random(seed)
        self.network = network
        self.group = Group()
        self.members = {
            number: Member(number, self.group, FaultyDisk(seed + number)) for number in MEMBERS
        }
        self.acknowledged: list[Acknowledged] = []
        self.count = 0
        self.zombies: set[int] = set()

    async def run(self) -> None:
        await self.change_master(1)
        for _ in range(self.random.randrange(10, 25)):
            await self.step()
        await self.rest()

    async def step(self) -> None:
        kind = self.random.choices(
            ("send", "pause", "change", "kill", "break", "power"), (10, 5, 3, 2, 2, 1)
        )[0]
        others = [each for each in MEMBERS if each != self.group.master]
        if kind == "send":
            for number in (self.group.master, *self.zombies):
                self.send(self.members[number], self.random.randrange(1, 12))
        elif kind == "change":
            able = sorted(self.group.in_sync - {self.group.master})
            if able:
                await self.change_master(self.random.choice(able))
        elif kind == "kill":
            await self.restart(self.random.choice(others))
        elif kind == "power":
            outside = [each for each in others if each not in self.group.in_sync]
            for each in outside[:1]:
                await self.restart(each, loses_power=True)
        elif kind == "break":
            self.network.break_connections(probability=0.7)
        await asyncio.sleep(self.random.choice((0.0, 0.002, 0.02, 0.3)))
        self.keep_set()

    def send(self, member: Member, count: int) -> None:
        lead = member.lead
        if lead is None:
            return
        for _ in range(count):
            self.count += 1
            body = b"%d by %d " % (self.count, member.number) + bytes(self.random.randrange(300))
            draft = a_draft(body, queue_number=self.random.randrange(2))
            start, end = lead.replica.store.append(draft).log_offset, lead.replica.store.log_end
            record = bytes(lead.replica.store.lookup(start))
            task = asyncio.ensure_future(self.wait(lead, start, end, record))
            member.stack.callback(task.cancel)

    async def wait(self, lead: Leading, start: int, end: int, record: bytes) -> None:
        await lead.replicated.reach(end, Deadline.never())
        self.acknowledged.append(Acknowledged(start, record))

    def keep_set(self) -> None:
        """Members enter and leave the set, as the group's master decides it."""
        group = self.group
        lead = self.members[group.master].lead
        assert lead is not None
        end = lead.replica.store.log_end
        wanted = set(group.in_sync)
        for number in MEMBERS:
            known = lead.copies.members.get(number)
            if number in group.in_sync and number != group.master:
                if (known is None or not known.is_connected) and self.random.random() < 0.3:
                    wanted.discard(number)
            elif lead.copies.may_enter(number, end):
                wanted.add(number)
        if wanted != group.in_sync:
            lead.copies.propose(frozenset(wanted))
            group.in_sync, group.version = frozenset(wanted), group.version + 1
            lead.set_in_sync(*wanted, version=group.version)

    async def restart(self, number: int, *, loses_power: bool = False) -> None:
        self.zombies.discard(number)
        await self.members[number].begin_to_follow(loses_power=loses_power)

    async def change_master(self, number: int) -> None:
        old = self.group.master
        self.group.epoch += 1
        self.group.master = number
        self.group.changes.rise(self.group.epoch)
        self.zombies.discard(number)
        if old and self.random.random() < 0.5:
            self.zombies.add(old)  # it has not heard of it
        elif old:
            await self.restart(old)
        await self.members[number].begin_to_lead()
        for each in MEMBERS:
            if self.members[each].task is None and self.members[each].lead is None:
                await self.members[each].begin_to_follow()

    async def rest(self) -> None:
        for number in list(self.zombies):
            await self.restart(number)
        for _ in range(40):
            await asyncio.sleep(0.3)
            self.keep_set()
        lead = self.members[self.group.master].lead
        assert lead is not None
        self.send(self.members[self.group.master], 3)
        await asyncio.sleep(1)
        self.check(lead)
        for member in self.members.values():
            await member.stop()

    def check(self, lead: Leading) -> None:
        log = lead.replica.log
        assert self.group.in_sync == set(MEMBERS)
        for number, member in self.members.items():
            assert member.replica is not None
            assert member.replica.log == log, f"the log of member {number} differs"
            assert member.replica.epochs.epochs == lead.replica.epochs.epochs
            assert member.replica.confirmed.value == len(log)
        for each in self.acknowledged:
            found = log[each.start : each.start + len(each.record)]
            assert found == each.record, f"the message at {each.start} was acknowledged and is gone"
        assert lead.replicated.value == len(log)


def play(seed: int) -> History:
    async def main(network: Network) -> History:
        history = History(seed, network)
        await history.run()
        return history

    return simulate(main, seed=seed)


def play_all(count: int) -> list[History]:
    return [play(seed) for seed in (*range(count), *FOUND)]


def test_whatever_happens_logs_become_one_with_all_that_was_acknowledged() -> None:
    histories = play_all(SEEDS)
    cuts = sum(member.cuts for each in histories for member in each.members.values())
    acknowledged = sum(len(each.acknowledged) for each in histories)
    assert cuts > SEEDS // 2  # these things did happen
    assert acknowledged > 10 * SEEDS


def never_cuts(patch: pytest.MonkeyPatch) -> None:
    """Takes any log for the beginning of its master's."""
    patch.setattr(SlaveMember, "compare", lambda self, hello: None)


def counts_any_one(patch: pytest.MonkeyPatch) -> None:
    """Counts what any one member of the set has as confirmed."""

    def readable(self: InSyncCopies, end: int) -> int:
        counted = [self.members[each].report for each in self.in_sync if each in self.members]
        return min(max(counted, default=0), end)

    patch.setattr(InSyncCopies, "readable", readable)


def forgets_epochs(patch: pytest.MonkeyPatch) -> None:
    """Gives the records of a new master to the epoch before."""
    patch.setattr(EpochFile, "begin", lambda self, epoch, start, end: (
        EpochFile.add(self, epoch, start) if not self.epochs else None
    ))  # fmt: skip


@pytest.mark.parametrize("fault", [never_cuts, counts_any_one, forgets_epochs])
def test_a_broken_promise_is_found(fault: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(monkeypatch)
    with pytest.raises((AssertionError, StoreError)):
        play_all(4 * SEEDS)
