"""Values over time in bounded memory: fine for an hour, coarser for a day and two weeks. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

#: The length of a step in ms, and how many are kept.
TIERS = ((10_000, 360), (60_000, 1_440), (600_000, 2_016))


class _Tier:
    """Means of steps of one length."""

    def __init__(self, step_ms: int, count: int) -> None:
        self.step_ms = step_ms
        self.points: deque[tuple[int, float]] = deque(maxlen=count)
        self._step = -1
        self._sum = 0.0
        self._count = 0

    def add(self, now_ms: int, value: float) -> None:
        step = now_ms // self.step_ms
        if step < self._step:  # the clock was set back: what is later would never be reached
            self.points = deque(
                (each for each in self.points if each[0] < step * self.step_ms),
                maxlen=self.points.maxlen,
            )
        if step == self._step and self.points:
            self._sum += value
            self._count += 1
            self.points[-1] = (step * self.step_ms, self._sum / self._count)
            return
        self._step, self._sum, self._count = step, value, 1
        self.points.append((step * self.step_ms, value))


class ValueSeries:
    """One value over time."""

    def __init__(self) -> None:
        self._tiers = [_Tier(*tier) for tier in TIERS]

    def add(self, now_ms: int, value: float) -> None:
        """Adds a value of now; several of one step become their mean."""
        for tier in self._tiers:
            tier.add(now_ms, value)

    @property
    def newest_ms(self) -> int:
        """The time of the last step, ms since 1970 UTC; 0 for none."""
        points = self._tiers[0].points
        return points[-1][0] if points else 0

    def points(self, since_ms: int, now_ms: int) -> list[tuple[int, float | None]]:
        """Time and value from a time on, in the finest steps that reach back so far.

        Between values that are more than three steps apart there is a gap: a point without a
        value.
        """
        span = now_ms - since_ms
        tier = next(
            (each for each, (step, count) in zip(self._tiers, TIERS, strict=True)
             if step * count >= span),
            self._tiers[-1],
        )  # fmt: skip
        return with_gaps([each for each in tier.points if each[0] >= since_ms], tier.step_ms)


def with_gaps(points: Sequence[tuple[int, float]], step_ms: int) -> list[tuple[int, float | None]]:
    """Points, with one that has no value where more than three steps are missing."""
    found: list[tuple[int, float | None]] = []
    for at, value in points:
        if found and at - found[-1][0] > 3 * step_ms:
            found.append((found[-1][0] + step_ms, None))
        found.append((at, value))
    return found
