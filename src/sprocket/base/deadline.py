"""One time limit for a whole operation: made once, then passed down through all its calls."""

from __future__ import annotations

import asyncio
import math


class Deadline:
    """A point on the loop's clock, in seconds as `loop.time()` counts them."""

    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The point `seconds` from now on the running loop."""
        return cls(asyncio.get_running_loop().time() + seconds)

    @classmethod
    def after_ms(cls, milliseconds: float) -> Deadline:
        """The point `milliseconds` from now on the running loop."""
        return cls.after(milliseconds / 1000)

    @classmethod
    def never(cls) -> Deadline:
        """A deadline that never passes."""
        return cls(math.inf)

    @property
    def is_never(self) -> bool:
        """Whether it never passes."""
        return math.isinf(self.at)

    def remaining(self, now: float) -> float:
        """Seconds left at `now`; negative once it has passed."""
        return self.at - now

    def left(self) -> float:
        """Seconds left on the running loop; never negative."""
        return max(0.0, self.at - asyncio.get_running_loop().time())

    def sooner(self, seconds: float) -> Deadline:
        """This deadline, or `seconds` from now if that comes first."""
        return Deadline(min(self.at, asyncio.get_running_loop().time() + seconds))

    def __repr__(self) -> str:
        return f"Deadline({self.at:.3f})"
