"""Runs one filter in its process, and handles its failures.

No batch is skipped because it failed. A filter counts as failed only if a fresh process fails with
a single message; so a failed batch is judged again, message by message, up to the one that fails.
Then the caller gets an error with reason and place. Each further failure doubles a pause, and after
a few in a row the filter is switched off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from sprocket.base.errors import FilterFailed
from sprocket.filterserver.exchange import Fault, FilterInput, Verdicts, batch
from sprocket.filterserver.process import ProcessLost
from sprocket.filterserver.uploads import Uploaded

logger = logging.getLogger(__name__)

#: The number of messages that are judged one by one after a failure.
_SINGLY = 64
_PAUSE_MS_MAX = 60_000


class Runner(Protocol):
    """The interface of a process for a judge; see `process`."""

    @property
    def batches(self) -> int:
        """The number of batches that it has judged."""
        ...

    @property
    def is_worn(self) -> bool:
        """Whether a new process should replace it."""
        ...

    async def load(self, name: str, source: bytes) -> Fault | None:
        """Loads the source."""
        ...

    async def judge(self, batch: bytes, count: int) -> Verdicts:
        """Judges a batch of messages."""
        ...

    async def kill(self) -> None:
        """Ends it."""
        ...


class Judge:
    """Judges messages with one version of a filter.

    Args:
        start: starts a process.
        failures_max: the number of failures in a row after which the filter is switched off.
        pause_ms: the pause after the first failure; each next one is twice as long.
        switch_off: called then with the filter and the reason.
        gives_way: whether another filter waits for a process.

    Attributes:
        uploaded: the version.
        judged, wanted: the numbers of messages since the start.
        used_at: loop time of its last use.
        waiting: the number of batches that wait or are being judged.
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

    async def judge(
        self, topic: str, queue_number: int, parts: Sequence[FilterInput]
    ) -> list[bool]:
        """Returns for the first messages, at least for one, whether each is wanted.

        It runs to its end even if the caller is cancelled: the process's reply must be read.

        Raises:
            FilterFailed: the filter fails with the first message.
        """
        return await asyncio.shield(asyncio.ensure_future(self._judged(topic, queue_number, parts)))

    async def stop(self) -> None:
        """Ends its process after the current batch."""
        async with self._turn:
            await self._end()

    async def close(self) -> None:
        """Ends its process now, and starts no other."""
        self._is_closed = True
        await self._end()

    async def _judged(self, topic: str, number: int, parts: Sequence[FilterInput]) -> list[bool]:
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
        """Raises `FilterFailed` if the filter is removed, switched off, or in a pause."""
        if self._is_closed:
            raise FilterFailed(f"{self.uploaded.words} is taken away")
        if self.uploaded.off:
            raise FilterFailed(f"{self.uploaded.words} is switched off: {self.uploaded.off}")
        if asyncio.get_running_loop().time() < self._again_at:
            raise FilterFailed(self._last)

    async def _try(self, topic: str, number: int, parts: Sequence[FilterInput]) -> list[bool]:
        # A process carries state from batch to batch, and a batch has one time limit for all its
        # messages. So a failure may have another cause than the message: only one message in a
        # fresh process is a fair test. Until that, each failure means one more process and a batch
        # of one; messages before a fault keep their results.
        while True:
            chosen = parts[:1] if self._singly else parts
            runner = await self._ready()
            is_fair = runner.batches == 0 and len(chosen) == 1
            try:
                verdicts = await runner.judge(batch(topic, number, chosen), len(chosen))
                fault = verdicts.fault
            except ProcessLost as error:
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
        """Its process; started and loaded with the source if there is none."""
        # The judge may be closed while a process starts; that one must not be left running.
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
                raise ProcessLost(str(fault))
        except ProcessLost as error:
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
        """Counts a failure and starts a pause; returns the error for it."""
        self._failures += 1
        words = f"{self.uploaded.words} failed at {where}: {what}"
        pause_ms = min(self._pause_ms * 2 ** (self._failures - 1), _PAUSE_MS_MAX)
        self._again_at = asyncio.get_running_loop().time() + pause_ms / 1000
        if self._failures >= self._failures_max:
            why = f"it failed {self._failures} times at {where}: {what}"
            words = f"{self.uploaded.words} is switched off: {why}"
            self._switch_off(self.uploaded, why)
        self._last = words
        logger.warning("%s", words)
        return FilterFailed(words)
