"""Meters: what each name has taken, against its quota. Pure.

Their number is bounded: one whose buckets are full, and that counts nothing, is like a new one and
is dropped when others need the place. Where no more can be dropped, further names of a kind share
one meter, so that nobody escapes its limit by taking many names.
"""

from __future__ import annotations

from itertools import islice

from sprocket.quotas.buckets import SharedBucket, TokenBucket
from sprocket.quotas.rules import Allowance, Quota, QuotaKind, QuotaRules

#: Meters of one kind.
METERS_MAX = 10_000
#: The name under which those are counted that have no meter of their own.
OTHERS = "(others)"
#: Meters that are looked at when one more is wanted.
_LOOKED_AT = 32
#: Rates of which each client gets its share, where several have them together.
_SHARED = ("requests", "bytes_in", "bytes_out")
_RATES = ("requests", "bytes_in", "bytes_out", "new_topics", "new_groups")


class Meter:
    """What one name has taken.

    Attributes:
        kind, name: whose.
        quota: its limits.
        buckets: by the limit's name.
        requests, bytes_in, bytes_out: three of them, which are asked for often.
        held: how many of its requests wait.
        connections: how many connections it has.
    """

    __slots__ = (
        "buckets", "bytes_in", "bytes_out", "connections", "held", "kind", "name", "quota",
        "requests",
    )  # fmt: skip

    def __init__(self, kind: QuotaKind, name: str, quota: Quota, now: float) -> None:
        self.kind = kind
        self.name = name
        self.held = 0
        self.connections = 0
        self.change(quota, now)

    def change(self, quota: Quota, now: float) -> None:
        """Sets other limits; buckets begin full."""
        self.quota = quota
        self.buckets: dict[str, TokenBucket] = {
            limit: self._kind_of(limit)(allowance.rate, allowance.burst, now)
            for limit in _RATES
            if isinstance(allowance := getattr(quota, limit), Allowance)
        }
        self.requests = self.buckets.get("requests")
        self.bytes_in = self.buckets.get("bytes_in")
        self.bytes_out = self.buckets.get("bytes_out")

    def _kind_of(self, limit: str) -> type[TokenBucket]:
        is_shared = self.kind is not QuotaKind.CLIENT and limit in _SHARED
        return SharedBucket if is_shared else TokenBucket

    def has_plenty(self, limit: str, now: float) -> bool:
        """Whether it is well within a limit."""
        if limit == "held":
            return self.quota.held is None or self.held < self.quota.held
        if limit == "connections":
            return self.quota.connections is None or self.connections < self.quota.connections
        bucket = self.buckets.get(limit)
        return bucket is None or bucket.level(now) >= bucket.burst / 2

    def is_idle(self, now: float) -> bool:
        """Whether a new meter would be the same."""
        if self.held or self.connections:
            return False
        return all(bucket.is_full(now) for bucket in self.buckets.values())


class MeterTable:
    """The meters of a server.

    Args:
        meters_max: the most of each kind.

    Attributes:
        version: whoever keeps meters asks for them again when this is another number.
    """

    def __init__(self, rules: QuotaRules, *, meters_max: int = METERS_MAX) -> None:
        self._meters_max = meters_max
        self._rules = rules
        self._meters: dict[QuotaKind, dict[str, Meter]] = {kind: {} for kind in QuotaKind}
        self.version = 0

    def of(self, kind: QuotaKind, name: str, now: float) -> Meter | None:
        """The meter of a name; None if it has no limit."""
        meters = self._meters[kind]
        found = meters.get(name)
        if found is not None:
            return found
        if kind not in self._rules.kinds or (quota := self._rules.quota(kind, name)) is None:
            return None
        if len(meters) >= self._meters_max and not self._drop_idle(meters, now):
            name = OTHERS
            if (shared := meters.get(name)) is not None:
                return shared
        meter = meters[name] = Meter(kind, name, quota, now)
        return meter

    def change(self, rules: QuotaRules, now: float) -> None:
        """Applies other rules. What is counted stays; buckets begin full."""
        self._rules = rules
        self.version += 1
        for kind, meters in self._meters.items():
            for name, meter in list(meters.items()):
                meter.change(rules.quota(kind, name) or Quota(), now)
                if meter.is_idle(now):
                    del meters[name]

    def __len__(self) -> int:
        return sum(map(len, self._meters.values()))

    def validate(self) -> None:
        """Asserts the invariants."""
        for meters in self._meters.values():
            assert len(meters) <= self._meters_max + 1
            for meter in meters.values():
                assert meter.held >= 0
                assert meter.connections >= 0

    # A few are looked at for each one that is wanted, so that no request waits for a search of all.
    def _drop_idle(self, meters: dict[str, Meter], now: float) -> bool:
        """Drops what is idle among the meters that were looked at longest ago."""
        self.version += 1
        for name in list(islice(meters, _LOOKED_AT)):
            meter = meters.pop(name)
            if not meter.is_idle(now):
                meters[name] = meter
        return len(meters) < self._meters_max
