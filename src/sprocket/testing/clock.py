"""Wall clocks under a test's control."""

from __future__ import annotations

import asyncio

#: 2024-01-01 00:00 UTC, where simulated time begins unless told otherwise.
EPOCH_MS = 1_704_067_200_000


class ManualClock:
    """A `Clock` that stands still until it is moved, forwards or backwards."""

    __slots__ = ("_now_ms",)

    def __init__(self, now_ms: int = EPOCH_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return self._now_ms

    def move(self, milliseconds: int) -> None:
        """Moves it on, or back with a negative number."""
        self._now_ms += milliseconds


class LoopClock:
    """A `Clock` that goes with the running loop's time, `skew_ms` off.

    On a simulated loop it is as virtual as the loop's time.
    """

    __slots__ = ("skew_ms",)

    def __init__(self, skew_ms: int = 0) -> None:
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, where the loop began at `EPOCH_MS`."""
        return EPOCH_MS + self.skew_ms + int(asyncio.get_running_loop().time() * 1000)
