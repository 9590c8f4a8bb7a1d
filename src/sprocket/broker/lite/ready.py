"""Which lite topics a client should read next, since they may have messages for it. Pure.

A message that arrives makes its lite topic ready for all clients of a group that subscribe it; the
one that pops first gets it, and the others find that it is given out, and forget it. So there is
nothing to hand over from a client that does not come back. While messages of a lite topic are given
out, the group gets no others of it: then it is ready again when they are acknowledged, or visible
again, at a time that is kept here. The clients of a group that subscribe all lite topics share
what is ready.
Source of what it replaces: LiteEventDispatcher of RocketMQ 5.5, which gives each event to one
client, and takes it back after ten seconds.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from sprocket.broker.lite.subscriptions import LiteClient, LiteSubscriptions
from sprocket.message.lite import LiteName

K = TypeVar("K")


class Blocked(NamedTuple):
    """A lite topic of which a group gets nothing for now."""

    group: str
    name: LiteName


class ReadyLites:
    """What is ready, and what will be."""

    def __init__(self, subscriptions: LiteSubscriptions) -> None:
        self._subscriptions = subscriptions
        self._of_client: dict[str, dict[LiteName, None]] = {}
        self._of_group: dict[tuple[str, str], dict[LiteName, None]] = {}
        self._due: list[tuple[int, Blocked]] = []
        #: When each blocked one is due; an entry of `_due` with another time is void.
        self._due_ms: dict[Blocked, int] = {}

    def mark(self, group: str, name: LiteName) -> list[str]:
        """Makes a lite topic ready for a group; returns the clients that may read it."""
        clients = self._subscriptions.subscribers(name, group)
        for each in clients:
            self._of_client.setdefault(each, {})[name] = None
        if others := self._subscriptions.of_all(name.parent, group):
            self._of_group.setdefault((name.parent, group), {})[name] = None
        return [*clients, *others]

    def mark_for(self, client: LiteClient, name: LiteName) -> None:
        """Makes a lite topic ready for one client that has just subscribed it."""
        self._of_client.setdefault(client.client_id, {})[name] = None

    def of(self, client: LiteClient) -> dict[LiteName, None]:
        """What is ready for a client, the oldest first; for reading only."""
        if client.has_all:
            return self._of_group.get((client.parent, client.group), {})
        return self._of_client.get(client.client_id, {})

    def unmark(self, client: LiteClient, name: LiteName) -> None:
        """Forgets that a lite topic is ready for a client: it was read."""
        if client.has_all:
            _drop(self._of_group, (client.parent, client.group), name)
        else:
            _drop(self._of_client, client.client_id, name)

    def forget_client(self, client: LiteClient) -> None:
        """Forgets what is ready for a client that is gone."""
        self._of_client.pop(client.client_id, None)
        if client.has_all and not self._subscriptions.of_all(client.parent, client.group):
            self._of_group.pop((client.parent, client.group), None)

    def block(self, group: str, name: LiteName, until_ms: int) -> bool:
        """Remembers when a lite topic is ready again at the latest; returns whether that is the
        next of all."""
        blocked = Blocked(group, name)
        if self._due_ms.get(blocked) != until_ms:
            self._due_ms[blocked] = until_ms
            heapq.heappush(self._due, (until_ms, blocked))
        return self.next_ms == until_ms

    def unblock(self, group: str, name: LiteName) -> None:
        """Forgets that time: it is known to be ready, or to have nothing."""
        self._due_ms.pop(Blocked(group, name), None)

    @property
    def next_ms(self) -> int | None:
        """When the next one is due; None if none is."""
        due, times = self._due, self._due_ms
        while due and times.get(due[0][1]) != due[0][0]:
            heapq.heappop(due)
        return due[0][0] if due else None

    def due(self, now_ms: int) -> Iterator[Blocked]:
        """Those whose time has come; each is given once."""
        while (next_ms := self.next_ms) is not None and next_ms <= now_ms:
            _, blocked = heapq.heappop(self._due)
            del self._due_ms[blocked]
            yield blocked

    def __len__(self) -> int:
        return len(self._of_client) + len(self._of_group)

    def validate(self) -> None:
        """Asserts the invariants that hold between two calls."""
        for client_id, names in self._of_client.items():
            assert names
            client = self._subscriptions.find(client_id)
            assert client is not None
        assert all(self._of_group.values())
        for blocked, until_ms in self._due_ms.items():
            assert (until_ms, blocked) in self._due


def _drop(table: dict[K, dict[LiteName, None]], key: K, name: LiteName) -> None:
    names = table.get(key, {})
    names.pop(name, None)
    if not names:
        table.pop(key, None)
