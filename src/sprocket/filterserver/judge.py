"""One filter at work: its process, and what happens when that fails.

A batch that fails is never passed over. The filter is blamed only for what a fresh process does
with one message; so a batch that failed is judged again, message by message, up to the one that
fails. Then whoever asked hears what is wrong, and where. Failures that follow each other make
pauses, and after a few the filter is switched off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from sprocket.base.errors import FilterFailed
from sprocket.filterserver.exchange import Fault, Part, Verdicts, batch
from sprocket.filterserver.process import Lost
from sprocket.filterserver.uploads import Uploaded

log = logging.getLogger(__name__)

#: After a failure so many messages are judged one by one.
_SINGLY = 64
_PAUSE_MS_MAX = 60_000


class Runner(Protocol):
    """A process as a judge sees it."""

    @property
    def batches(self) -> int:
        """Answered so far."""
        ...

    @property
    def is_worn(self) -> bool:
        """Whether another one should follow."""
        ...

    async def load(self, name: str, source: bytes) -> Fault | None:
        """Gives it the source."""
        ...

    async def judge(self, batch: bytes, count: int) -> Verdicts:
        """Has it judge."""
        ...

    async def kill(self) -> None:
        """Ends it."""
        ...


class Judge:
    """Judges for one version of a filter.

    Args:
        start: starts a process.
        failures_max: after so many, one after the other, it is switched off.
        pause_ms: after the first; each next one is twice as long.
        switch_off: told that, and why.
        gives_way: whether another filter waits for a process.

    Attributes:
        uploaded: the version.
        judged, wanted: messages since the start.
        used_at: loop time at which it was asked last.
        waiting: batches that wait for their turn, and the one that has it.
    """

    def __init__(
        self,
        uploaded: Uploaded,
        start: Callable[[], Awaitable[Runner]],
        *,
        failures_max: int,
        pause_ms: float,
        switch_off: Callable[[Uploaded, str], None],
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self.uploaded = uploaded
        self._start = start
        self._failures_max = failures_max
        self._pause_ms = pause_ms
        self._switch_off = switch_off
        self._gives_way = gives_way
        self._turn = asyncio.Lock()
        self._is_closed = False
        self._runner: Runner | None = None
        self._singly = 0
        self._failures = 0
        self._again_at = 0.0
        self._last = ""
        self.judged = self.wanted = self.waiting = 0
        self.used_at = 0.0

    @property
    def is_running(self) -> bool:
        """Whether it has a process."""
        return self._runner is not None

    async def judge(self, topic: str, queue_number: int, parts: Sequence[Part]) -> list[bool]:
        """Which messages are wanted: of the first ones, of one at least.

        It goes on to its end even if whoever asked goes away: its process must be heard out.

        Raises:
            FilterFailed: it does not say of the first message whether it is wanted.
        """
        return await asyncio.shield(asyncio.ensure_future(self._judged(topic, queue_number, parts)))

    async def stop(self) -> None:
        """Ends its process, once that is not at work."""
        async with self._turn:
            await self._end()

    async def close(self) -> None:
        """Ends its process now, for good."""
        self._is_closed = True
        await self._end()

    async def _judged(self, topic: str, number: int, parts: Sequence[Part]) -> list[bool]:
        self.waiting += 1
        try:
            async with self._turn:
                self.used_at = asyncio.get_running_loop().time()
                self._check()
                wanted = await self._try(topic, number, parts)
                if self._gives_way():
                    await self._end()
        finally:
            self.waiting -= 1
        self.judged += len(wanted)
        self.wanted += sum(wanted)
        return wanted

    def _check(self) -> None:
        """Raises what is known to be wrong already."""
        if self._is_closed:
            raise FilterFailed(f"{self.uploaded.words} is taken away")
        if self.uploaded.off:
            raise FilterFailed(f"{self.uploaded.words} is switched off: {self.uploaded.off}")
        if asyncio.get_running_loop().time() < self._again_at:
            raise FilterFailed(self._last)

    async def _try(self, topic: str, number: int, parts: Sequence[Part]) -> list[bool]:
        while True:
            chosen = parts[:1] if self._singly else parts
            runner = await self._ready()
            is_fair = runner.batches == 0 and len(chosen) == 1
            try:
                verdicts = await runner.judge(batch(topic, number, chosen), len(chosen))
                fault = verdicts.fault
            except Lost as error:
                await self._end()
                verdicts, fault = Verdicts([]), Fault(0, 0, str(error))
            if verdicts.wanted:
                self._failures = 0
                self._singly = max(0, self._singly - len(verdicts.wanted))
                return verdicts.wanted
            await self._end()
            self._check()
            self._singly = _SINGLY
            if is_fair:
                raise self._failed(f"{fault}", f"queue {number}, offset {parts[0].queue_offset}")

    async def _ready(self) -> Runner:
        """Its process, started now if there is none."""
        if self._runner is not None and self._runner.is_worn:
            await self._end()
        if self._runner is not None:
            return self._runner
        runner: Runner | None = None
        try:
            runner = await self._start()
            name = self.uploaded.name.rpartition(".")[2]
            fault = await runner.load(name, self.uploaded.source.encode())
            if fault is not None:
                raise Lost(str(fault))
        except Lost as error:
            if runner is not None:
                await runner.kill()
            raise self._failed(str(error), "its start") from error
        if self._is_closed:
            await runner.kill()
            self._check()
        self._runner = runner
        return runner

    async def _end(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.kill()

    def _failed(self, what: str, where: str) -> FilterFailed:
        """What to tell of a failure, which is counted."""
        self._failures += 1
        words = f"{self.uploaded.words} failed at {where}: {what}"
        pause_ms = min(self._pause_ms * 2 ** (self._failures - 1), _PAUSE_MS_MAX)
        self._again_at = asyncio.get_running_loop().time() + pause_ms / 1000
        if self._failures >= self._failures_max:
            why = f"it failed {self._failures} times at {where}: {what}"
            words = f"{self.uploaded.words} is switched off: {why}"
            self._switch_off(self.uploaded, why)
        self._last = words
        log.warning("%s", words)
        return FilterFailed(words)
