"""Our requests that wait for their replies: their numbers, futures and timeouts.

There is no timer per call. One sweep for overdue calls runs when the earliest of them may be
overdue, so a call with a reply in time costs no more than its future.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from sprocket.base.errors import CallTimeout
from sprocket.protocol.command import Command

#: The least time between two sweeps, so a timeout may be this much late.
_SWEEP_SECONDS = 0.01
_NUMBER_MASK = 0x7FFF_FFFF


class Calls:
    """The calls of one connection.

    Args:
        on_overdue: called when calls got no reply in time.
    """

    __slots__ = (
        "_address",
        "_last",
        "_loop",
        "_on_overdue",
        "_sweep",
        "_sweep_at",
        "_waiting",
        "held",
    )

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_overdue: Callable[[], None] | None = None
    ) -> None:
        self._loop = loop
        self._on_overdue = on_overdue
        #: From a request's number to its future and the loop time of its timeout.
        self._waiting: dict[int, tuple[asyncio.Future[Command], float]] = {}
        self._last = 0
        #: No call is overdue before this loop time.
        self._sweep_at = math.inf
        self._sweep: asyncio.TimerHandle | None = None
        #: The server's address, for error texts.
        self._address = ""
        #: Numbers of the calls whose replies the server may hold back.
        self.held: set[int] = set()

    def connected(self, address: str) -> None:
        """Sets the address of the peer, for error texts."""
        self._address = address

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def newest(self) -> int:
        """The number of the newest call."""
        return self._last

    def is_waiting(self, until: int, *, including_held: bool) -> bool:
        """Whether a call up to that number still waits for its reply.

        Args:
            including_held: whether calls count whose replies the server may hold back.
        """
        for number in self._waiting:  # in the order of the calls
            if number > until:
                return False
            if including_held or number not in self.held:
                return True
        return False

    def next_number(self) -> int:
        """A number for a request. Numbers repeat after 2^31."""
        self._last = number = (self._last + 1) & _NUMBER_MASK
        return number

    def add(self, number: int, at: float) -> asyncio.Future[Command]:
        """Returns a future for the reply with that number; it fails at the loop time `at`."""
        future: asyncio.Future[Command] = self._loop.create_future()
        self._waiting[number] = (future, at)
        if at < self._sweep_at:
            self._look_at(at)
        return future

    def settle(self, reply: Command) -> bool:
        """Completes the call that a reply belongs to; False if it no longer waits."""
        call = self._waiting.pop(reply.opaque, None)
        if call is None:
            return False
        if not call[0].done():
            call[0].set_result(reply)
        return True

    def forget(self, number: int) -> None:
        """Drops a call whose caller no longer waits."""
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
        # The sweep costs a step for each waiting call, so it runs at most every 10 ms. It comes
        # at the earliest timeout, not at regular times: without overdue calls it seldom runs.
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
