"""The processes of all filters: one for each, so that none sees or harms another, up to a limit.

At the limit, a filter that needs a process ends that of the filter that is idle longest; if none
is idle, it waits. A filter that is idle for a minute loses its process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from sprocket.filterserver.exchange import Fault
from sprocket.filterserver.judge import Judge, Runner
from sprocket.filterserver.process import FilterProcess, ProcessLimits, ProcessLost
from sprocket.filterserver.uploads import Key, Uploaded

_REST_SECONDS = 60.0
_LOOK_SECONDS = 10.0

Start = Callable[[ProcessLimits], Awaitable[Runner]]


class Judges:
    """Creates a `Judge` for each filter in use.

    Args:
        processes_max: the most processes at the same time.
        bounds: the limits of each process.
        failures_max, pause_ms: see `Judge`.
        switch_off: called with a filter that is switched off, and the reason.
        start: starts a process.
    """

    def __init__(
        self,
        processes_max: int,
        bounds: ProcessLimits,
        *,
        failures_max: int,
        switch_off: Callable[[Uploaded, str], None],
        pause_ms: float = 1_000.0,
        start: Start = FilterProcess.start,
    ) -> None:
        self._bounds = bounds
        self._failures_max = failures_max
        self._pause_ms = pause_ms
        self._switch_off = switch_off
        self._start = start
        self._room = asyncio.Semaphore(processes_max)
        #: The number of filters that wait for a process.
        self._waiting = 0
        self._judges: dict[tuple[Key, str], Judge] = {}

    @property
    def running(self) -> int:
        """The number of processes of filters in use."""
        return sum(judge.is_running for judge in self._judges.values())

    def of(self, uploaded: Uploaded) -> Judge:
        """The judge of a version; created if there is none."""
        key = uploaded.key, uploaded.version
        judge = self._judges.get(key)
        if judge is None or judge.uploaded is not uploaded:
            judge = self._judges[key] = Judge(
                uploaded,
                self._started,
                failures_max=self._failures_max,
                pause_ms=self._pause_ms,
                switch_off=self._switch_off,
                gives_way=lambda: self._waiting > 0,
            )
        return judge

    def known(self, uploaded: Uploaded) -> Judge | None:
        """The judge of a version, or None if it was not used yet."""
        judge = self._judges.get((uploaded.key, uploaded.version))
        return judge if judge is not None and judge.uploaded is uploaded else None

    async def try_out(self, name: str, source: bytes) -> Fault | None:
        """Loads a source in a process of its own; returns its fault, or None.

        Raises:
            NotConfined: this system cannot confine a process.
        """
        runner = None
        try:
            runner = await self._started()
            return await runner.load(name.rpartition(".")[2], source)
        except ProcessLost as error:
            return Fault(0, 0, str(error))
        finally:
            if runner is not None:
                await runner.kill()

    async def forget(self, uploaded: Uploaded) -> None:
        """Ends the process of a removed version."""
        judge = self.known(uploaded)
        if judge is not None:
            del self._judges[uploaded.key, uploaded.version]
            await judge.close()

    async def run(self) -> None:
        """Ends idle processes, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            before = asyncio.get_running_loop().time() - _REST_SECONDS
            for judge in self._resting():
                if judge.used_at < before:
                    await judge.stop()

    async def close(self) -> None:
        """Ends all processes now."""
        for judge in self._judges.values():
            await judge.close()

    def _resting(self) -> list[Judge]:
        """The judges with an idle process, the one that is idle longest first."""
        found = [each for each in self._judges.values() if each.is_running and not each.waiting]
        return sorted(found, key=lambda judge: judge.used_at)

    async def _started(self) -> Runner:
        # `_waiting` makes busy filters give way after their batch (`gives_way`), so that a filter
        # without a process gets its turn even if no other is ever idle.
        if self._room.locked():
            for judge in self._resting()[:1]:
                await judge.stop()
        self._waiting += 1
        try:
            await self._room.acquire()
        finally:
            self._waiting -= 1
        try:
            return _Counted(await self._start(self._bounds), self._room)
        except BaseException:  # any error is raised again once the permit is returned
            self._room.release()
            raise


class _Counted:
    """A process that returns its permit of the semaphore when it ends."""

    def __init__(self, runner: Runner, room: asyncio.Semaphore) -> None:
        self._runner = runner
        self._room: asyncio.Semaphore | None = room
        self.load = runner.load
        self.judge = runner.judge

    @property
    def batches(self) -> int:
        return self._runner.batches

    @property
    def is_worn(self) -> bool:
        return self._runner.is_worn

    async def kill(self) -> None:
        room, self._room = self._room, None
        try:
            await self._runner.kill()
        finally:
            if room is not None:
                room.release()
