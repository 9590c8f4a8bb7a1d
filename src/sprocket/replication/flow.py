"""The limit on how many bytes a second one slave is sent. Pure.

Source of the settings: FlowMonitor of RocketMQ 5.x.
"""

from __future__ import annotations

#: What the limit gives in this time is sent at once at most, s.
_AT_ONCE_SECONDS = 0.5


class FlowLimit:
    """Spreads bytes over time.

    Args:
        bytes_per_second: the limit; 0: none.
    """

    __slots__ = ("_free_at", "_rate")

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._free_at = 0.0

    def change(self, bytes_per_second: int) -> None:
        """Changes the limit."""
        self._rate = bytes_per_second

    def at_once(self, size: int) -> int:
        """How many bytes to send at once, of so many: the pause after them must be short, or the
        slave takes the connection for dead."""
        return min(size, max(1, int(self._rate * _AT_ONCE_SECONDS))) if self._rate else size

    def pause(self, size: int, now: float) -> float:
        """Seconds to wait after some bytes were sent, before the next ones.

        Args:
            size: how many bytes were sent.
            now: any clock that does not jump, in seconds.
        """
        if not self._rate:
            return 0.0
        self._free_at = max(self._free_at, now) + size / self._rate
        return self._free_at - now
