"""Values by name that others know, such as routes: fetched when they are needed, and then again.

A value that has become old is still given, and fetched in the background. So nobody waits for it
but the first; and while nobody answers, the old value stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

from sprocket.base.deadline import Deadline
from sprocket.base.errors import CallTimeout, ClosedError, SprocketError

V = TypeVar("V")


class _Fetched(NamedTuple, Generic[V]):
    """A value.

    Attributes:
        at: when its fetch began.
        until: when it is fetched again.
        is_doubted: whether it has turned out to be wrong: it counts only if nobody answers.
    """

    value: V
    at: float
    until: float
    is_doubted: bool = False


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
        self._values: dict[str, _Fetched[V]] = {}
        #: By name, the newest fetch; and all of them.
        self._fetching: dict[str, asyncio.Task[V]] = {}
        self._tasks: set[asyncio.Task[V]] = set()

    def known(self, name: str) -> V | None:
        """The value of a name if it is here; None if it must be fetched first."""
        found = self._values.get(name)
        if found is None or found.is_doubted:
            return None
        if self._loop.time() >= found.until and name not in self._fetching:
            self._start(name)
        return found.value

    def all(self) -> list[V]:
        """All values that are here."""
        return [each.value for each in self._values.values()]

    def age(self, name: str) -> None:
        """Has a value fetched anew with the next use: it has turned out to be wrong."""
        self._fetching.pop(name, None)  # it may have been asked for before that
        if (found := self._values.get(name)) is not None:
            self._values[name] = found._replace(is_doubted=True)

    async def of(self, name: str, deadline: Deadline) -> V:
        """The value of a name, after a fetch if it is not here.

        Raises:
            SprocketError: as the fetch, if there is no older value.
            CallTimeout: the deadline passes first; the fetch continues for others.
        """
        known = self.known(name)
        return known if known is not None else await self._after_fetch(name, deadline)

    async def newer(self, name: str, deadline: Deadline, since: float) -> V:
        """The value of a name, after a fetch if it was fetched before a time of the loop. Others
        are given the older one meanwhile.

        Raises:
            SprocketError, CallTimeout: as `of`.
        """
        found = self._values.get(name)
        if found is not None and found.at >= since and not found.is_doubted:
            return found.value
        return await self._after_fetch(name, deadline)

    async def _after_fetch(self, name: str, deadline: Deadline) -> V:
        task = self._fetching.get(name) or self._start(name)
        await asyncio.wait([task], timeout=None if deadline.is_never else deadline.left())
        if not task.done():
            raise CallTimeout(f"{name!r} is not known in time")
        if task.cancelled():
            raise ClosedError("the proxy is closed")
        if task.exception() is not None and (found := self._values.get(name)) is not None:
            return found.value
        return task.result()

    def _start(self, name: str) -> asyncio.Task[V]:
        task = self._loop.create_task(self._fetched(name))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(_retrieve)
        self._fetching[name] = task
        return task

    async def _fetched(self, name: str) -> V:
        began = self._loop.time()
        try:
            value = await self._fetch(name)
        except self._gone:
            if self._is_newest(name):
                self._values.pop(name, None)
            raise
        except SprocketError:
            found = self._values.get(name)
            if found is not None and self._is_newest(name):  # not again with each use
                until = self._loop.time() + self._fresh_seconds / 4
                self._values[name] = found._replace(until=until, is_doubted=False)
            raise
        else:
            if self._is_newest(name):
                self._keep(name, _Fetched(value, began, self._loop.time() + self._fresh_seconds))
            return value
        finally:
            if self._is_newest(name):
                del self._fetching[name]

    def _is_newest(self, name: str) -> bool:
        return self._fetching.get(name) is asyncio.current_task()

    def _keep(self, name: str, fetched: _Fetched[V]) -> None:
        self._values.pop(name, None)
        while len(self._values) >= self._values_max:
            del self._values[next(iter(self._values))]
        self._values[name] = fetched

    async def close(self) -> None:
        """Cancels the fetches in progress."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _retrieve(task: asyncio.Task[V]) -> None:
    """Reads the task's error, or asyncio logs it as never retrieved if nobody waits."""
    if not task.cancelled():
        task.exception()
