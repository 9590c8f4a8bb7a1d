"""When a process that ended is started again. Pure: the caller has the clock."""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.backoff import pauses


class Restarts:
    """The pauses before the starts of one process: they grow while it does not stay.

    Args:
        first, longest: the pauses, s.
        steady: a process that ran so long was well, s: the next pause is the first one again.
    """

    def __init__(self, *, first: float = 0.5, longest: float = 60.0, steady: float = 60.0) -> None:
        self._first, self._longest, self._steady = first, longest, steady
        self._pauses = self._new_pauses()
        self._started: float | None = None

    def _new_pauses(self) -> Iterator[float]:
        return pauses(self._first, self._longest)

    def started(self, now: float) -> None:
        """Notes that the process runs, at a time of a clock that never jumps, s."""
        self._started = now

    def ended(self, now: float) -> float:
        """Notes that it ended, or could not start; returns the pause before the next start, s."""
        started, self._started = self._started, None
        if started is not None and now - started >= self._steady:
            self._pauses = self._new_pauses()
        return next(self._pauses)
