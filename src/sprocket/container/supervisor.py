"""Starts processes, restarts those that end, and stops all: the same for brokers and proxies.

One that cannot start does not keep the others from running: its reason is logged once, and it is
tried again after pauses that grow. Only if none of the first ones starts, the start fails.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from sprocket.base.cancelling import end_all
from sprocket.base.errors import UsageError
from sprocket.container.children import ChildFailed, ChildSpec, Launcher, RunningChild
from sprocket.container.restarts import Restarts

logger = logging.getLogger(__name__)

#: How long a process that was killed may take to vanish, s.
_KILLED_SECONDS = 5.0


class _Member:
    """A process that is to run, whether it does now or not.

    Attributes:
        tried: done when it has started, or has failed, for the first time.
        reason: why it did not start or run last; empty while all is well.
    """

    def __init__(self, spec: ChildSpec, restarts: Restarts) -> None:
        self.spec = spec
        self.restarts = restarts
        self.child: RunningChild | None = None
        self.reason = ""
        self.starts = 0
        self.tried: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.work: asyncio.Task[None] | None = None

    def was_tried(self) -> None:
        if not self.tried.done():
            self.tried.set_result(None)


class Supervisor:
    """Watches over processes.

    Args:
        launcher: starts a process.
        stop_seconds: how long the processes may take to end in order; then they are killed.
        restarts: makes the pauses of one process.
        on_change: is called with a name when its process has started or ended.
    """

    def __init__(
        self,
        launcher: Launcher,
        *,
        stop_seconds: float,
        restarts: Callable[[], Restarts] = Restarts,
        on_change: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._launcher = launcher
        self._stop_seconds = stop_seconds
        self._restarts = restarts
        self._on_change = on_change
        self._members: dict[str, _Member] = {}

    @property
    def running(self) -> Mapping[str, Mapping[str, str]]:
        """What each process that runs now said of itself, by name."""
        return {
            name: each.child.about for name, each in self._members.items() if each.child is not None
        }

    @property
    def starts(self) -> Mapping[str, int]:
        """How often each process has started, by name."""
        return {name: each.starts for name, each in self._members.items()}

    @property
    def troubles(self) -> Mapping[str, str]:
        """Why processes do not run now, by name; an empty text for one that is starting."""
        return {name: each.reason for name, each in self._members.items() if each.child is None}

    async def start(self, specs: Iterable[ChildSpec]) -> None:
        """Starts processes, those of a lower rank first; returns when each was tried once.

        Raises:
            ChildFailed: none of one rank could start; the text is the reason of the first.
            UsageError: there is one of the same name already.
        """
        by_rank: dict[int, list[ChildSpec]] = {}
        for spec in specs:
            by_rank.setdefault(spec.rank, []).append(spec)
        for _, together in sorted(by_rank.items()):
            members = [self._add(spec) for spec in together]
            await asyncio.gather(*(each.tried for each in members))
            if all(each.child is None for each in members):
                raise ChildFailed(members[0].reason)

    async def add(self, spec: ChildSpec) -> None:
        """Starts one more process; it does not stay if it cannot start now.

        Raises:
            ChildFailed: it could not start.
            UsageError: there is one of the same name already.
        """
        member = self._add(spec)
        await member.tried
        if member.child is None:
            await self.remove(spec.name)
            raise ChildFailed(member.reason)

    async def remove(self, name: str) -> bool:
        """Stops a process for good; returns whether there was one of this name."""
        member = self._members.pop(name, None)
        if member is None:
            return False
        await self._end([member])
        self._on_change(name)
        return True

    async def stop(self) -> None:
        """Stops all, those of a higher rank first."""
        members, self._members = self._members, {}
        for rank in sorted({each.spec.rank for each in members.values()}, reverse=True):
            await self._end([each for each in members.values() if each.spec.rank == rank])

    def _add(self, spec: ChildSpec) -> _Member:
        if spec.name in self._members:
            raise UsageError(f"{spec.name} runs here already")
        member = self._members[spec.name] = _Member(spec, self._restarts())
        member.work = asyncio.ensure_future(self._keep(member))
        return member

    async def _keep(self, member: _Member) -> None:
        """Has one process run for ever."""
        now = asyncio.get_running_loop().time
        while True:
            await self._run(member)
            await asyncio.sleep(member.restarts.ended(now()))

    async def _run(self, member: _Member) -> None:
        """One run of a process, from its start to its end."""
        name = member.spec.name
        try:
            if member.spec.prepare is not None:
                member.spec.prepare()
            child = await self._launcher.launch(member.spec)
        except (ChildFailed, OSError) as error:
            self._failed(member, str(error))
            return
        member.child, member.reason = child, ""
        member.restarts.started(asyncio.get_running_loop().time())
        member.starts += 1
        if member.starts > 1:
            logger.warning("%s runs again", name)
        member.was_tried()
        self._on_change(name)
        code = await child.wait()  # cancelled if it is to be stopped, which `_end` does then
        member.child, member.reason = None, f"it ended {ended_by(code)}"
        logger.warning("%s ended %s, and is started again", name, ended_by(code))
        self._on_change(name)

    def _failed(self, member: _Member, reason: str) -> None:
        if reason != member.reason:  # each reason once, not at each of the tries
            logger.error("%s cannot start, and is tried again: %s", member.spec.name, reason)
        member.reason = reason
        member.was_tried()

    async def _end(self, members: list[_Member]) -> None:
        """Ends processes together: those that take too long are killed."""
        await end_all([each.work for each in members if each.work is not None])
        for each in members:
            each.was_tried()
        children = [each.child for each in members if each.child is not None]
        for child in children:
            child.terminate()
        if not await _all_ended(children, self._stop_seconds):
            logger.error("not all processes ended in %g s: the others are killed",
                         self._stop_seconds)  # fmt: skip
            for child in children:
                child.kill()
            await _all_ended(children, _KILLED_SECONDS)


async def _all_ended(children: list[RunningChild], seconds: float) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(child.wait() for child in children))
            return True
    return False


def ended_by(code: int) -> str:
    """How a process ended, in words: by its exit code, or by a signal."""
    if code >= 0:
        return f"with code {code}"
    with suppress(ValueError):
        return f"by {signal.Signals(-code).name}"
    return f"by signal {-code}"
