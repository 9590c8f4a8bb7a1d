"""Our requests that wait for their replies: numbers, futures, and giving up in time.

There is no timer per call. Overdue calls are looked for when the soonest of them may be overdue,
so a call that is answered in time costs no more than its future.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from sprocket.base.errors import CallTimeout
from sprocket.protocol.command import Command

#: Overdue calls are looked for no more often than this, so they may give up this much late.
_SWEEP_SECONDS = 0.01
_NUMBER_MASK = 0x7FFF_FFFF


class Calls:
    """The calls of one connection.

    Args:
        on_overdue: is called when calls got no reply in time.
    """

    __slots__ = ("_address", "_last", "_loop", "_on_overdue", "_sweep", "_sweep_at", "_waiting")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_overdue: Callable[[], None] | None = None
    ) -> None:
        self._loop = loop
        self._on_overdue = on_overdue
        #: Number to future and time of giving up.
        self._waiting: dict[int, tuple[asyncio.Future[Command], float]] = {}
        self._last = 0
        #: No waiting call gives up before it.
        self._sweep_at = math.inf
        self._sweep: asyncio.TimerHandle | None = None
        self._address = ""

    def connected(self, address: str) -> None:
        """The connection is there; errors name its peer by this address from now on."""
        self._address = address

    def __len__(self) -> int:
        return len(self._waiting)

    def next_number(self) -> int:
        """A number for a request. They come round again after 2^31."""
        self._last = number = (self._last + 1) & _NUMBER_MASK
        return number

    def add(self, number: int, at: float) -> asyncio.Future[Command]:
        """Waits for the reply of that number until the loop's time is `at`."""
        future: asyncio.Future[Command] = self._loop.create_future()
        self._waiting[number] = (future, at)
        if at < self._sweep_at:
            self._look_at(at)
        return future

    def settle(self, reply: Command) -> bool:
        """Gives a reply to whoever waits for it; False if nobody does any more."""
        call = self._waiting.pop(reply.opaque, None)
        if call is None:
            return False
        if not call[0].done():
            call[0].set_result(reply)
        return True

    def forget(self, number: int) -> None:
        """Nobody waits for it any more."""
        self._waiting.pop(number, None)

    def fail(self, error: Exception) -> None:
        """Ends all waiting with `error`."""
        waiting, self._waiting = self._waiting, {}
        for future, _ in waiting.values():
            if not future.done():
                future.set_exception(error)
        if self._sweep is not None:
            self._sweep.cancel()

    def _look_at(self, at: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        self._sweep_at = at
        self._sweep = self._loop.call_at(at, self._give_up_overdue)

    def _give_up_overdue(self) -> None:
        self._sweep = None
        self._sweep_at = math.inf
        now = self._loop.time()
        overdue = [number for number, (_, at) in self._waiting.items() if at <= now]
        for number in overdue:
            future, _ = self._waiting.pop(number)
            if not future.done():
                future.set_exception(CallTimeout(f"no reply from {self._address} in time"))
        soonest = min((at for _, at in self._waiting.values()), default=math.inf)
        if soonest < math.inf:
            self._look_at(max(soonest, now + _SWEEP_SECONDS))
        if overdue and self._on_overdue is not None:
            self._on_overdue()
