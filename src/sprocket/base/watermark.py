"""A number that only rises and can be awaited: the one way to wait here.

Flushed to the disk, arrived in a queue: each is a watermark. Synchronous flush, long polling and
draining at shutdown all wait on one with a deadline.
"""

from __future__ import annotations

import asyncio
import heapq

from sprocket.base.deadline import Deadline


class Watermark:
    """A rising number. One loop only; no locks."""

    __slots__ = ("_failure", "_gone", "_sequence", "_value", "_waiting")

    def __init__(self, value: int = 0) -> None:
        self._value = value
        self._sequence = 0
        self._failure: BaseException | None = None
        #: A heap of (target, tie-breaker, future). Every target is above `_value`.
        self._waiting: list[tuple[int, int, asyncio.Future[bool]]] = []
        #: How many entries of the heap belong to waiters that have given up.
        self._gone = 0

    @property
    def value(self) -> int:
        """Where it stands."""
        return self._value

    @property
    def waiting(self) -> int:
        """How many waiters there are; those that gave up are not counted."""
        return sum(1 for _, _, future in self._waiting if not future.done())

    def rise(self, value: int) -> None:
        """Lifts the mark and wakes whoever waited for it. A lower value changes nothing."""
        if value <= self._value:
            return
        self._value = value
        waiting = self._waiting
        while waiting and waiting[0][0] <= value:
            future = heapq.heappop(waiting)[2]
            if future.done():
                self._gone -= 1
            else:
                future.set_result(True)

    def fail(self, error: BaseException) -> None:
        """Ends all waiting, now and later, with `error`: the mark will not rise again."""
        self._failure = error
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
        self._gone = 0

    async def reach(self, target: int, deadline: Deadline) -> bool:
        """Waits until the mark is at `target` or above.

        Returns:
            True once it is; False if the deadline passed first.

        Raises:
            BaseException: what `fail` was told.
        """
        if self._value >= target:
            return True
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # else it would keep every frame it passed
        loop = asyncio.get_running_loop()
        remaining = deadline.remaining(loop.time())
        if remaining <= 0:
            return False
        future: asyncio.Future[bool] = loop.create_future()
        self._sequence += 1
        heapq.heappush(self._waiting, (target, self._sequence, future))
        timer = None if deadline.is_never else loop.call_later(remaining, _give_up, future)
        is_reached = False
        try:
            is_reached = await future
            return is_reached
        finally:
            if timer is not None:
                timer.cancel()
            if not is_reached:
                self._gone += 1
                self._forget_gone()

    def _forget_gone(self) -> None:
        """Drops waiters that gave up once they are the larger part, so memory stays bounded.

        They are counted as they leave, because a count over the heap for each of them would make
        thousands of waiters that leave together cost quadratically. A waiter may be counted here
        after its entry is gone already; that only brings the next sweep forward.
        """
        if self._gone * 2 > len(self._waiting):
            self._waiting = [entry for entry in self._waiting if not entry[2].done()]
            heapq.heapify(self._waiting)
            self._gone = 0


def _give_up(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)
