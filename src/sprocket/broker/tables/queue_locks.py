"""Which client may consume which queue in order: leases that run out by themselves. Pure.

The names of topic and broker are not looked at: a lock is on the queue's name as the client
writes it, as in RocketMQ. Source: RebalanceLockManager of RocketMQ 4.9 and 5.x.

A client trusts its lease for 30 s after it asked for it, and asks again every 20 s. So of a client
whose connection is gone, or that held a queue before this broker began, nobody need wait for the
whole lease: 35 s after its last word it has stopped, or has come back.

Kept in a file, so that a broker that was killed does not give a queue to a second client while the
first one, which has not noticed, goes on: `{"lockTable":{group:{client id:[queue, ...]}},
"unheard":{client id:ms since 1970}}`. Clients of which nothing was heard since an earlier start
keep their end, so that a broker that is killed again and again holds no queue for one that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sprocket.message.queue import QueueId

#: Leases held at most, so that nobody can fill the memory with names.
LEASES_MAX = 1_000_000
#: How long a client may go on without a word to us: Java's 30 s, and time for an answer.
TRUST_MS = 35_000
_SEPARATOR = "\t"


class Lease(NamedTuple):
    """Who holds a queue, and since when without a renewal.

    Attributes:
        is_parted: whether the client may be gone.
    """

    client_id: str
    renewed_ms: int
    is_parted: bool = False


class QueueLocks:
    """All leases of a broker, by consumer group. Times are of a clock that never jumps.

    Attributes:
        is_changed: whether a queue has another holder since whoever saves it cleared this.
    """

    def __init__(self, lease_ms: int) -> None:
        self._lease_ms = lease_ms
        self._trust_ms = min(lease_ms, TRUST_MS)
        self.is_changed = False
        #: By client that held a queue before this broker began and has said nothing since: when to
        #: give it up, ms since 1970.
        self._unheard: dict[str, int] = {}
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
        if self._unheard.pop(client_id, None) is not None:
            self.is_changed = True
        for queue in queues:
            lease = leases.get(queue)
            if lease is None:
                if self._count >= LEASES_MAX:
                    continue
                self._count += 1
            elif lease.client_id != client_id and not self._has_ended(lease, now_ms):
                continue
            self.is_changed |= lease is None or lease.client_id != client_id
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
                self.is_changed = True

    def part(self, client_id: str) -> None:
        """A client's connection is gone: it may be gone, or may not know yet."""
        for leases in self._groups.values():
            for queue, lease in leases.items():
                if lease.client_id == client_id:
                    leases[queue] = lease._replace(is_parted=True)

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
        leases = self._groups.pop(group, {})
        self._count -= len(leases)
        self.is_changed |= bool(leases)

    def validate(self) -> None:
        """Asserts what must hold between two calls."""
        assert self._count == sum(len(leases) for leases in self._groups.values())

    def _has_ended(self, lease: Lease, now_ms: int) -> bool:
        longest = self._trust_ms if lease.is_parted else self._lease_ms
        return now_ms - lease.renewed_ms > longest

    # In a file.

    def to_json(self) -> dict[str, Any]:
        """What the file holds of it."""
        table: dict[str, dict[str, list[str]]] = {}
        for group, leases in self._groups.items():
            for queue, lease in leases.items():
                if _SEPARATOR not in queue.broker:
                    text = _SEPARATOR.join((str(queue.number), queue.broker, queue.topic))
                    table.setdefault(group, {}).setdefault(lease.client_id, []).append(text)
        known = {client_id for clients in table.values() for client_id in clients}
        unheard = {client: until for client, until in self._unheard.items() if client in known}
        return {"lockTable": table, "unheard": unheard}

    def load(self, state: Mapping[str, Any], now_ms: int, *, wall_ms: int) -> None:
        """Takes over what a file holds: all of its clients may be gone.

        Args:
            now_ms: by the clock that never jumps.
            wall_ms: the same moment, ms since 1970.

        Raises:
            ValueError: it has another form.
        """
        table, unheard = state.get("lockTable") or {}, state.get("unheard") or {}
        if not isinstance(table, dict) or not isinstance(unheard, dict):
            raise ValueError("lockTable or unheard is no object")
        latest = wall_ms + self._trust_ms
        self.is_changed = bool(table)
        for group, clients in table.items():
            leases = self._groups.setdefault(str(group), {})
            for client_id, texts in clients.items():
                until = min(int(unheard.get(client_id, latest)), latest)
                self._unheard[str(client_id)] = until
                renewed_ms = now_ms - (latest - until)
                for text in texts:
                    number, broker, topic = text.split(_SEPARATOR, 2)
                    queue = QueueId(topic, broker, int(number))
                    leases[queue] = Lease(str(client_id), renewed_ms, is_parted=True)
        self._count = sum(len(leases) for leases in self._groups.values())
