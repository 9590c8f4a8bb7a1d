"""Randomness from a seed."""

from __future__ import annotations

from random import Random


class SeededEntropy:
    """An `Entropy` with equal numbers for equal seeds, on every machine and Python version."""

    __slots__ = ("_random",)

    def __init__(self, seed: int | str) -> None:
        self._random = Random(seed)

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def below(self, limit: int) -> int:
        """A whole number in [0, limit)."""
        return int(self._random.random() * limit)

    def token(self, size: int) -> bytes:
        """`size` bytes."""
        return self._random.randbytes(size)

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + self._random.random() * (high - low)

    def happens(self, probability: float) -> bool:
        """Whether something of that probability happens this time."""
        return self._random.random() < probability

    def fork(self, name: str) -> SeededEntropy:
        """A new source, so that the draws of one part do not change those of another."""
        return SeededEntropy(f"{self._random.getrandbits(64)}/{name}")
