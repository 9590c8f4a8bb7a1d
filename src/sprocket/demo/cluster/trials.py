"""What is done to the cluster, one trial after the other, and what it costs."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sprocket.base.errors import UsageError
from sprocket.demo.cluster.load import ClusterLoad
from sprocket.demo.cluster.observer import GroupObserver, Setback
from sprocket.demo.cluster.servers import ClusterServers, ServerProcess

#: How long messages flow before and after each fault, s.
_BEFORE, _AFTER = 2.0, 2.0
#: How long a server that was killed is away, and how long one that stands still does so, s.
_AWAY, _FROZEN = 2.0, 8.0
#: How long a group may take to accept sends, and to have all in sync, s.
_ACCEPT_MAX, _SYNC_MAX = 60.0, 60.0

Fault = Callable[[ServerProcess], Awaitable[None]]


class TrialResult(NamedTuple):
    """What one trial did to producers and consumers.

    Attributes:
        name: what was done.
        pause: the longest time without an acknowledged send, s.
        acknowledged, lost, doubled: messages that were acknowledged meanwhile; those of them that
            were not consumed, and that were consumed more than once.
        failed: sends that failed for good, after all attempts.
        setback: how far the group's committed offsets went back.
        in_sync: s from the server's return until all copies are in sync.
    """

    name: str
    pause: float
    acknowledged: int
    lost: int
    doubled: int
    failed: int
    setback: Setback
    in_sync: float


class Trials:
    """Runs trials on a cluster under load.

    Args:
        on_step: is called with a line that says what happens now.
    """

    def __init__(
        self,
        servers: ClusterServers,
        load: ClusterLoad,
        observer: GroupObserver,
        on_step: Callable[[str], None],
    ) -> None:
        self._servers = servers
        self._load = load
        self._observer = observer
        self._on_step = on_step

    async def ready(self) -> None:
        """Returns when the group accepts sends, and all brokers are in sync.

        Raises:
            UsageError: it does not come to that.
        """
        if not await self._observer.in_sync(len(self._servers.brokers), _SYNC_MAX):
            raise UsageError("the brokers do not come into sync; look at their logs")

    async def all(self) -> list[TrialResult]:
        """All trials, in order."""
        return [
            await self._trial("the master is killed (SIGKILL)", self._killed_master),
            await self._trial("the master is stopped in order", self._stopped_master),
            await self._trial(f"the master stands still for {_FROZEN:g} s", self._frozen_master),
            await self._trial(f"a copy stands still for {_FROZEN:g} s", self._frozen_copy),
            await self._trial("all are restarted, one by one", self._rolled),
        ]

    async def _trial(self, name: str, work: Callable[[], Awaitable[float]]) -> TrialResult:
        """Runs one trial; `work` returns when the server was back, by the monotonic clock."""
        load, observer = self._load, self._observer
        self._on_step(name)
        observer.setback, failed = Setback(), load.failed
        begin = time.monotonic()
        await asyncio.sleep(_BEFORE)
        back = await work()
        await self.ready()
        in_sync = time.monotonic() - back
        await asyncio.sleep(_AFTER)
        end = time.monotonic()
        lost = set(await load.all_consumed())
        numbers = load.count_between(begin, end)
        return TrialResult(
            name,
            pause=load.longest_pause(begin, end),
            acknowledged=len(numbers),
            lost=len(lost & set(numbers)),
            doubled=sum(load.consumed[number] > 1 for number in numbers),
            failed=load.failed - failed,
            setback=observer.setback,
            in_sync=in_sync,
        )

    async def _killed_master(self) -> float:
        master = await self._master()
        master.signal(signal.SIGKILL)
        await self._accepts(time.monotonic())
        await master.ended()
        await asyncio.sleep(_AWAY)
        back = time.monotonic()
        await master.start()
        return back

    async def _stopped_master(self) -> float:
        return await self._restart(await self._master())

    async def _frozen_master(self) -> float:
        return await self._freeze(await self._master())

    async def _frozen_copy(self) -> float:
        master = await self._master()
        return await self._freeze(next(each for each in self._servers.brokers if each != master))

    async def _rolled(self) -> float:
        back = 0.0
        for each in self._servers.brokers:
            back = await self._restart(each)
            await self.ready()
        return back

    async def _restart(self, server: ServerProcess) -> float:
        await server.stop()
        await self._accepts(time.monotonic())
        back = time.monotonic()
        await server.start()
        return back

    async def _freeze(self, server: ServerProcess) -> float:
        server.signal(signal.SIGSTOP)
        await asyncio.sleep(_FROZEN)
        await self._accepts(time.monotonic())
        server.signal(signal.SIGCONT)
        return time.monotonic()

    async def _accepts(self, moment: float) -> None:
        if not await self._load.accepted_after(moment, _ACCEPT_MAX):
            raise UsageError("the group accepts no sends any more; look at the brokers' logs")

    async def _master(self) -> ServerProcess:
        address = await self._observer.master()
        for each in self._servers.brokers:
            if each.address == address:
                return each
        raise UsageError(f"the name servers say that the master is {address or 'unknown'}")
