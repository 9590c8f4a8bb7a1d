"""A histogram: how many values lie below each of some bounds. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Histogram:
    """Counts values.

    Args:
        bounds: rising; a value that is equal to one lies below it.

    Attributes:
        counts: the numbers of values between the bounds; the last is of those above all.
        total: the sum of all values.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def observe(self, value: float, count: int = 1) -> None:
        """Counts a value so many times."""
        self.counts[bisect_left(self.bounds, value)] += count
        self.total += value * count

    def copy(self) -> Histogram:
        """The same values, which do not change any more."""
        made = Histogram(self.bounds)
        made.counts, made.total = self.counts.copy(), self.total
        return made

    def since(self, before: Histogram) -> Histogram:
        """What was counted after `before`, an earlier copy."""
        made = Histogram(self.bounds)
        made.counts = [now - then for now, then in zip(self.counts, before.counts, strict=True)]
        made.total = self.total - before.total
        return made
