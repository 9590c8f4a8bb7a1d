"""Work on thousands of queues in slices, between which the event loop has other turns."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

#: How many begin at the same time, and seconds until the next ones begin.
SLICE = 200
SLICE_SECONDS = 0.02
#: Pauses until the next ones begin although many are under way: at a broker that does not answer.
_PAUSES_MAX = 5


class InSlices(Generic[T]):
    """Begins works at once while there are few; of many, a slice each few milliseconds.

    Args:
        begin: begins one of them; it may add others.
        under_way: how many have begun and not ended. While these are a slice or more, the next
            slice waits, for a tenth of a second at most: the answers to thousands of requests
            would come in one turn of the loop.
    """

    __slots__ = ("_begin", "_is_due", "_left", "_pauses", "_under_way", "_waiting")

    def __init__(
        self, begin: Callable[[T], None], under_way: Callable[[], int] = lambda: 0
    ) -> None:
        self._begin = begin
        self._under_way = under_way
        self._pauses = 0
        self._waiting: deque[T] = deque()
        #: How many more may begin before the next slice.
        self._left = SLICE
        self._is_due = False

    def add(self, works: Iterable[T]) -> None:
        """Adds works behind those that wait."""
        self._waiting.extend(works)
        self._go_on()

    def stop(self) -> None:
        """Drops those that have not begun."""
        self._waiting.clear()

    def _go_on(self) -> None:
        while self._waiting and self._left:
            self._left -= 1
            self._begin(self._waiting.popleft())
        if self._left < SLICE and not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(SLICE_SECONDS, self._next)

    def _next(self) -> None:
        self._is_due = False
        self._pauses += 1
        if self._under_way() < SLICE or self._pauses >= _PAUSES_MAX:
            self._pauses, self._left = 0, SLICE
        self._go_on()


async def cancel_all(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancels tasks, a slice at a time, and waits for their ends."""
    for at in range(0, len(tasks), SLICE):
        some = tasks[at : at + SLICE]
        for task in some:
            task.cancel()
        await asyncio.gather(*some, return_exceptions=True)
