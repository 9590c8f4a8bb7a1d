"""Token buckets: how much may pass in a time. Pure.

A bucket gains `rate` tokens a second, up to `burst`. Whatever passes takes tokens, so in any time t
not more than `rate * t + burst` passes. What is larger than a whole burst passes when the bucket is
full, and leaves it in debt; otherwise it could never pass.
"""

from __future__ import annotations

from collections.abc import Hashable

#: Seconds for which a shared bucket remembers a taker at least.
_WINDOW_SECONDS = 1.0
#: Takers that a shared bucket tells apart in one window; further ones count as one.
TAKERS_MAX = 256
#: A tenth of a smaller burst is less than one request.
_SPARED_MIN = 10
_OTHERS = object()


class TokenBucket:
    """The tokens of one taker.

    Args:
        rate: tokens a second, above 0.
        burst: the most tokens, at least 1.
        now: a clock that never jumps, s. The bucket is full at first.
    """

    __slots__ = ("_at", "_tokens", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst
        self._at = now

    def level(self, now: float) -> float:
        """The tokens; below 0 it is in debt."""
        if now > self._at:
            tokens = self._tokens + (now - self._at) * self.rate
            self._tokens = tokens if tokens < self.burst else self.burst
            self._at = now
        return self._tokens

    def has(self, cost: float, now: float, taker: Hashable = None, reserve: float = 0.0) -> bool:
        """Whether something may pass.

        Args:
            cost: the tokens that it takes.
            taker: who wants to; see `SharedBucket`.
            reserve: how far in debt the bucket may be.
        """
        return self.level(now) + reserve >= (cost if cost < self.burst else self.burst)

    def spend(self, cost: float, now: float, taker: Hashable = None) -> None:
        """Takes tokens, whether there are any or not; a negative number gives them back."""
        tokens = (self._tokens if now == self._at else self.level(now)) - cost
        self._tokens = tokens if tokens < self.burst else self.burst

    def wait_seconds(self, cost: float, now: float) -> float:
        """How long it takes until so much may pass; 0 if it may now."""
        return max(0.0, (min(cost, self.burst) - self.level(now)) / self.rate)

    def is_full(self, now: float) -> bool:
        """Whether a new bucket would be the same: this one may be forgotten."""
        return self.level(now) >= self.burst


class SharedBucket(TokenBucket):
    """The tokens of several takers, such as the clients that send to one topic.

    While there are fewer tokens than half a burst, each of the takers of the last seconds has its
    part of the rate, and no more. The last tenth is for those that take little. So one that takes
    all it can get does not keep the others from the little that they need.
    """

    __slots__ = ("_before", "_debts", "_window")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        super().__init__(rate, burst, now)
        self._window = now
        #: By taker, what it has taken beyond its part, and when that was reckoned; those of this
        #: window and of the one before. Empty while there is plenty.
        self._debts: dict[Hashable, tuple[float, float]] = {}
        self._before: dict[Hashable, tuple[float, float]] = {}

    def has(self, cost: float, now: float, taker: Hashable = None, reserve: float = 0.0) -> bool:
        """See `TokenBucket.has`."""
        has_any = super().has(cost, now, taker, reserve)
        left = self._tokens - cost
        if has_any and (reserve or left >= self.burst / 2):
            return True
        debt = self._owes(taker, 0.0, now)
        if not has_any or debt <= 0:
            return has_any
        takers = max(len(self._debts), len(self._before))
        part = self.burst / 2 / takers
        spare = self.burst / 10 if self.burst >= _SPARED_MIN and debt > part / 2 else 0.0
        return left >= spare and (takers == 1 or debt + cost <= part)

    def spend(self, cost: float, now: float, taker: Hashable = None) -> None:
        """See `TokenBucket.spend`."""
        super().spend(cost, now, taker)
        if self._tokens < self.burst / 2:
            self._owes(taker, cost, now)
        elif self._debts or self._before:
            self._debts, self._before = {}, {}

    def _owes(self, taker: Hashable, more: float, now: float) -> float:
        """Adds to what a taker has taken beyond its part, and returns that."""
        if now - self._window >= _WINDOW_SECONDS:
            is_next = now - self._window < 2 * _WINDOW_SECONDS
            self._before, self._debts = self._debts if is_next else {}, {}
            self._window = now
        debts = self._debts
        if taker not in debts and len(debts) >= TAKERS_MAX:
            taker = _OTHERS
        debt, at = debts.get(taker) or self._before.get(taker) or (0.0, now)
        takers = max(len(debts), len(self._before), 1)
        debt = max(0.0, debt - (now - at) * self.rate / takers) + more
        debts[taker] = debt, now
        return debt
