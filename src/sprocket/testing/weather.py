"""Makes faults in a simulated cluster, one after the other, drawn from a seed."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from sprocket.testing.clock import LoopClock
from sprocket.testing.cluster import Cluster, Machine
from sprocket.testing.disk import FaultyDisk
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.journal import Journal
from sprocket.testing.network import Fates

T = TypeVar("T")

#: The largest error of a wall clock.
_SKEW_MS_MAX = 60_000
#: By how much a clock is off after a jump, until it is set right, s: seconds, an hour, a day, and a
#: month ahead. What is stored by a clock a month behind is old when it is set right.
_JUMPS_SECONDS = (-86_400, -3_600, -5, 5, 3_600, 86_400, 30 * 86_400)


class AffectedClients(Protocol):
    """The clients to which faults happen."""

    @property
    def hosts(self) -> list[str]:
        """Names of their hosts."""
        ...

    async def join(self) -> None:
        """Starts one more member of a group."""
        ...

    async def leave(self) -> None:
        """Stops a member in order."""
        ...

    async def kill_member(self) -> None:
        """Kills a member's process."""
        ...


class SteadyClients:
    """Clients that stay the same: none joins, leaves or is killed."""

    async def join(self) -> None:
        """Does nothing."""

    leave = kill_member = join


class Weather:
    """Makes faults, and ends them.

    Args:
        cluster: the cluster.
        workload: its clients.
        entropy: decides which faults happen, where and how long.
        journal: records the faults.
        more: further kinds of faults, by name.
    """

    def __init__(
        self,
        cluster: Cluster,
        workload: AffectedClients,
        *,
        entropy: SeededEntropy,
        journal: Journal,
        more: Mapping[str, Callable[[], Awaitable[None]]] | None = None,
    ) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._workload = workload
        self._entropy = entropy
        self._journal = journal
        self._more = more or {}
        #: Clocks that have jumped, and are set right at the end.
        self._jumped: list[LoopClock] = []

    async def pass_over(self, faults: Sequence[str], count: int, *, seconds: float) -> None:
        """Makes `count` faults, drawn from the names in `faults`, in about `seconds`."""
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "break": self._break,
            "cut": self._cut,
            "slow": self._slow,
            "freeze": self._freeze,
            "clock": self._clock,
            "jump": self._jump,
            "restart-broker": lambda: self._restart(self._cluster.brokers),
            "kill-broker": lambda: self._kill(self._cluster.brokers, power_lost=False),
            "power-broker": lambda: self._kill(self._cluster.brokers, power_lost=True),
            "restart-nameserver": lambda: self._restart(self._cluster.nameservers),
            "kill-nameserver": lambda: self._kill(self._cluster.nameservers, power_lost=False),
            "join": self._workload.join,
            "leave": self._workload.leave,
            "kill-member": self._workload.kill_member,
            "answers": self._answers,
            "pause-broker": lambda: self._pause(self._cluster.brokers),
            "disk-slow": lambda: self._disk_slow(self._cluster.brokers),
            "disk-full": lambda: self._disk_full(self._cluster.brokers),
            "disk-error": lambda: self._disk_error(self._cluster.brokers),
            "restart-slave": lambda: self._restart(self._cluster.slaves),
            "kill-slave": lambda: self._kill(self._cluster.slaves, power_lost=False),
            "power-slave": lambda: self._kill(self._cluster.slaves, power_lost=True),
            "pause-slave": lambda: self._pause(self._cluster.slaves),
            "slave-disk-slow": lambda: self._disk_slow(self._cluster.slaves),
            "slave-disk-full": lambda: self._disk_full(self._cluster.slaves),
            "slave-disk-error": lambda: self._disk_error(self._cluster.slaves),
            **self._more,
        }
        for _ in range(count):
            await asyncio.sleep(self._entropy.between(0, 2 * seconds / count))
            await kinds[self._choose(faults)]()

    async def clear(self) -> None:
        """Ends all faults: the network works, and every machine runs."""
        self._journal.note("weather", "clears up")
        self._network.heal()
        for clock in self._jumped:
            clock.skew_ms = 0
        await self._cluster.start()

    async def _break(self) -> None:
        host = self._choose([None, *self._hosts()])
        self._journal.note("weather", f"breaks connections of {host or 'everybody'}")
        self._network.break_connections(host, probability=self._entropy.random())

    async def _cut(self) -> None:
        hosts = self._hosts()
        one, other = self._choose(hosts), self._choose(hosts)
        if one == other:
            self._journal.note("weather", f"cuts {one} off")
            self._network.cut_off(one)
        else:
            self._journal.note("weather", f"cuts {one} from {other}")
            self._network.cut(one, other)
        await asyncio.sleep(self._entropy.between(0.1, 12.0))
        self._journal.note("weather", "heals the network")
        self._network.heal()

    async def _slow(self) -> None:
        hosts = self._hosts()
        one, other = self._choose(hosts), self._choose(hosts)
        seconds = self._entropy.between(0.05, 2.0)
        self._journal.note("weather", f"slows {one} to {other} by {seconds:.2f} s")
        self._network.slow(one, other, seconds)

    async def _freeze(self) -> None:
        """Loses all bytes on a host's present connections, without an error at either end."""
        host = self._choose(self._hosts())
        self._journal.note("weather", f"forgets the connections of {host}")
        self._network.freeze(host)

    async def _answers(self) -> None:
        """Loses, doubles or delays the replies of a broker."""
        machine = self._choose(self._cluster.brokers)
        fates = self._choose(
            (Fates(lost=0.2), Fates(twice=0.5), Fates(late=0.4), Fates(0.1, 0.2, 0.2))
        )
        self._journal.note("weather", f"distorts answers of {machine.name}: {fates}")
        self._network.distort(machine.name, fates)
        await asyncio.sleep(self._entropy.between(1.0, 12.0))
        self._journal.note("weather", "heals the network")
        self._network.heal()

    async def _pause(self, machines: Sequence[Machine]) -> None:
        machine = self._choose(machines)
        seconds = self._choose((0.5, 4.0, 35.0, 70.0))
        self._journal.note("weather", f"lets {machine.name} stand still for {seconds} s")
        machine.pause()
        await asyncio.sleep(seconds)
        self._journal.note("weather", f"wakes {machine.name}")
        machine.wake(timers_first=self._entropy.happens(0.5))

    async def _disk_slow(self, machines: Sequence[Machine]) -> None:
        machine, disk = self._faulty(machines)
        usual, disk.sync_seconds = disk.sync_seconds, (0.1, 3.0)
        self._journal.note("weather", f"makes the disk of {machine.name} slow")
        await asyncio.sleep(self._entropy.between(1.0, 10.0))
        disk.sync_seconds = usual

    async def _disk_full(self, machines: Sequence[Machine]) -> None:
        machine, disk = self._faulty(machines)
        self._journal.note("weather", f"fills the disk of {machine.name}")
        for operation in ("map", "zero", "replace"):
            disk.fail(operation, errno.ENOSPC, times=1_000_000)
        await asyncio.sleep(self._entropy.between(1.0, 10.0))
        self._journal.note("weather", f"gives the disk of {machine.name} room")
        for operation in ("map", "zero", "replace"):
            disk.fail(operation, times=0)

    async def _disk_error(self, machines: Sequence[Machine]) -> None:
        """Makes the disk fail once; a broker that ends because of it must be started again."""
        machine, disk = self._faulty(machines)
        operation = self._choose(("sync", "replace", "map"))
        self._journal.note("weather", f"lets a {operation} of {machine.name} fail")
        disk.fail(operation, errno.EIO, times=1)
        await asyncio.sleep(self._entropy.between(1.0, 10.0))
        disk.fail(operation, times=0)

    def _faulty(self, machines: Sequence[Machine]) -> tuple[Machine, FaultyDisk]:
        machine = self._choose(machines)
        assert isinstance(machine.disk, FaultyDisk)
        return machine, machine.disk

    async def _clock(self) -> None:
        machine = self._choose(self._cluster.machines)
        machine.clock.skew_ms = int(self._entropy.between(-_SKEW_MS_MAX, _SKEW_MS_MAX))
        self._journal.note("weather", f"sets {machine.name}'s clock off by {machine.clock.skew_ms}")

    async def _jump(self) -> None:
        """Sets the wall clock of a broker or a client far off, or right again."""
        name, clock = self._choose(self._cluster.clocks)
        clock.skew_ms = 0 if clock.skew_ms else 1_000 * self._choose(_JUMPS_SECONDS)
        self._jumped.append(clock)
        self._journal.note("weather", f"sets {name}'s clock off by {clock.skew_ms}")

    async def _restart(self, machines: Sequence[Machine]) -> None:
        machine = self._choose(machines)
        self._journal.note("weather", f"stops {machine.name}")
        await machine.stop()
        await self._start_again(machine)

    async def _kill(self, machines: Sequence[Machine], *, power_lost: bool) -> None:
        machine = self._choose(machines)
        self._journal.note(
            "weather", f"{'takes the power of' if power_lost else 'kills'} {machine.name}"
        )
        machine.kill(power_lost=power_lost)
        await self._start_again(machine)

    async def _start_again(self, machine: Machine) -> None:
        await asyncio.sleep(self._entropy.between(0.01, 8.0))
        self._journal.note("weather", f"starts {machine.name}")
        await machine.start()

    def _hosts(self) -> list[str]:
        return [machine.name for machine in self._cluster.machines] + self._workload.hosts

    def _choose(self, things: Sequence[T]) -> T:
        return things[self._entropy.below(len(things))]
