"""The machine's randomness."""

from __future__ import annotations

import os
from random import Random


class SystemEntropy:
    """An `Entropy` seeded by the operating system. Only `token` is fit for secrets."""

    __slots__ = ("_pid", "_random")

    def __init__(self) -> None:
        self._random = Random()
        self._pid = os.getpid()

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._own().random()

    def below(self, limit: int) -> int:
        """A whole number in [0, limit)."""
        return self._own().randrange(limit)

    def token(self, size: int) -> bytes:
        """`size` random bytes, straight from the operating system."""
        return os.urandom(size)

    def _own(self) -> Random:
        """The generator of this process. After a fork the child gets its own, as it must not
        repeat its parent's numbers.
        """
        pid = os.getpid()
        if pid != self._pid:
            self._random = Random()
            self._pid = pid
        return self._random
