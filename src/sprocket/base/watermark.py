"""A number that only rises and can be awaited. All waiting in the project uses it.

How far the log is flushed and how far a queue has messages are watermarks. Synchronous flush, long
polling and draining at shutdown all wait on one with a deadline.
"""

from __future__ import annotations

import asyncio
import heapq

from sprocket.base.deadline import Deadline


class Watermark:
    """A rising number. It belongs to one event loop and has no locks."""

    __slots__ = ("_failure", "_gone", "_sequence", "_value", "_waiting")

    def __init__(self, value: int = 0) -> None:
        self._value = value
        self._sequence = 0
        self._failure: BaseException | None = None
        #: A heap of (target, tie-breaker, future). Every target is above `_value`.
        self._waiting: list[tuple[int, int, asyncio.Future[bool]]] = []
        #: The number of heap entries whose waiters have given up.
        self._gone = 0

    @property
    def value(self) -> int:
        """The current number."""
        return self._value

    @property
    def waiting(self) -> int:
        """The number of waiters, without those that gave up."""
        return sum(1 for _, _, future in self._waiting if not future.done())

    def rise(self, value: int) -> None:
        """Raises the number and wakes those who wait for it. A lower value changes nothing."""
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
        """Ends all present and later waiting with `error`: the number will not rise again."""
        self._failure = error
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
        self._gone = 0

    async def reach(self, target: int, deadline: Deadline) -> bool:
        """Waits until the number is `target` or more.

        Returns:
            True once it is; False if the deadline passes first.

        Raises:
            BaseException: the error that `fail` was called with.
        """
        # With a heap ordered by target, `rise` touches only the waiters that it wakes, however many
        # others there are. A waiter that gives up stays in the heap and is only counted: to
        # remove it at once, the whole heap would have to be searched.
        if self._value >= target:
            return True
        if self._failure is not None:
            raise self._failure.with_traceback(None)  # else the error keeps every frame it passed
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
        """Drops waiters that gave up once they are the majority, so that memory stays bounded.

        They are counted as they leave: a scan of the heap for each of them would cost quadratic
        time when thousands leave together. A waiter may be counted after its entry is gone
        already; that only makes the next sweep come earlier.
        """
        if self._gone * 2 > len(self._waiting):
            self._waiting = [entry for entry in self._waiting if not entry[2].done()]
            heapq.heapify(self._waiting)
            self._gone = 0


def _give_up(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)
