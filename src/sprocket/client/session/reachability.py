"""Reports servers that cannot be reached: once when it begins, then rarely, and once at its end.

Each attempt that fails would be worth a line to nobody: a producer that sends in a loop makes
hundreds a second. No line at all would leave a user without a reason why nothing comes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

logger = logging.getLogger(__name__)

#: Seconds until the second report, and the longest pause between two; each is twice the last one.
_PAUSE_FIRST = 60.0
_PAUSE_LONGEST = 3600.0


class _ReportedOutage:
    def __init__(self, began: float, level: int) -> None:
        self.began = began
        self.level = level
        self.pause = _PAUSE_FIRST
        self.next_report = began + _PAUSE_FIRST


class Reachability:
    """What one session knows of servers that it cannot reach.

    Args:
        clock: the loop's time, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._outages: dict[str, _ReportedOutage] = {}

    def failed(self, server: str, error: Exception, *, level: int = logging.WARNING) -> None:
        """An attempt to reach a server failed.

        Args:
            server: what is reported: "broker 10.0.0.1:10911".
            level: of the report.
        """
        now = self._clock()
        outage = self._outages.get(server)
        if outage is None:
            self._outages[server] = _ReportedOutage(now, level)
            logger.log(level, "no answer from %s: %s", server, error)
        elif now >= outage.next_report:
            outage.pause = min(outage.pause * 2, _PAUSE_LONGEST)
            outage.next_report = now + outage.pause
            seconds = now - outage.began
            logger.log(level, "no answer from %s for %.0f s: %s", server, seconds, error)
        else:
            logger.debug("%s: %s", server, error)

    def answered(self, server: str) -> None:
        """A server answered."""
        if self._outages and (outage := self._outages.pop(server, None)) is not None:
            seconds = self._clock() - outage.began
            logger.log(outage.level, "answers come again from %s, after %.0f s", server, seconds)
