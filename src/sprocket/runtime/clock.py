"""The machine's wall clock."""

from __future__ import annotations

import time


class SystemClock:
    """A `Clock` that reads the machine's clock."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC. May jump, also backwards."""
        return time.time_ns() // 1_000_000
