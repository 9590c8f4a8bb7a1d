"""The connected clients: producers and consumer groups, their members and subscriptions. Pure.

A member is a connection in a group. A client that connects twice is two members, and two clients
that use the same id are two members as well. A group has one subscription for each topic: the
newest that any member sent. Methods return what they changed, so that the caller can notify the
members and log it.
Source: ConsumerManager, ConsumerGroupInfo, ProducerManager of RocketMQ 5.x.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from sprocket.base.errors import SystemBusy
from sprocket.broker.tables.wishes import MemberWish, discord
from sprocket.protocol.bodies import SubscriptionData

BROADCASTING = "BROADCASTING"
CLUSTERING = "CLUSTERING"
PASSIVELY = "CONSUME_PASSIVELY"


@dataclass(slots=True)
class ClientInfo:
    """A member, as its last heartbeat described it.

    Attributes:
        connection: the key that identifies the member.
        address: `ip:port` of its side of the connection.
        seen_ms: when its last heartbeat arrived, ms since 1970 UTC.
        heard_ms: the same moment on a clock that never jumps, ms.
    """

    connection: Hashable
    client_id: str
    address: str
    language: str
    version: int
    seen_ms: int
    heard_ms: int = 0


class GroupMode(NamedTuple):
    """How a group consumes, as a member's heartbeat reports it."""

    consume_type: str
    message_model: str
    consume_from: str


@dataclass(slots=True)
class ConsumerGroup:
    """A group that has members."""

    name: str
    consume_type: str = PASSIVELY
    message_model: str = CLUSTERING
    consume_from: str = "CONSUME_FROM_LAST_OFFSET"
    fingerprint: int = 0
    members: dict[Hashable, ClientInfo] = field(default_factory=dict)
    #: By member, how it consumes and what it subscribes; and by that, the members that want it.
    wishes: dict[Hashable, MemberWish] = field(default_factory=dict)
    wishers: dict[MemberWish, dict[Hashable, None]] = field(default_factory=dict)
    #: By member, when it joined, ms.
    joined_ms: dict[Hashable, int] = field(default_factory=dict)
    #: How the members disagree; empty if they do not.
    discord: str = ""
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    #: How many members have each client id, so that one that joins is compared with no other.
    ids: Counter[str] = field(default_factory=Counter)

    @property
    def is_broadcasting(self) -> bool:
        """Whether every member gets every message."""
        return self.message_model == BROADCASTING

    def wish(self, connection: Hashable, wish: MemberWish | None) -> None:
        """Notes what a member wants; None once it has left."""
        before = self.wishes.get(connection)
        if before == wish:
            return
        if before is not None:
            del self.wishes[connection]
            del self.wishers[before][connection]
            if not self.wishers[before]:
                del self.wishers[before]
        if wish is not None:
            self.wishes[connection] = wish
            self.wishers.setdefault(wish, {})[connection] = None
        self.discord = ""
        if len(self.wishers) > 1:  # any two show it: groups may have thousands of members
            two = list(islice(self.wishers.items(), 2))
            self.discord = discord(
                self.name, {each: self.members[next(iter(who))].client_id for each, who in two}
            )

    def twin_of(self, client: ClientInfo) -> ClientInfo | None:
        """Another member with the same client id that is alive as well: it sent a heartbeat after
        the later one of the two had joined. A connection that was replaced sends none."""
        if self.ids[client.client_id] < 2:
            return None
        for other in self.members.values():
            if other.client_id == client.client_id and other.connection != client.connection:
                later = max(self.joined_ms[each.connection] for each in (client, other))
                if min(other.heard_ms, client.heard_ms) > later:
                    return other
        return None

    def client_ids(self) -> list[str]:
        """Ids of the members, each once, in the order in which they joined.

        A client may be a member twice, by a dead connection and by a new one. If its id were listed
        twice, assignment would give it two shares of the queues, and it would consume only one.
        """
        return list(dict.fromkeys(client.client_id for client in self.members.values()))

    def find(self, client_id: str) -> ClientInfo | None:
        """The member with an id; the first one if several use the same id."""
        if client_id not in self.ids:
            return None
        return next((c for c in self.members.values() if c.client_id == client_id), None)

    def put(self, client: ClientInfo) -> None:
        """Adds a member, or replaces what its last heartbeat said."""
        before = self.members.get(client.connection)
        if before is not None:
            self._drop_id(before.client_id)
        self.members[client.connection] = client
        self.ids[client.client_id] += 1

    def remove(self, connection: Hashable) -> bool:
        """Removes a member; returns whether there was one."""
        client = self.members.pop(connection, None)
        if client is None:
            return False
        self._drop_id(client.client_id)
        return True

    def _drop_id(self, client_id: str) -> None:
        self.ids[client_id] -= 1
        if not self.ids[client_id]:
            del self.ids[client_id]


class HeartbeatChange(NamedTuple):
    """What a consumer's heartbeat changed.

    Attributes:
        is_new: whether a member joined.
        has_changed: whether a member joined, or the group's topics changed.
        is_unknown: whether the heartbeat omits its subscriptions and the broker has none.
        clashing: another member that has the client id of the one that joined, if there is one.
        replaced: (old, new) subscriptions whose expressions differ.
        outdated: (sent, kept) subscriptions, where a new member sent an older, different one.
    """

    is_new: bool = False
    has_changed: bool = False
    is_unknown: bool = False
    clashing: ClientInfo | None = None
    replaced: tuple[tuple[SubscriptionData, SubscriptionData], ...] = ()
    outdated: tuple[tuple[SubscriptionData, SubscriptionData], ...] = ()


class ClientTable:
    """All members of all groups of a broker."""

    def __init__(self, *, members_max: int) -> None:
        self._members_max = members_max
        self._members = 0
        self._consumers: dict[str, ConsumerGroup] = {}
        self._producers: dict[str, dict[Hashable, ClientInfo]] = {}
        #: By client id, the producer that sent the last heartbeat.
        self._producers_by_id: dict[str, ClientInfo] = {}
        #: Groups by connection, so that a closed connection is removed without a search.
        self._consuming: dict[Hashable, dict[str, None]] = {}
        self._producing: dict[Hashable, dict[str, None]] = {}

    def consumer_heartbeat(
        self,
        group_name: str,
        client: ClientInfo,
        *,
        mode: GroupMode,
        subscriptions: Iterable[SubscriptionData] | None,
        fingerprint: int = 0,
    ) -> HeartbeatChange:
        """Records a consumer's heartbeat for one of its groups.

        Args:
            subscriptions: all of the member's, or None if the heartbeat omits them as unchanged.

        Raises:
            SystemBusy: there are too many members.
        """
        group = self._consumers.get(group_name)
        if group is None:
            self._check_capacity()
            group = self._consumers[group_name] = ConsumerGroup(group_name)
        is_new = client.connection not in group.members
        clashing = group.find(client.client_id) if is_new else None
        if is_new:
            self._check_capacity()
            self._members += 1
            self._consuming.setdefault(client.connection, {})[group_name] = None
            group.joined_ms[client.connection] = client.heard_ms
        group.put(client)
        group.consume_type, group.message_model, group.consume_from = mode
        group.fingerprint = fingerprint
        if subscriptions is None:
            is_unknown = not group.subscriptions
            return HeartbeatChange(is_new, is_new, is_unknown, clashing)
        topics_before = group.subscriptions.keys()
        sent = list(subscriptions)
        group.wish(client.connection, MemberWish.of(mode.consume_type, mode.message_model, sent))
        merged, replaced = _merge(group.subscriptions, sent)
        kept = [(each, merged[each.topic]) for each in sent] if is_new else []
        outdated = tuple(pair for pair in kept if pair[0].sub_string != pair[1].sub_string)
        has_changed = is_new or merged.keys() != topics_before
        group.subscriptions = merged
        return HeartbeatChange(is_new, has_changed, False, clashing, replaced, outdated)

    def producer_heartbeat(self, group_name: str, client: ClientInfo) -> None:
        """Records a producer's heartbeat for one of its groups.

        Raises:
            SystemBusy: there are too many members.
        """
        members = self._producers.get(group_name)
        if members is None or client.connection not in members:
            self._check_capacity()
            self._members += 1
            members = self._producers.setdefault(group_name, {})
            self._producing.setdefault(client.connection, {})[group_name] = None
        before = members.get(client.connection)
        if before is not None and before.client_id != client.client_id:
            self._producers_by_id.pop(before.client_id, None)
        members[client.connection] = client
        self._producers_by_id[client.client_id] = client

    def limit(self, members_max: int) -> None:
        """Changes how many members there may be."""
        self._members_max = members_max

    def _check_capacity(self) -> None:
        if self._members >= self._members_max:
            raise SystemBusy(f"the broker knows {self._members} producers and consumers, its limit")

    def consumer_left(self, group_name: str, connection: Hashable) -> ConsumerGroup | None:
        """Removes a member from a consumer group; the group is removed with its last member.

        Returns:
            The group that lost a member, or None if the connection was no member.
        """
        group = self._consumers.get(group_name)
        if group is None or not group.remove(connection):
            return None
        self._members -= 1
        _drop(self._consuming, connection, group_name)
        group.joined_ms.pop(connection, None)
        group.wish(connection, None)
        if not group.members:
            del self._consumers[group_name]
        return group

    def producer_left(self, group_name: str, connection: Hashable) -> None:
        """Removes a member from a producer group."""
        members = self._producers.get(group_name, {})
        client = members.pop(connection, None)
        if client is None:
            return
        self._members -= 1
        _drop(self._producing, connection, group_name)
        last = self._producers_by_id.get(client.client_id)
        is_last = last is not None and last.connection == connection
        if is_last and connection not in self._producing:
            del self._producers_by_id[client.client_id]
        if not members:
            del self._producers[group_name]

    def closed(self, connection: Hashable, most: int | None = None) -> list[ConsumerGroup]:
        """Removes a connection from its groups: all of them, or `most` of each kind.

        Returns:
            The consumer groups that lost a member.
        """
        for name in list(islice(self._producing.get(connection, ()), most)):
            self.producer_left(name, connection)
        consuming = list(islice(self._consuming.get(connection, ()), most))
        lost = [self.consumer_left(name, connection) for name in consuming]
        return [group for group in lost if group is not None]

    def is_in_groups(self, connection: Hashable) -> bool:
        """Whether a connection is a member of any group."""
        return connection in self._consuming or connection in self._producing

    def silent(self, before_ms: int) -> list[ClientInfo]:
        """Members whose last heartbeat arrived before a moment of the clock that never jumps."""
        everyone = [g.members for g in self._consumers.values()] + list(self._producers.values())
        return [c for members in everyone for c in members.values() if c.heard_ms < before_ms]

    def knows(self, client: ClientInfo) -> bool:
        """Whether this is still what some group knows of its connection: each heartbeat makes a
        new one."""
        connection = client.connection
        groups = [self._consumers[name].members for name in self._consuming.get(connection, ())]
        groups += [self._producers[name] for name in self._producing.get(connection, ())]
        return any(members[connection] is client for members in groups)

    def group(self, name: str) -> ConsumerGroup | None:
        """A consumer group that has members, or None."""
        return self._consumers.get(name)

    def groups(self) -> list[ConsumerGroup]:
        """All consumer groups that have members."""
        return list(self._consumers.values())

    def is_member(self, group_name: str, connection: Hashable) -> bool:
        """Whether a connection is a member of a consumer group, by its heartbeats."""
        group = self._consumers.get(group_name)
        return group is not None and connection in group.members

    def id_of(self, connection: Hashable) -> str:
        """The client id of a connection, by its heartbeats; empty if it is in no group."""
        for name in self._consuming.get(connection, ()):
            return self._consumers[name].members[connection].client_id
        for name in self._producing.get(connection, ()):
            return self._producers[name][connection].client_id
        return ""

    def producers(self, group_name: str) -> list[ClientInfo]:
        """Members of a producer group."""
        return list(self._producers.get(group_name, {}).values())

    def producer_of(self, client_id: str) -> ClientInfo | None:
        """The producer with that client id, if it is connected."""
        return self._producers_by_id.get(client_id)

    def producer_groups(self) -> dict[str, list[ClientInfo]]:
        """All producer groups with their members."""
        return {name: list(members.values()) for name, members in self._producers.items()}

    def groups_of(self, topic: str) -> list[str]:
        """Consumer groups that subscribe to a topic, sorted."""
        return sorted(g.name for g in self._consumers.values() if topic in g.subscriptions)

    def validate(self) -> None:
        """Asserts the invariants that hold between two calls."""
        assert all(group.members for group in self._consumers.values())
        assert all(
            group.ids == Counter(client.client_id for client in group.members.values())
            for group in self._consumers.values()
        )
        assert all(self._producers.values())
        consuming = sum(len(group.members) for group in self._consumers.values())
        producing = sum(len(members) for members in self._producers.values())
        assert self._members == consuming + producing
        assert consuming == sum(len(names) for names in self._consuming.values())
        assert producing == sum(len(names) for names in self._producing.values())
        named = self._producers_by_id.items()
        assert all(one.client_id == name for name, one in named)
        assert all(one.connection in self._producing for _, one in named)


def _merge(
    known: dict[str, SubscriptionData], sent: Iterable[SubscriptionData]
) -> tuple[dict[str, SubscriptionData], tuple[tuple[SubscriptionData, SubscriptionData], ...]]:
    """The group's subscriptions after a heartbeat: the topics of the heartbeat, each with the
    newest subscription; and the (old, new) pairs whose expressions differ."""
    merged: dict[str, SubscriptionData] = {}
    replaced = []
    for new in sent:
        old = known.get(new.topic)
        if old is not None and new.sub_version <= old.sub_version:
            merged[new.topic] = old
            continue
        merged[new.topic] = new
        if old is not None and old.sub_string != new.sub_string:
            replaced.append((old, new))
    return merged, tuple(replaced)


def _drop(index: dict[Hashable, dict[str, None]], connection: Hashable, name: str) -> None:
    names = index[connection]
    names.pop(name, None)
    if not names:
        del index[connection]
