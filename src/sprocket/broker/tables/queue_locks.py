"""Leases on queues for ordered consumption; a lease that is not renewed expires. Pure.

The names are not checked here but in `locks`. Source: RebalanceLockManager of RocketMQ 4.9 and 5.x.

A client trusts its lease for 30 s after it asked for it, and renews it every 20 s. So if a client's
connection is closed, or if it held a queue before this broker started, other clients need not wait
for the whole lease: 35 s after its last request it has stopped consuming, or it has renewed.

The leases are kept in a file: a broker that was killed must not give a queue to a second client
while the first one still consumes it: `{"lockTable":{group:{client id:[queue, ...]}},
"unheardLeftMs":{client id:ms}}`. A client that has sent nothing since an earlier start keeps what
was left of its lease when the file was last written, so that a broker that is killed repeatedly
does not hold queues for ever. That is a span and no time of day: a wall clock that jumps while the
broker is down must not end a lease while its holder still consumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sprocket.message.queue import QueueId
from sprocket.store.state.snapshot import ConvertedRows

#: Leases held at most, so that no client can fill the memory with names.
LEASES_MAX = 1_000_000
#: How long a client may consume after its last request: Java's 30 s, and time for the reply.
TRUST_MS = 35_000
#: Leases that are looked at in one go, about a millisecond.
_SLICE = 2_000
_SEPARATOR = "\t"


class Lease(NamedTuple):
    """The holder of a queue and the time of its last renewal.

    Attributes:
        is_parted: whether the client's connection is closed, so that the client may be dead.
    """

    client_id: str
    renewed_ms: int
    is_parted: bool = False


class QueueLocks:
    """All leases of a broker, by consumer group. Times are of a clock that never jumps.

    Args:
        on_change: called with a group when the holder of one of its queues has changed.

    Attributes:
        is_changed: whether a queue's holder has changed since the saver cleared this flag.
    """

    def __init__(
        self, lease_ms: int, on_change: Callable[[str], None] = lambda group: None
    ) -> None:
        self._on_change = on_change
        self.change(lease_ms)
        self.is_changed = False
        #: Clients that held a queue before this broker started and have sent nothing since: when
        #: their leases end.
        self._silent_until: dict[str, int] = {}
        self._groups: dict[str, dict[QueueId, Lease]] = {}
        #: Leases in all groups together.
        self._count = 0
        #: The leases of a client: (group, queue). Many clients may go at the same time.
        self._held: dict[str, set[tuple[str, QueueId]]] = {}

    def change(self, lease_ms: int) -> None:
        """Changes how long a lease lasts, also of those that there are."""
        self._lease_ms = lease_ms
        self._trust_ms = min(lease_ms, TRUST_MS)

    def lock(
        self, group: str, client_id: str, *, queues: Iterable[QueueId], now_ms: int
    ) -> list[QueueId]:
        """Leases to a client those queues that are free, expired, or its own already.

        Returns:
            The queues that the client holds now, in the order of `queues`.
        """
        leases = self._groups.get(group, {})
        held, is_other = [], False
        if self._silent_until.pop(client_id, None) is not None:
            self.is_changed = True
        for queue in queues:
            lease = leases.get(queue)
            if lease is None:
                if self._count >= LEASES_MAX:
                    continue
                self._count += 1
            elif lease.client_id != client_id and not self._has_ended(lease, now_ms):
                continue
            if lease is None or lease.client_id != client_id:
                is_other = True
                if lease is not None:
                    self._let_go(lease.client_id, group, queue)
                self._held.setdefault(client_id, set()).add((group, queue))
            leases[queue] = Lease(client_id, now_ms)
            held.append(queue)
        if leases:
            self._groups[group] = leases
        if is_other:
            self._changed(group)
        return held

    def unlock(self, group: str, client_id: str, queues: Iterable[QueueId]) -> None:
        """Releases queues. Leases of other clients are unchanged."""
        leases = self._groups.get(group, {})
        is_other = False
        for queue in queues:
            lease = leases.get(queue)
            if lease is not None and lease.client_id == client_id:
                del leases[queue]
                self._let_go(client_id, group, queue)
                self._count -= 1
                is_other = True
        if is_other:
            self._changed(group)

    def _changed(self, group: str) -> None:
        self.is_changed = True
        self._on_change(group)

    def part(self, client_id: str) -> None:
        """Marks a client's leases after its connection closed: it may be dead, or may not have
        noticed yet and still consume."""
        for group, queue in self._held.get(client_id, ()):
            leases = self._groups[group]
            leases[queue] = leases[queue]._replace(is_parted=True)

    def _let_go(self, client_id: str, group: str, queue: QueueId) -> None:
        held = self._held[client_id]
        held.discard((group, queue))
        if not held:
            del self._held[client_id]

    def is_ordered(self, group: str, now_ms: int) -> bool:
        """Whether a member of the group holds a lease, that is, consumes in order."""
        leases = self._groups.get(group, {})
        return any(not self._has_ended(lease, now_ms) for lease in leases.values())

    def expiring(self, now_ms: int) -> Iterator[None]:
        """Removes expired leases; pauses after each slice, when the leases may be changed."""
        left = _SLICE
        for group in list(self._groups):
            for queue in list(self._groups.get(group, ())):
                leases = self._groups.get(group, {})
                lease = leases.get(queue)
                if lease is not None and self._has_ended(lease, now_ms):
                    del leases[queue]
                    self._let_go(lease.client_id, group, queue)
                    self._count -= 1
                left -= 1
                if not left:
                    left = _SLICE
                    yield
            if group in self._groups and not self._groups[group]:
                del self._groups[group]
        silent = self._silent_until
        self._silent_until = {each: until for each, until in silent.items() if until > now_ms}

    def forget_group(self, group: str) -> None:
        """Removes a group's leases."""
        leases = self._groups.pop(group, {})
        for queue, lease in leases.items():
            self._let_go(lease.client_id, group, queue)
        self._count -= len(leases)
        if leases:
            self._changed(group)

    def groups(self) -> list[str]:
        """The groups with leases."""
        return list(self._groups)

    def held_in(self, group: str) -> dict[str, list[str]]:
        """A group's leases as in the file: queues by client id."""
        return _row(self._groups.get(group, {}))

    def clear(self) -> None:
        """Removes all leases, without a report: others take their place."""
        self._groups, self._held, self._silent_until = {}, {}, {}
        self._count = 0

    def validate(self) -> None:
        """Asserts the invariants that hold between two calls."""
        assert self._count == sum(len(leases) for leases in self._groups.values())
        assert self._count == sum(map(len, self._held.values()))
        assert all(
            self._groups[group][queue].client_id == client_id
            for client_id, held in self._held.items()
            for group, queue in held
        )

    def _has_ended(self, lease: Lease, now_ms: int) -> bool:
        longest = self._trust_ms if lease.is_parted else self._lease_ms
        return now_ms - lease.renewed_ms > longest

    # In a file.

    @property
    def has_silent(self) -> bool:
        """Whether a client of an earlier start is waited for, so that the file is to be renewed."""
        return bool(self._silent_until)

    def to_json(self, now_ms: int) -> dict[str, Any]:
        """The table as JSON for its file."""
        picture = {group: dict(leases) for group, leases in self._groups.items() if leases}
        left: dict[str, int] = {}
        if self._silent_until:  # only soon after the start
            known = {lease.client_id for leases in picture.values() for lease in leases.values()}
            left = {
                client: max(0, until - now_ms)
                for client, until in self._silent_until.items()
                if client in known
            }
        return {"lockTable": ConvertedRows(picture, _row), "unheardLeftMs": left}

    def load(self, state: Mapping[str, Any], now_ms: int) -> None:
        """Loads the table from the JSON of its file; all clients in it may be dead.

        Raises:
            ValueError: the JSON has another form.
        """
        table, unheard = state.get("lockTable") or {}, state.get("unheardLeftMs") or {}
        if not isinstance(table, dict) or not isinstance(unheard, dict):
            raise ValueError("lockTable or unheardLeftMs is no object")
        self.is_changed = bool(table)
        for group, clients in table.items():
            leases = self._groups.setdefault(str(group), {})
            for client_id, texts in clients.items():
                left_ms = min(int(unheard.get(client_id, self._trust_ms)), self._trust_ms)
                self._silent_until[str(client_id)] = now_ms + left_ms
                renewed_ms = now_ms - (self._trust_ms - left_ms)
                for text in texts:
                    number, broker, topic = text.split(_SEPARATOR, 2)
                    queue = QueueId(topic, broker, int(number))
                    leases[queue] = Lease(str(client_id), renewed_ms, is_parted=True)
        for group, leases in self._groups.items():
            for queue, lease in leases.items():
                self._held.setdefault(lease.client_id, set()).add((group, queue))
        self._count = sum(len(leases) for leases in self._groups.values())


def _row(leases: Mapping[QueueId, Lease]) -> dict[str, list[str]]:
    """A group's leases in the file: queues by client id."""
    clients: dict[str, list[str]] = {}
    for queue, lease in leases.items():
        if _SEPARATOR not in queue.broker:
            text = _SEPARATOR.join((str(queue.number), queue.broker, queue.topic))
            clients.setdefault(lease.client_id, []).append(text)
    return clients
