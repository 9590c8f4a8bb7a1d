"""Simulated processes: tasks on a host that are stopped and killed together.

A context variable holds the current process, so tasks and timers inherit it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from sprocket.remoting.turns import PROCESS

T = TypeVar("T")

#: The process of the running code.
CURRENT: ContextVar[SimulatedProcess | None] = ContextVar("process", default=None)


def current_process() -> SimulatedProcess | None:
    """The process of the running code; None outside of all processes."""
    return CURRENT.get()


class SimulatedProcess:
    """Tasks that are stopped and killed together.

    Attributes:
        name: its name, for people and traces.
        host: name of its machine.
        is_alive: False as soon as it is killed; it has no network then.
        is_stopped: whether it is stopped, as by SIGSTOP, while time passes.
    """

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_alive = True
        self.is_stopped = False
        #: Callbacks that became ready while it was stopped, in order.
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
        context.run(CURRENT.set, self)
        context.run(PROCESS.set, self)
        return asyncio.get_running_loop().create_task(coroutine, context=context)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine as part of the process, and returns its result."""
        return await self.start(coroutine)

    def stop(self) -> None:
        """Stops it until `wake`; callbacks of its timers and connections are held."""
        self.is_stopped = True

    def hold(self, handle: asyncio.Handle) -> None:
        """Keeps a callback until it wakes; the loop calls this."""
        self._held.append(handle)

    def wake(self, *, timers_first: bool = False) -> None:
        """Continues: all callbacks that were held run now.

        Args:
            timers_first: whether callbacks of timers run before those of connections.
        """
        self.is_stopped = False
        held, self._held = self._held, []
        held.sort(key=lambda handle: isinstance(handle, asyncio.TimerHandle) is not timers_first)
        asyncio.get_running_loop()._ready.extend(held)  # type: ignore[attr-defined]

    def kill(self) -> None:
        """Cancels all its tasks. Cut its network and disk off before.

        Cancelled tasks may still run code; without network and disk it has no effect.
        """
        self.is_alive = False
        if self.is_stopped:
            self.wake()
        for task in self._tasks:
            task.cancel()

    def __repr__(self) -> str:
        return f"{self.name}@{self.host}"
