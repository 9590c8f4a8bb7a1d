"""The line of those who wait until a meter has something for them.

They are called one at a time, the takers in turn: the next is called after the one before has taken
what it wants. So what all together take stays within the limit, and a taker with many requests
waits as long for each as one with few waits for one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable

#: The shortest pause, s: a bucket that misses less has what is wanted.
PAUSE_MIN = 0.001


class MeterLine:
    """Those who wait for one meter.

    Args:
        wait_seconds: how long it takes until the meter has something.
    """

    def __init__(self, wait_seconds: Callable[[], float]) -> None:
        self._loop = asyncio.get_running_loop()
        self._wait_seconds = wait_seconds
        #: By taker; the taker whose turn it is comes first.
        self._waiting: OrderedDict[Hashable, OrderedDict[asyncio.Future[None], None]]
        self._waiting = OrderedDict()
        self._due: asyncio.Handle | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits."""
        return not self._waiting

    async def turn(self, taker: Hashable, until: float) -> bool:
        """Waits for a turn, until a time of the loop; returns whether it came."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.setdefault(taker, OrderedDict())[future] = None
        self._arm()
        try:
            async with asyncio.timeout_at(until):
                await future
            return True
        except TimeoutError:
            return False
        finally:
            self._forget(taker, future)

    def _forget(self, taker: Hashable, future: asyncio.Future[None]) -> None:
        futures = self._waiting.get(taker)
        if futures is not None and future in futures:  # it was not called
            del futures[future]
            if not futures:
                del self._waiting[taker]

    def _arm(self) -> None:
        if self._due is None and self._waiting:
            self._due = self._loop.call_later(max(self._wait_seconds(), PAUSE_MIN), self._next)

    def _next(self) -> None:
        self._due = None
        if self._waiting and self._wait_seconds() < PAUSE_MIN:
            taker, futures = self._waiting.popitem(last=False)
            future, _ = futures.popitem(last=False)
            if futures:
                self._waiting[taker] = futures
            if not future.done():
                future.set_result(None)
            # It runs before this: it has taken what it wants by then.
            self._due = self._loop.call_soon(self._next)
        else:
            self._arm()
