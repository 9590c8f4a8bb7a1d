"""Simulated processes: what runs on a host under one name, stands still and dies as a whole.

Which process something belongs to goes with the context, so tasks and timers inherit it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_current: ContextVar[Process | None] = ContextVar("process", default=None)


def current_process() -> Process | None:
    """The process that the running code belongs to; None outside of all."""
    return _current.get()


def process_of(context: Context) -> Process | None:
    """The process that something belongs to which runs in a context."""
    return context.get(_current)


class Process:
    """Tasks that live and die together.

    Attributes:
        name: what it is, for people and traces.
        host: name of the machine it runs on.
        is_alive: False from the moment it was killed; its network is dead then.
        is_stopped: whether it stands still, as after SIGSTOP; time goes on without it.
    """

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_alive = True
        self.is_stopped = False
        #: What was to run while it stood still, in order.
        self._held: list[asyncio.Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._prune_at = 64

    def own(self, task: asyncio.Task[Any]) -> None:
        """Makes a task part of the process."""
        self._tasks.append(task)
        if len(self._tasks) >= self._prune_at:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._prune_at = 64 + 2 * len(self._tasks)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs a coroutine as part of the process."""
        context = copy_context()
        context.run(_current.set, self)
        return asyncio.get_running_loop().create_task(coroutine, context=context)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine as part of the process, and waits for its result."""
        return await self.start(coroutine)

    def stop(self) -> None:
        """Nothing of it runs until `wake`; what its timers and connections bring is held."""
        self.is_stopped = True

    def hold(self, handle: asyncio.Handle) -> None:
        """Keeps what was to run while it stands still; for the loop."""
        self._held.append(handle)

    def wake(self, *, timers_first: bool = False) -> None:
        """It goes on: all that was held runs now, late.

        Args:
            timers_first: whether timers that ran out come before what connections brought.
        """
        self.is_stopped = False
        held, self._held = self._held, []
        held.sort(key=lambda handle: isinstance(handle, asyncio.TimerHandle) is not timers_first)
        asyncio.get_running_loop()._ready.extend(held)  # type: ignore[attr-defined]

    def kill(self) -> None:
        """Ends all its tasks where they stand. Cut its network and disk off before.

        What they still do on their way out reaches nobody.
        """
        self.is_alive = False
        if self.is_stopped:
            self.wake()
        for task in self._tasks:
            task.cancel()

    def __repr__(self) -> str:
        return f"{self.name}@{self.host}"
