"""A wall clock that is not believed at once when it jumps ahead. Pure.

What is removed because of its age is gone for good. So a clock that is an hour, a day or a year
ahead, and is set right again, must not make anything old: a jump ahead is believed only after it
has lasted. A clock that goes back is believed at once, because then things are kept longer.
"""

from __future__ import annotations

#: How long a jump ahead must last until it is believed, ms.
PATIENCE_MS = 3_600_000
#: By how much a clock may be ahead between two looks without being a jump: slow corrections, ms.
TOLERANCE_MS = 60_000


class BelievedTime:
    """The time by which ages are measured.

    Args:
        now_ms: the time that is believed at the beginning, ms since 1970 UTC; 0 if none is, so that
            the clock is believed after it has lasted like any jump.
        steady_ms: the same moment on a clock that never jumps.
    """

    __slots__ = ("_ahead_since_ms", "_now_ms", "_steady_ms")

    def __init__(self, now_ms: int, steady_ms: int) -> None:
        self._now_ms = now_ms
        self._steady_ms = steady_ms
        #: When the wall clock was first seen ahead, on the clock that never jumps.
        self._ahead_since_ms: int | None = None

    def at(self, wall_ms: int, steady_ms: int) -> int:
        """The believed time, ms since 1970 UTC; never later than `wall_ms`.

        Args:
            wall_ms: what the wall clock says.
            steady_ms: the same moment on the clock that never jumps.
        """
        expected_ms = self._now_ms + steady_ms - self._steady_ms
        if wall_ms <= expected_ms + TOLERANCE_MS:
            self._ahead_since_ms = None
            now_ms = wall_ms
        elif self._ahead_since_ms is None:
            self._ahead_since_ms = steady_ms
            now_ms = expected_ms
        elif steady_ms - self._ahead_since_ms < PATIENCE_MS:
            now_ms = expected_ms
        else:
            self._ahead_since_ms = None
            now_ms = wall_ms
        self._now_ms, self._steady_ms = now_ms, steady_ms
        return now_ms
