"""What an operator sees of the group meanwhile: who leads, who is in sync, committed offsets."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import NamedTuple

from sprocket.admin.caller import Caller
from sprocket.admin.positions import lag
from sprocket.base.errors import SprocketError
from sprocket.demo.cluster.load import GROUP, TOPIC
from sprocket.demo.cluster.servers import GROUP_NAME
from sprocket.protocol.bodies import ReplicaStateBody
from sprocket.protocol.requests.replica import ReplicaState
from sprocket.remoting.pool import Pool
from sprocket.runtime.entropy import SystemEntropy

_ASK_MS = 1_000
_PAUSE_SECONDS = 0.05


class Setback(NamedTuple):
    """How far committed offsets went back: messages of all queues, and s of commits."""

    messages: int = 0
    seconds: float = 0.0


class GroupObserver:
    """Asks name servers and brokers, as `sprocket` commands do."""

    def __init__(self, nameservers: str) -> None:
        self._nameservers = nameservers.split(";")
        #: By queue: the committed offsets that rose above all before, with their times.
        self._committed: dict[int, list[tuple[float, int]]] = {}
        self.setback = Setback()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[GroupObserver]:
        """Inside, committed offsets are watched."""
        async with Pool(entropy=SystemEntropy()) as pool:
            self._caller = Caller(pool, self._nameservers, timeout_ms=_ASK_MS)
            task = asyncio.create_task(self._watch())
            try:
                yield self
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def master(self) -> str:
        """The address of the master; empty if no name server knows one."""
        try:
            masters = await self._caller.masters(broker=GROUP_NAME)
        except SprocketError:
            return ""
        return masters[GROUP_NAME]

    async def in_sync(self, count: int, seconds: float) -> bool:
        """Waits until so many brokers are in sync, the master included."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while await self._in_sync() < count:  # noqa: ASYNC110
                    await asyncio.sleep(_PAUSE_SECONDS)
                return True
        return False

    async def _in_sync(self) -> int:
        address = await self.master()
        if not address:
            return 0
        try:
            reply = await self._caller.ask(address, ReplicaState())
        except SprocketError:
            return 0
        return ReplicaStateBody.decode(reply.body).in_sync_slave_nums + 1

    async def _watch(self) -> None:
        while True:
            try:
                found = await lag(self._caller, GROUP, topic=TOPIC)
            except SprocketError:
                found = None
            if found is not None:
                committed = {each.number: each.committed for each in found.queues}
                self.note(committed, time.monotonic())
            await asyncio.sleep(_PAUSE_SECONDS)

    def note(self, committed: dict[int, int], now: float) -> None:
        """Compares the committed offsets of all queues with those before."""
        messages, seconds = 0, 0.0
        for number, offset in committed.items():
            known = self._committed.setdefault(number, [])
            if not known or offset > known[-1][1]:
                known.append((now, offset))
            elif offset < known[-1][1]:
                messages += known[-1][1] - offset
                passed = next(at for at, value in known if value > offset)
                seconds = max(seconds, known[-1][0] - passed)
        self.setback = max(self.setback, Setback(messages, seconds))
