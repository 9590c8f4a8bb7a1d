"""Counts and reports what is refused or delayed, and says why. Pure."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable

from sprocket.base.errors import SystemBusy
from sprocket.base.troubles import Troubles
from sprocket.quotas.meters import Meter
from sprocket.quotas.rules import UNITS, Allowance

logger = logging.getLogger(__name__)

#: By this text users know that a broker is busy. Source: BrokerFastFailure of RocketMQ.
BUSY = "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
#: How often ends are looked for, s.
_LOOK_SECONDS = 5.0
#: How often at most a text is made for one limit of one name, s.
_SAID_SECONDS = 1.0
#: Names that the figures show.
_SHOWN_MAX = 50


class Refusals:
    """What was refused or delayed since the start.

    Args:
        clock: a clock that never jumps, s.

    Attributes:
        refused, delayed: requests, by kind and limit.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._troubles = Troubles(clock, logger)
        #: What has been over its limit lately, with the number of its requests refused or delayed.
        self._over: dict[tuple[Meter, str], int] = {}
        #: What was said of each of them, and until when it is not said again.
        self._said: dict[tuple[Meter, str], tuple[str, float]] = {}
        self._look_at = 0.0
        self.refused: Counter[tuple[str, str]] = Counter()
        self.delayed: Counter[tuple[str, str]] = Counter()

    def refusal(self, meter: Meter, limit: str) -> SystemBusy:
        """Counts a refused request; the error that refuses it."""
        self.refused[meter.kind, limit] += 1
        return SystemBusy(BUSY + self._exceeded(meter, limit, "its requests are refused"))

    def delay(self, meter: Meter, limit: str) -> None:
        """Counts a delayed request."""
        self.delayed[meter.kind, limit] += 1
        self._exceeded(meter, limit, "its requests wait")

    def look(self) -> None:
        """Reports what is within its limits again; cheap if it is called for each request."""
        if not self._over or (now := self._clock()) < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        for meter, limit in list(self._over):
            if meter.has_plenty(limit, now):
                del self._over[meter, limit]
                self._said.pop((meter, limit), None)
                self._troubles.ended(
                    f"{meter.kind} {meter.name} {limit}",
                    f"{meter.kind} {meter.name} is within its limit of {UNITS[limit]} again",
                )

    def table(self) -> dict[str, str]:
        """The figures that a server reports about itself."""
        self.look()
        counts = {
            f"quota{what}.{kind}.{limit}": str(count)
            for what, counter in (("Refused", self.refused), ("Delayed", self.delayed))
            for (kind, limit), count in sorted(counter.items())
        }
        most = sorted(self._over.items(), key=lambda each: -each[1])[:_SHOWN_MAX]
        now = {f"quotaOver.{m.kind}.{limit}.{m.name}": str(count) for (m, limit), count in most}
        return counts | now

    # Floods are refused as cheaply as possible: the text is made once a second.
    def _exceeded(self, meter: Meter, limit: str, what: str) -> str:
        key = (meter, limit)
        self._over[key] = self._over.get(key, 0) + 1
        now, said = self._clock(), self._said.get(key)
        if said is None or now >= said[1]:
            text = f"{meter.kind} {meter.name} is over its limit of {_shown(meter, limit)}"
            self._said[key] = said = text, now + _SAID_SECONDS
            self._troubles.failed(f"{meter.kind} {meter.name} {limit}", f"{text}: {what}")
        return said[0]


def _shown(meter: Meter, limit: str) -> str:
    value = getattr(meter.quota, limit)
    if isinstance(value, Allowance):
        value = value.rate * 3600 if limit.startswith("new_") else value.rate
    return f"{round(value or 0)} {UNITS[limit]}"
