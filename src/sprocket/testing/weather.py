"""What goes wrong in a simulated cluster, drawn from a seed: one fault after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from sprocket.testing.cluster import Cluster, Machine
from sprocket.testing.entropy import SeededEntropy
from sprocket.testing.journal import Journal
from sprocket.testing.workload import Workload

T = TypeVar("T")

#: How far a wall clock may be off.
_SKEW_MS_MAX = 60_000


class Weather:
    """Makes faults, and ends them.

    Args:
        cluster: what they happen to.
        workload: the clients they happen to.
        entropy: decides which, where and how long.
        journal: is told.
    """

    def __init__(
        self, cluster: Cluster, workload: Workload, *, entropy: SeededEntropy, journal: Journal
    ) -> None:
        self._cluster = cluster
        self._network = cluster.network
        self._workload = workload
        self._entropy = entropy
        self._journal = journal

    async def pass_over(self, faults: Sequence[str], count: int, *, seconds: float) -> None:
        """Makes `count` faults, drawn by name from `faults`, in about `seconds`."""
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "break": self._break,
            "cut": self._cut,
            "slow": self._slow,
            "clock": self._clock,
            "restart-broker": lambda: self._restart(self._cluster.brokers),
            "kill-broker": lambda: self._kill(self._cluster.brokers, power_lost=False),
            "power-broker": lambda: self._kill(self._cluster.brokers, power_lost=True),
            "restart-nameserver": lambda: self._restart(self._cluster.nameservers),
            "kill-nameserver": lambda: self._kill(self._cluster.nameservers, power_lost=False),
            "join": self._workload.join,
            "leave": self._workload.leave,
            "kill-member": self._workload.kill_member,
        }
        for _ in range(count):
            await asyncio.sleep(self._entropy.between(0, 2 * seconds / count))
            await kinds[self._choose(faults)]()

    async def clear(self) -> None:
        """Ends all faults: ways are open, everything runs."""
        self._journal.note("weather", "clears up")
        self._network.heal()
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

    async def _clock(self) -> None:
        machine = self._choose(self._cluster.machines)
        machine.clock.skew_ms = int(self._entropy.between(-_SKEW_MS_MAX, _SKEW_MS_MAX))
        self._journal.note("weather", f"sets {machine.name}'s clock off by {machine.clock.skew_ms}")

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
