"""A group of brokers on a simulated network, whose elector does what a test says."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sprocket.base.watermark import Watermark
from sprocket.broker.broker import Broker
from sprocket.broker.config import BrokerConfig
from sprocket.election.elector import (
    ElectionRefused,
    Elector,
    ElectorUnavailable,
    GroupView,
    LogPosition,
    Member,
)
from sprocket.store.config import StoreConfig
from sprocket.testing.cluster import BROKER_PORT, SMALL_STORE, Cluster, Machine
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.network import Network
from sprocket.testing.process import current_process
from tests.broker.parts import Asker

LEASE = 3.0


@dataclass
class Script:
    """What is decided about the group; a test may decide as well.

    Attributes:
        claims: numbers of the members that claimed, in order.
        is_away: whether no elector answers.
    """

    view: GroupView = field(default_factory=GroupView)
    claims: list[int] = field(default_factory=list)
    electors: dict[int, ScriptedElector] = field(default_factory=dict)
    is_away: bool = False

    def decide(self, **changes: Any) -> GroupView:
        self.view = self.view._replace(version=self.view.version + 1, **changes)
        for elector in self.electors.values():
            elector.show()
        return self.view

    def lead(self, number: int) -> GroupView:
        lost = self.view.master
        in_sync = (self.view.in_sync - {lost}) | {number}
        return self.decide(
            epoch=self.view.epoch + 1,
            master=number,
            in_sync=in_sync,
            set_epoch=self.view.set_epoch + 1,
        )


class ScriptedElector:
    is_deciding = True

    def __init__(self, script: Script, number: int) -> None:
        self._script = script
        self._number = number
        self.view = GroupView()
        self.changes = Watermark()
        self.writes_until = math.inf
        self.position = LogPosition()

    def show(self) -> None:
        if not self._script.is_away and self.view != self._script.view:
            self.view = self._script.view
            self.changes.rise(self.changes.value + 1)

    async def join(self, address: str, replication_address: str) -> int:
        members = dict(self._script.view.members)
        members[self._number] = Member(self._number, address, replication_address)
        self._script.electors[self._number] = self
        self._script.decide(members=members)
        return self._number

    async def run(self) -> None:
        await asyncio.Event().wait()

    def report(self, position: LogPosition) -> None:
        self.position = position

    async def claim(self, seen: GroupView) -> GroupView:
        await self._asked(seen)
        if seen.in_sync and self._number not in seen.in_sync:
            raise ElectionRefused("not in sync")
        self._script.claims.append(self._number)
        return self._script.lead(self._number)

    async def set_in_sync(self, members: frozenset[int], seen: GroupView) -> GroupView:
        await self._asked(seen)
        return self._script.decide(in_sync=members, set_epoch=seen.set_epoch + 1)

    async def hand_over(self, to: int, seen: GroupView, *, is_unclean: bool = False) -> GroupView:
        await self._asked(seen)
        return self._script.lead(to)

    async def leave(self) -> None:
        if self._script.electors.get(self._number) is self:
            del self._script.electors[self._number]

    async def _asked(self, seen: GroupView) -> None:
        await asyncio.sleep(0.002)
        process = current_process()
        if self._script.is_away or (process is not None and not process.is_alive):
            raise ElectorUnavailable("away")
        if seen.version != self._script.view.version:
            raise ElectionRefused("the view is old")


@dataclass
class ScriptedGroup:
    """A running group; machine n is member n + 1.

    Attributes:
        keys: where it elects, if the script does not decide.
    """

    script: Script
    network: Network
    cluster: Cluster
    machines: list[Machine]
    askers: list[Asker]
    is_scripted: bool = True
    keys: KeyServers | None = None

    @property
    def view(self) -> GroupView:
        """What is decided, as the newest view of a running member shows it."""
        if self.is_scripted:
            return self.script.view
        views = [each.server._elector.view for each in self.machines if each.is_running]
        return max(views, key=lambda each: each.version)

    def asker(self, number: int) -> Asker:
        return self.askers[number - 1]

    def machine(self, number: int) -> Machine:
        return self.machines[number - 1]

    @property
    def master(self) -> int:
        assert self.view.master is not None
        return self.view.master

    async def led(self, *, but: int = 0, seconds: float = 30.0) -> int:
        """The number of the master, once it accepts messages."""
        async with asyncio.timeout(seconds):
            while True:
                master = self.view.master
                if master is not None and master != but:
                    broker = self.machine(master).server
                    if broker._group._roles.standing.is_leading:
                        return master
                await asyncio.sleep(0.01)

    async def copied(self, seconds: float = 30.0) -> None:
        """Returns when all running members have the master's log."""
        async with asyncio.timeout(seconds):
            while not self._is_copied():  # noqa: ASYNC110 - members open and close their stores
                await asyncio.sleep(0.05)

    def _is_copied(self) -> bool:
        stores = [each.server._store for each in self.machines if each.is_running]
        end = self.machine(self.master).server._store.log_end
        return all(each.log_end == each.readable_end == end for each in stores)


@asynccontextmanager
async def scripted(
    network: Network,
    *,
    size: int = 3,
    store: StoreConfig = SMALL_STORE,
    elect: Callable[[Machine], Elector] | None = None,
    **settings: object,
) -> AsyncIterator[ScriptedGroup]:
    """A name server and a group of which member 1 leads.

    Args:
        elect: makes the elector of a machine; by default the script decides.
    """
    script, cluster = Script(), Cluster(network, 1, brokers=0)
    config = BrokerConfig(**settings)  # type: ignore[arg-type]
    await cluster.start()

    def serve(machine: Machine) -> AbstractAsyncContextManager[Any]:
        return Broker(
            replace(
                config,
                name="group",
                host=machine.address,
                port=BROKER_PORT,
                nameservers=tuple(cluster.nameserver_addresses),
            ),
            store=store,
            root="/data",
            disk=machine.disk,
            clock=machine.clock,
            entropy=SeededEntropy(f"{machine.name} {machine.starts}"),
            elector=ScriptedElector(script, int(machine.name[-1]))
            if elect is None
            else elect(machine),
        )

    machines = []
    for number in range(1, size + 1):
        disk = FaultyDisk(f"disk {number}", sync_seconds=(0.0005, 0.004))
        disk.make_directory("/data")
        machines.append(Machine(network, f"member-{number}", serve, disk))
    for machine in machines:
        await machine.start()
        await asyncio.sleep(0.1)
    askers = [Asker(machine.server) for machine in machines]
    group = ScriptedGroup(script, network, cluster, machines, askers)
    group.is_scripted = elect is None
    await group.led()
    yield group
    for asker in askers:
        await asker.pool.close()
    for machine in machines:
        if machine.is_running:
            machine.wake()
            await machine.stop()
    await cluster.stop()
