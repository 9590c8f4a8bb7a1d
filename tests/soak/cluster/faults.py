"""Faults of a group by seed, each with what it cost."""

from __future__ import annotations

import asyncio
import random
import signal
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sprocket.demo.cluster.load import ClusterLoad
from sprocket.demo.cluster.observer import GroupObserver, Setback
from tests.soak.cluster.groups import SoakGroup, Victim

#: How long servers are away or stand still, s: the last is longer than a lease.
_AWAY = (0.1, 1.0, 4.0)
_FROZEN = (0.3, 2.0, 8.0)
#: How long the group may take to accept a send after a fault, s.
ACCEPT_SECONDS_MAX = 90.0
_SYNC_SECONDS_MAX = 60.0
#: Probability that another server breaks while the first is away.
_TWO = 0.15


class PacedLoad(ClusterLoad):
    """A load with a pause of 20 ms after each message of a sender."""

    async def _send_on(self, producer: object) -> None:
        while True:
            await self._send(producer)  # type: ignore[arg-type]
            await asyncio.sleep(0.02)


class FaultCost(NamedTuple):
    """What a fault did: what it was, s without an accepted send, offsets that went back."""

    name: str
    pause: float
    setback: Setback


class FaultSeries:
    """Makes faults one after the other.

    Attributes:
        costs: of all faults so far.
        unended: names of servers that did not end in order.
        stuck: what was wrong after a fault, if something was.
    """

    def __init__(
        self, group: SoakGroup, load: ClusterLoad, observer: GroupObserver, dice: random.Random
    ) -> None:
        self._group, self._load, self._observer, self._dice = group, load, observer, dice
        self.costs: list[FaultCost] = []
        self.unended: list[str] = []
        self.stuck: list[str] = []

    async def make(
        self, count: int, *, on_keys: int, on_cost: Callable[[FaultCost], None] = lambda cost: None
    ) -> None:
        """Makes faults until so many are made, or one is not got over.

        Args:
            count: all of them.
            on_keys: those that break a server that decides who leads.
            on_cost: is called after each fault.
        """
        are_on_keys = [number < on_keys for number in range(count)]
        self._dice.shuffle(are_on_keys)
        while are_on_keys and not self.stuck:
            first = self._victim(self._group.keys if are_on_keys.pop() else self._group.brokers)
            broken = [self._break(first)]
            if are_on_keys and not are_on_keys[-1] and self._dice.random() < _TWO:
                others = [each for each in self._group.brokers if each is not first]
                are_on_keys.pop()
                broken.append(self._break(self._victim(others)))
            known = len(self.costs)
            await self._cost(broken)
            for each in self.costs[known:]:
                on_cost(each)

    def _victim(self, servers: Sequence[Victim]) -> Victim:
        return self._dice.choice(servers)

    async def _cost(self, broken: list[tuple[str, asyncio.Task[None]]]) -> None:
        began = time.monotonic()
        self._observer.setback = Setback()
        name = " and ".join(each for each, _ in broken)
        await asyncio.gather(*(task for _, task in broken))
        if not await self._load.accepted_after(time.monotonic(), ACCEPT_SECONDS_MAX):
            self.stuck.append(f"no send is accepted {ACCEPT_SECONDS_MAX:g} s after: {name}")
        elif self._dice.random() < 0.5:
            count = len(self._group.brokers)
            if not await self._observer.in_sync(count, _SYNC_SECONDS_MAX):
                self.stuck.append(f"not in sync {_SYNC_SECONDS_MAX:g} s after: {name}")
        await asyncio.sleep(self._dice.uniform(0.1, 1.0))
        pause = self._load.longest_pause(began, time.monotonic())
        self.costs += [FaultCost(each, pause, self._observer.setback) for each, _ in broken]

    def _break(self, victim: Victim) -> tuple[str, asyncio.Task[None]]:
        kind = self._dice.choice(("kill", "kill", "freeze", "stop"))
        seconds = self._dice.choice(_FROZEN if kind == "freeze" else _AWAY)
        work = {"kill": self._kill, "freeze": self._freeze, "stop": self._stop}[kind]
        role = victim.name.rstrip("0123456789").strip()
        return f"{kind} {role}", asyncio.ensure_future(work(victim, seconds))

    async def _kill(self, victim: Victim, seconds: float) -> None:
        await victim.kill()
        await asyncio.sleep(seconds)
        await victim.start()

    async def _stop(self, victim: Victim, seconds: float) -> None:
        if not await victim.end():
            self.unended.append(victim.name)
        await asyncio.sleep(seconds)
        await victim.start()

    async def _freeze(self, victim: Victim, seconds: float) -> None:
        victim.signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        victim.signal(signal.SIGCONT)


def by_kind(costs: Sequence[FaultCost]) -> list[tuple[str, int, float, float, Setback]]:
    """For each kind of fault: how many, s without an accepted send (median, longest), offsets."""
    found: dict[str, list[FaultCost]] = defaultdict(list)
    for each in costs:
        found[each.name].append(each)
    return [
        (
            name,
            len(all_of_it),
            statistics.median(each.pause for each in all_of_it),
            max(each.pause for each in all_of_it),
            max(each.setback for each in all_of_it),
        )
        for name, all_of_it in sorted(found.items())
    ]
