"""Wall clocks that a test controls."""

from __future__ import annotations

import asyncio

#: 2024-01-01 00:00 UTC, the default begin of simulated time.
EPOCH_MS = 1_704_067_200_000


class ManualClock:
    """A `Clock` that changes only when it is moved, forwards or backwards."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int = EPOCH_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return self._now_ms

    def move(self, milliseconds: int) -> None:
        """Moves the clock forwards, or backwards with a negative number."""
        self._now_ms += milliseconds


class LoopClock:
    """A `Clock` that follows the running loop's time, plus `skew_ms`.

    On a simulated loop that time is virtual.
    """

    __slots__ = ("skew_ms",)

    def __init__(self, skew_ms: int = 0) -> None:
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; the loop began at `EPOCH_MS`."""
        return EPOCH_MS + self.skew_ms + int(asyncio.get_running_loop().time() * 1000)
