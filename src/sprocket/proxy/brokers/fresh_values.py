"""Values by name that others know, such as routes: fetched when they are needed, and then again.

A value that has become old is still given, and fetched in the background. So nobody waits for it
but the first; and while nobody answers, the old value stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ClosedError, SprocketError

V = TypeVar("V")


class FreshValues(Generic[V]):
    """The values.

    Args:
        fetch: fetches the value of a name.
        fresh_seconds: how long a value is not fetched again.
        gone: errors that mean that a name has no value any more.
        values_max: how many are kept; the longest known goes first.
    """

    def __init__(
        self,
        fetch: Callable[[str], Awaitable[V]],
        *,
        fresh_seconds: float,
        gone: tuple[type[SprocketError], ...] = (),
        values_max: int = 20_000,
    ) -> None:
        self._fetch = fetch
        self._fresh_seconds = fresh_seconds
        self._gone = gone
        self._values_max = values_max
        self._loop = asyncio.get_running_loop()
        #: By name, the value and until when it is fresh.
        self._values: dict[str, tuple[V, float]] = {}
        self._fetching: dict[str, asyncio.Task[V]] = {}

    def known(self, name: str) -> V | None:
        """The value of a name if it is here; None if it must be fetched first."""
        found = self._values.get(name)
        if found is None:
            return None
        if self._loop.time() >= found[1] and name not in self._fetching:
            self._start(name)
        return found[0]

    def all(self) -> list[V]:
        """All values that are here."""
        return [value for value, _ in self._values.values()]

    def age(self, name: str) -> None:
        """Has a value fetched anew with the next use: it has turned out to be wrong."""
        self._values.pop(name, None)

    async def of(self, name: str, deadline: Deadline) -> V:
        """The value of a name, after a fetch if it is not here.

        Raises:
            SprocketError: as the fetch.
            CallTimeout: the deadline passes first; the fetch continues for others.
        """
        known = self.known(name)
        if known is not None:
            return known
        task = self._fetching.get(name) or self._start(name)
        await asyncio.wait([task], timeout=None if deadline.is_never else deadline.left())
        if not task.done():
            raise CallTimeout(f"{name!r} is not known in time")
        if task.cancelled():
            raise ClosedError("the proxy is closed")
        return task.result()

    def _start(self, name: str) -> asyncio.Task[V]:
        task = self._loop.create_task(self._fetched(name))
        task.add_done_callback(_retrieve)
        self._fetching[name] = task
        return task

    async def _fetched(self, name: str) -> V:
        try:
            value = await self._fetch(name)
        except self._gone:
            self._values.pop(name, None)
            raise
        except SprocketError:
            if (found := self._values.get(name)) is not None:  # not again with each use
                self._values[name] = (found[0], self._loop.time() + self._fresh_seconds / 4)
            raise
        finally:
            self._fetching.pop(name, None)
        self._values.pop(name, None)
        while len(self._values) >= self._values_max:
            del self._values[next(iter(self._values))]
        self._values[name] = (value, self._loop.time() + self._fresh_seconds)
        return value

    async def close(self) -> None:
        """Cancels the fetches in progress."""
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _retrieve(task: asyncio.Task[V]) -> None:
    """Reads the task's error, or asyncio logs it as never retrieved if nobody waits."""
    if not task.cancelled():
        task.exception()
