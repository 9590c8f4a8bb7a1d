"""Brokers that only elect, over simulated keys, with everything that may go wrong around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from sprocket.election.elector import ElectionRefused, ElectorUnavailable, GroupView, LogPosition
from sprocket.election.group_state import GroupState
from sprocket.election.identity import IdentityFile
from sprocket.election.key_elector import KeyElector
from sprocket.election.leased_keys import LeasedKeys
from sprocket.testing.cluster import Machine
from sprocket.testing.disk import MemoryDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.key_state import KeyState
from sprocket.testing.leased_keys import KeyServers
from sprocket.testing.network import Fates, Network

T = TypeVar("T")

LEASE = 3.0
GROUP = "/sprocket/C/b/group"


class Participant:
    """One broker: it joins, and changes the group now and then as a broker would."""

    def __init__(
        self,
        network: Network,
        servers: KeyServers,
        number: int,
        entropy: SeededEntropy,
        kind: type[KeyElector],
    ) -> None:
        self.elector: KeyElector | None = None
        self.is_busy = True
        self._servers = servers
        self._entropy = entropy
        self._kind = kind
        disk = MemoryDisk()
        disk.make_directory("/data")
        self.machine = Machine(network, f"broker-{number}", self._serve, disk)

    @asynccontextmanager
    async def _serve(self, machine: Machine) -> AsyncIterator[None]:
        elector = elector_of(
            machine,
            self._servers.client(),
            self._entropy.fork(f"start {machine.starts}"),
            kind=self._kind,
        )
        task = asyncio.ensure_future(self._take_part(elector, machine))
        yield
        task.cancel()
        await asyncio.wait([task])
        await elector.leave()

    async def _take_part(self, elector: KeyElector, machine: Machine) -> None:
        while True:
            with suppress(ElectorUnavailable):
                await elector.join(f"{machine.address}:10911", f"{machine.address}:10912")
                break
            await asyncio.sleep(0.1)
        self.elector = elector
        run = asyncio.ensure_future(elector.run())
        try:
            while True:
                await asyncio.sleep(self._entropy.between(0.05, 1.0))
                if self.is_busy:
                    with suppress(ElectionRefused, ElectorUnavailable):
                        await self.act()
        finally:
            run.cancel()

    async def act(self) -> GroupView | None:
        """Does one thing that a broker may do, however unwise now."""
        elector = self.elector
        assert elector is not None
        seen = elector.view
        if self._entropy.happens(0.3):  # it was read a while ago
            await asyncio.sleep(self._entropy.between(0.0, 2.0))
        others = [each for each in seen.members if each != elector.id]
        if seen.master != elector.id:
            elector.report(LogPosition(epoch=seen.epoch))
            return await elector.claim(seen)
        if others and self._entropy.happens(0.2):
            return await elector.hand_over(others[self._entropy.below(len(others))], seen)
        chosen = {each for each in others if self._entropy.happens(0.6)}
        return await elector.set_in_sync(frozenset({elector.id, *chosen}), seen)


def elector_of(
    machine: Machine,
    keys: LeasedKeys,
    entropy: SeededEntropy,
    *,
    kind: type[KeyElector] = KeyElector,
    elect_unclean: bool = False,
) -> KeyElector:
    """The elector of a machine's broker."""
    identity = IdentityFile(machine.disk, "/data", "C", "b")
    return kind(
        keys, identity, entropy, cluster="C", name="b", lease_ms=int(LEASE * 1000),
        elect_unclean=elect_unclean,
    )  # fmt: skip


class Group:
    """Participants, servers of keys, and faults between them; all from one seed."""

    def __init__(
        self,
        network: Network,
        seed: int,
        *,
        count: int = 3,
        state: KeyState | None = None,
        kind: type[KeyElector] = KeyElector,
    ) -> None:
        self.network = network
        self.entropy = SeededEntropy(f"election {seed}")
        self.servers = KeyServers(network, state=state)
        self.brokers = [
            Participant(network, self.servers, n, self.entropy.fork(f"broker {n}"), kind)
            for n in range(count)
        ]

    @property
    def electors(self) -> list[KeyElector]:
        """Of all that have joined and run."""
        return [
            each.elector
            for each in self.brokers
            if each.elector is not None and each.machine.is_running
        ]

    def states(self) -> list[GroupState]:
        """All that was ever decided, oldest first."""
        written = self.servers.state.written
        return [GroupState.decode(each.value) for each in written if each.key == GROUP]

    async def start(self) -> None:
        """Starts all that do not run, and wakes all that are paused."""
        await self.servers.start()
        for each in self.brokers:
            each.machine.wake()
            if not each.machine.is_running:
                each.elector = None
                await each.machine.start()

    async def suffer(self, seconds: float) -> None:
        """Lets faults happen for a while, then ends them."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            await asyncio.sleep(self.entropy.between(0.1, 2.0))
            faults = self._faults()
            await faults[self.entropy.below(len(faults))]()
        self.network.heal()
        for each in self.servers.machines:
            each.wake()
        await self.start()

    def _faults(self) -> list[Callable[[], Awaitable[None]]]:
        return [
            self._lose_answers, self._cut, self._kill_server, self._kill_broker, self._pause,
            self._break, self._compact, self._heal,
        ]  # fmt: skip

    async def _lose_answers(self) -> None:
        fates = Fates(lost=0.3, late=0.3, late_seconds=2.0)
        self.network.distort(self._any(self.servers.machines).name, fates)

    async def _cut(self) -> None:
        machines = [*self.servers.machines, *(each.machine for each in self.brokers)]
        one, other = self._any(machines).name, self._any(self.servers.machines).name
        if one != other:
            self.network.cut(one, other)

    async def _kill_server(self) -> None:
        machine = self._any(self.servers.machines)
        if machine.is_running:
            machine.kill()
        await asyncio.sleep(self.entropy.between(0.0, 3.0))
        await self.servers.start()

    async def _kill_broker(self) -> None:
        broker = self._any(self.brokers)
        if broker.machine.is_running:
            broker.elector = None
            broker.machine.kill()
        await asyncio.sleep(self.entropy.between(0.0, 5.0))
        if not broker.machine.is_running:
            await broker.machine.start()

    async def _pause(self) -> None:
        machine = self._any([*self.servers.machines, *(each.machine for each in self.brokers)])
        if machine.is_running:
            machine.pause()
            await asyncio.sleep(self.entropy.between(0.1, 6.0))
            machine.wake(timers_first=self.entropy.happens(0.5))

    async def _break(self) -> None:
        self.network.break_connections(probability=0.5)

    async def _compact(self) -> None:
        self.servers.state.compact()

    async def _heal(self) -> None:
        self.network.heal()

    def _any(self, things: list[T]) -> T:
        return things[self.entropy.below(len(things))]
