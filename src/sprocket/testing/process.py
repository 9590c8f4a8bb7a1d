"""Simulated processes: what runs on a host under one name, and dies as a whole.

Which process something belongs to goes with the context, so tasks and timers inherit it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_current: ContextVar[Process | None] = ContextVar("process", default=None)


def current_process() -> Process | None:
    """The process that the running code belongs to; None outside of all."""
    return _current.get()


class Process:
    """Tasks that live and die together.

    Attributes:
        name: what it is, for people and traces.
        host: name of the machine it runs on.
        is_alive: False from the moment it was killed; its network is dead then.
    """

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_alive = True
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

    def kill(self) -> None:
        """Ends all its tasks where they stand. Cut its network and disk off before.

        What they still do on their way out reaches nobody.
        """
        self.is_alive = False
        for task in self._tasks:
            task.cancel()

    def __repr__(self) -> str:
        return f"{self.name}@{self.host}"
