"""Which client subscribes which lite topics. Pure.

A client consumes for one group from one parent topic, and subscribes a set of lite topics by name;
in a group of kind wildcard, all of them. Groups are independent of each other. Two clients of a
group may subscribe the same lite topic: each of its messages goes to one of them.
Source: LiteSubscriptionRegistryImpl of RocketMQ 5.5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, TypeVar

from sprocket.message.lite import LiteName

K = TypeVar("K")


class LiteClient:
    """What one client subscribes.

    Attributes:
        lites: the names of its lite topics.
        has_all: whether it subscribes all lite topics of the parent topic.
        changed_ms: when it last said what it subscribes.
        last_attempt: the attempt id of its last pop, and the lite topics whose messages it got.
        asked_ms: when it last asked for messages; 0 if it never did.
    """

    __slots__ = (
        "asked_ms", "changed_ms", "client_id", "group", "has_all", "last_attempt", "lites",
        "parent",
    )  # fmt: skip

    def __init__(self, client_id: str, group: str, parent: str, now_ms: int) -> None:
        self.client_id = client_id
        self.group = group
        self.parent = parent
        self.lites: dict[str, None] = {}
        self.has_all = False
        self.changed_ms = now_ms
        self.last_attempt: tuple[str, tuple[LiteName, ...]] | None = None
        self.asked_ms = 0


class Excluded(NamedTuple):
    """A client that no longer subscribes a lite topic, since another one does alone."""

    client_id: str
    group: str
    name: LiteName


class LiteSubscriptions:
    """The subscriptions of all clients.

    Attributes:
        count: how many lite topics all clients subscribe, each client counted by itself.
    """

    def __init__(self) -> None:
        self._clients: dict[str, LiteClient] = {}
        #: By lite topic and group, its clients in the order in which they came.
        self._by_name: dict[LiteName, dict[str, dict[str, None]]] = {}
        #: The same of clients that subscribe all, by parent topic.
        self._of_all: dict[str, dict[str, dict[str, None]]] = {}
        self.count = 0

    def __len__(self) -> int:
        return len(self._clients)

    def find(self, client_id: str) -> LiteClient | None:
        """A client; None if it is unknown."""
        return self._clients.get(client_id)

    def client(self, client_id: str, group: str, parent: str, now_ms: int) -> LiteClient:
        """A client, which has said something just now; what it subscribed in another group, or of
        another parent topic, is forgotten."""
        client = self._clients.get(client_id)
        if client is not None and (client.group, client.parent) != (group, parent):
            self.remove_client(client_id)
            client = None
        if client is None:
            client = self._clients[client_id] = LiteClient(client_id, group, parent, now_ms)
        client.changed_ms = now_ms
        return client

    def new_of(self, client_id: str, group: str, parent: str, lites: Iterable[str]) -> list[str]:
        """Those of some lite topics that a client does not subscribe yet, each once."""
        client = self._clients.get(client_id)
        is_same = client is not None and (client.group, client.parent) == (group, parent)
        known: Collection[str] = client.lites if client is not None and is_same else ()
        return [lite for lite in dict.fromkeys(lites) if lite not in known]

    def add(self, client: LiteClient, lites: Iterable[str]) -> list[LiteName]:
        """Subscribes lite topics; returns those that are new."""
        new = []
        for lite in lites:
            if lite not in client.lites:
                client.lites[lite] = None
                name = LiteName(client.parent, lite)
                groups = self._by_name.setdefault(name, {})
                groups.setdefault(client.group, {})[client.client_id] = None
                new.append(name)
        self.count += len(new)
        return new

    def remove(self, client: LiteClient, lites: Iterable[str]) -> list[LiteName]:
        """Ends the subscription of lite topics; returns those that were subscribed."""
        gone = []
        for lite in lites:
            if lite in client.lites:
                del client.lites[lite]
                name = LiteName(client.parent, lite)
                _leave(self._by_name, name, client)
                gone.append(name)
        self.count -= len(gone)
        return gone

    def add_all(self, client: LiteClient) -> bool:
        """Subscribes all lite topics of the parent topic; returns whether that is new."""
        if client.has_all:
            return False
        self.remove(client, list(client.lites))
        client.has_all = True
        groups = self._of_all.setdefault(client.parent, {})
        groups.setdefault(client.group, {})[client.client_id] = None
        self.count += 1
        return True

    def exclude(self, client: LiteClient, name: LiteName) -> list[Excluded]:
        """Ends the subscriptions of all others of a client's group to a lite topic."""
        others = [each for each in self.subscribers(name, client.group) if each != client.client_id]
        for each in others:
            self.remove(self._clients[each], [name.lite])
        return [Excluded(each, client.group, name) for each in others]

    def remove_client(self, client_id: str) -> LiteClient | None:
        """Forgets a client; returns it as it was, None if it is unknown."""
        client = self._clients.get(client_id)
        if client is None:
            return None
        self.remove(client, list(client.lites))
        if client.has_all:
            _leave(self._of_all, client.parent, client)
            self.count -= 1
        del self._clients[client_id]
        return client

    def groups(self, name: LiteName) -> list[str]:
        """The groups of which a client subscribes a lite topic."""
        own = self._by_name.get(name, {})
        return list(dict.fromkeys((*own, *self._of_all.get(name.parent, {}))))

    def subscribers(self, name: LiteName, group: str) -> list[str]:
        """The clients of a group that subscribe a lite topic by name."""
        return list(self._by_name.get(name, {}).get(group, ()))

    def of_all(self, parent: str, group: str) -> list[str]:
        """The clients of a group that subscribe all lite topics of a parent topic."""
        return list(self._of_all.get(parent, {}).get(group, ()))

    def clients(self) -> list[LiteClient]:
        """All clients."""
        return list(self._clients.values())

    def clients_of(self, group: str) -> list[LiteClient]:
        """The clients of a group."""
        return [client for client in self._clients.values() if client.group == group]

    def silent_since(self, time_ms: int) -> Iterator[str]:
        """The clients that have said nothing since a time."""
        return (each for each, client in self._clients.items() if client.changed_ms < time_ms)

    def validate(self) -> None:
        """Asserts the invariants that hold between two calls."""
        by_name = {
            (name, group, client)
            for name, groups in self._by_name.items()
            for group, clients in groups.items()
            for client in clients
        }
        assert by_name == {
            (LiteName(client.parent, lite), client.group, client_id)
            for client_id, client in self._clients.items()
            for lite in client.lites
        }
        of_all = {
            (parent, group, client)
            for parent, groups in self._of_all.items()
            for group, clients in groups.items()
            for client in clients
        }
        assert of_all == {
            (client.parent, client.group, client_id)
            for client_id, client in self._clients.items()
            if client.has_all
        }
        assert self.count == len(by_name) + len(of_all)
        for groups in (*self._by_name.values(), *self._of_all.values()):
            assert groups
            assert all(groups.values())


def _leave(table: dict[K, dict[str, dict[str, None]]], key: K, client: LiteClient) -> None:
    groups = table[key]
    clients = groups[client.group]
    del clients[client.client_id]
    if not clients:
        del groups[client.group]
    if not groups:
        del table[key]
