"""The limit on how many bytes a second one slave is sent. Pure.

Source of the settings: FlowMonitor of RocketMQ 5.x.
"""

from __future__ import annotations


class FlowLimit:
    """Spreads bytes over time.

    Args:
        bytes_per_second: the limit; 0: none.
    """

    __slots__ = ("_free_at", "_rate")

    def __init__(self, bytes_per_second: int) -> None:
        self._rate = bytes_per_second
        self._free_at = 0.0

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
