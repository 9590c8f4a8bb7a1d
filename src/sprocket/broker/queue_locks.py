"""Which client may consume which queue in order: leases that run out by themselves. Pure.

The names of topic and broker are not looked at: a lock is on the queue's name as the client
writes it, as in RocketMQ. Source: RebalanceLockManager of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from sprocket.message.queue import QueueId

#: Leases held at most, so that nobody can fill the memory with names.
LEASES_MAX = 1_000_000


class Lease(NamedTuple):
    """Who holds a queue, and since when without a renewal."""

    client_id: str
    renewed_ms: int


class QueueLocks:
    """All leases of a broker, by consumer group."""

    def __init__(self, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._groups: dict[str, dict[QueueId, Lease]] = {}
        #: Leases in all groups together.
        self._count = 0

    def lock(
        self, group: str, client_id: str, *, queues: Iterable[QueueId], now_ms: int
    ) -> list[QueueId]:
        """Takes or renews what is free, run out, or the client's own.

        Returns:
            The queues that the client holds now, in the order asked.
        """
        leases = self._groups.get(group, {})
        held = []
        for queue in queues:
            lease = leases.get(queue)
            if lease is None:
                if self._count >= LEASES_MAX:
                    continue
                self._count += 1
            elif lease.client_id != client_id and not self._has_ended(lease, now_ms):
                continue
            leases[queue] = Lease(client_id, now_ms)
            held.append(queue)
        if leases:
            self._groups[group] = leases
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueId]) -> None:
        """Gives queues back. What another client holds stays."""
        leases = self._groups.get(group, {})
        for queue in queues:
            lease = leases.get(queue)
            if lease is not None and lease.client_id == client_id:
                del leases[queue]
                self._count -= 1

    def is_ordered(self, group: str, now_ms: int) -> bool:
        """Whether some member of the group holds a queue, that is, consumes in order."""
        leases = self._groups.get(group, {})
        return any(not self._has_ended(lease, now_ms) for lease in leases.values())

    def expire(self, now_ms: int) -> None:
        """Forgets what has run out."""
        for group, leases in list(self._groups.items()):
            kept = {q: lease for q, lease in leases.items() if not self._has_ended(lease, now_ms)}
            if kept:
                self._groups[group] = kept
            else:
                del self._groups[group]
            self._count -= len(leases) - len(kept)

    def forget_group(self, group: str) -> None:
        """Drops a group's leases."""
        self._count -= len(self._groups.pop(group, {}))

    def validate(self) -> None:
        """Asserts what must hold between two calls."""
        assert self._count == sum(len(leases) for leases in self._groups.values())

    def _has_ended(self, lease: Lease, now_ms: int) -> bool:
        return now_ms - lease.renewed_ms > self._lease_ms
