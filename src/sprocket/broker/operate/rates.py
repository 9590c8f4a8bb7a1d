"""Messages per second over the last ten seconds, minute and ten minutes, from counters. Pure."""

from __future__ import annotations

from collections import deque

#: The periods that RocketMQ's tools show, s.
SPANS_SECONDS = (10, 60, 600)


class Rates:
    """Remembers earlier values of a counter."""

    def __init__(self, now_ms: int, count: int = 0) -> None:
        #: (ms, count), the oldest first.
        self._samples: deque[tuple[int, int]] = deque([(now_ms, count)])

    def sample(self, now_ms: int, count: int) -> None:
        """Remembers the counter's value; to be called every few seconds."""
        self._samples.append((now_ms, count))
        oldest_ms = now_ms - 1000 * SPANS_SECONDS[-1]
        while len(self._samples) > 1 and self._samples[1][0] <= oldest_ms:
            self._samples.popleft()

    def per_second(self, now_ms: int, count: int) -> list[float]:
        """The rate over each period, or since the start if that is shorter."""
        rates = []
        for seconds in SPANS_SECONDS:
            since_ms, before = self._samples[0]
            for moment_ms, value in self._samples:
                if moment_ms > now_ms - 1000 * seconds:
                    break
                since_ms, before = moment_ms, value
            elapsed_ms = now_ms - since_ms
            rates.append(1000 * (count - before) / elapsed_ms if elapsed_ms > 0 else 0.0)
        return rates
