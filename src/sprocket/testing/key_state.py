"""The keys, leases and revisions of one store of leased keys. Leases end in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import copy_context
from typing import NamedTuple

from sprocket.base.watermark import Watermark
from sprocket.election.leased_keys import (
    Compare,
    Delete,
    GrantedLease,
    KeyValue,
    Picture,
    Put,
    Transacted,
)


class _Kept(NamedTuple):
    value: str
    revision: int
    lease: int


class KeyState:
    """The keys, leases and revisions of one store.

    Args:
        ignores_comparisons: a planted fault: every transaction is made.
        seconds_least: the shortest lease that is granted; etcd's default is 2.

    Attributes:
        changed: the store's revision.
        written: all that was ever written to keys, oldest first.
    """

    def __init__(self, *, ignores_comparisons: bool = False, seconds_least: float = 0.1) -> None:
        self.changed = Watermark(1)
        self._ignores_comparisons = ignores_comparisons
        self._seconds_least = seconds_least
        self.written: list[KeyValue] = []
        self._keys: dict[str, _Kept] = {}
        #: By lease, its length and the time of its end.
        self._leases: dict[int, tuple[float, float]] = {}
        self._lease_number = 0
        #: Revisions of changes with their keys, oldest first.
        self._history: list[tuple[int, str]] = []
        self._compacted = 0
        #: Timers of leases belong to no server: they go on while each of them is paused.
        self._context = copy_context()

    @property
    def revision(self) -> int:
        """The revision of the newest change."""
        return self.changed.value

    def get(self, prefix: str) -> Picture:
        """All keys under a prefix."""
        keys = {
            key: KeyValue(key, kept.value, kept.revision)
            for key, kept in sorted(self._keys.items())
            if key.startswith(prefix)
        }
        return Picture(self.revision, keys)

    def transact(
        self, compares: Sequence[Compare], changes: Sequence[Put | Delete]
    ) -> Transacted | None:
        """Makes a transaction; None if it needs a lease that has ended."""
        for compare in compares:
            kept = self._keys.get(compare.key)
            is_other = (0 if kept is None else kept.revision) != compare.revision
            if is_other and not self._ignores_comparisons:
                return Transacted(False, self.revision)
        if any(isinstance(c, Put) and c.lease and c.lease not in self._leases for c in changes):
            return None
        revision = self.revision + 1
        touched = []
        for change in changes:
            if isinstance(change, Put):
                self._keys[change.key] = _Kept(change.value, revision, change.lease)
                self.written.append(KeyValue(change.key, change.value, revision))
                touched.append(change.key)
            elif self._keys.pop(change.key, None) is not None:
                touched.append(change.key)
        self._record(revision, touched)
        return Transacted(True, self.revision)

    def grant(self, seconds: float) -> GrantedLease:
        """Makes a lease."""
        self._lease_number += 1
        self._begin(self._lease_number, max(seconds, self._seconds_least))
        return GrantedLease(self._lease_number, max(seconds, self._seconds_least))

    def keep_alive(self, lease: int) -> float:
        """Lets a lease begin anew; 0 if it has ended."""
        if lease not in self._leases:
            return 0.0
        seconds, _ = self._leases[lease]
        self._begin(lease, seconds)
        return seconds

    def revoke(self, lease: int) -> None:
        """Ends a lease."""
        if self._leases.pop(lease, None) is None:
            return
        bound = sorted(key for key, kept in self._keys.items() if kept.lease == lease)
        for key in bound:
            del self._keys[key]
        self._record(self.revision + 1, bound)

    def changes(self, prefix: str, revision: int) -> list[int] | None:
        """Revisions of changes under a prefix from a revision on; None if they are forgotten."""
        if revision <= self._compacted:
            return None
        return sorted({r for r, key in self._history if r >= revision and key.startswith(prefix)})

    def lasts_until(self, key: str) -> float:
        """The loop's time at which a key's lease ends; 0 for a key that is not there."""
        kept = self._keys.get(key)
        return 0.0 if kept is None else self._leases[kept.lease][1]

    def compact(self) -> None:
        """Forgets the changes so far: a watch from one of them fails."""
        self._compacted = self.revision
        self._history.clear()

    def _begin(self, lease: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self._leases[lease] = (seconds, end)
        loop.call_at(end, self._expire, lease, context=self._context)

    def _expire(self, lease: int) -> None:
        _, end = self._leases.get(lease, (0.0, float("inf")))
        if asyncio.get_running_loop().time() >= end:
            self.revoke(lease)

    def _record(self, revision: int, keys: list[str]) -> None:
        if keys:
            self._history += [(revision, key) for key in keys]
            self.changed.rise(revision)
