"""The table of registered brokers and of their topics' queues. Pure.

Requests are values, `now_ms` is a monotonic clock's milliseconds, and a connection is any hashable
object. Every result is sorted, so that all name servers list queues in the same order and all
clients number them alike.

A broker is a name with one or several processes (*instances*): number 0 is the master, the others
are its slaves. An instance is removed when it unregisters, when the connection of its last
registration closes, or when it is silent for too long. The topics of a broker are removed with its
last instance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sprocket.base.errors import SystemFailure
from sprocket.protocol.codes import MASTER

#: Bounds of the expiry time that an instance may ask for, ms.
EXPIRY_MS_LEAST = 100
EXPIRY_MS_MOST = 86_400_000


class Version(NamedTuple):
    """The version of a broker's topics; it differs once they have changed. Source: DataVersion."""

    state: int = 0
    timestamp: int = 0
    counter: int = 0


#: The version of a broker that sends none.
NO_VERSION = Version()


class BrokerQueues(NamedTuple):
    """A topic's queues on one broker."""

    reads: int
    writes: int
    permission: int
    sys_flag: int = 0


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker process's description of itself.

    Attributes:
        cluster, broker: names.
        number: 0 for the master, else a slave's number.
        address, ha_address: its addresses for clients and for slaves.
        topics: all its topics, or only those that changed.
        version: of its topics.
        expiry_ms: after how much silence it expires, or None for the name server's default.
        acting_master: whether a slave may act as the master.
        zone: the name of its zone, or None.
        filter_servers: the addresses of its filter servers.
    """

    cluster: str
    broker: str
    number: int
    address: str
    ha_address: str = ""
    topics: Mapping[str, BrokerQueues] = field(default_factory=dict)
    version: Version = NO_VERSION
    expiry_ms: int | None = None
    acting_master: bool = False
    zone: str | None = None
    filter_servers: tuple[str, ...] = ()


@dataclass(slots=True)
class Instance:
    """One registered broker process."""

    broker: str
    number: int
    address: str
    ha_address: str
    version: Version
    expiry_ms: int
    last_ms: int
    connection: Hashable
    filter_servers: tuple[str, ...] = ()


@dataclass(slots=True)
class BrokerInstances:
    """A broker's instances by number; there is at least one."""

    name: str
    cluster: str
    acting_master: bool
    zone: str | None
    instances: dict[int, Instance] = field(default_factory=dict)

    @property
    def addresses(self) -> dict[int, str]:
        """The addresses of its instances by number, the master first."""
        return {number: self.instances[number].address for number in sorted(self.instances)}

    @property
    def filter_servers(self) -> dict[str, list[str]]:
        """The addresses of filter servers, by the address of their instance."""
        return {
            instance.address: list(instance.filter_servers)
            for _, instance in sorted(self.instances.items())
            if instance.filter_servers
        }


class RouteEntry(NamedTuple):
    """A topic's queues by broker name, and those brokers; both sorted by name."""

    queues: dict[str, BrokerQueues]
    brokers: list[BrokerInstances]


class RouteTable:
    """The table of one name server."""

    def __init__(
        self,
        *,
        expiry_ms: int = 120_000,
        topics_max: int = 200_000,
        brokers_max: int = 10_000,
        absent_are_deleted: bool = False,
    ) -> None:
        self._expiry_ms = expiry_ms
        self._topics_max = topics_max
        self._brokers_max = brokers_max
        self._absent_are_deleted = absent_are_deleted
        self._brokers: dict[str, BrokerInstances] = {}
        #: Topic to broker name to queues. Every topic has a broker, every broker is registered.
        self._topics: dict[str, dict[str, BrokerQueues]] = {}
        #: The topics of each broker, so that one that comes or goes costs only its own topics.
        self._topics_of: dict[str, set[str]] = {}
        #: Broker names and numbers by the connection of their last registration: most connections
        #: that close are those of clients.
        self._registered: dict[Hashable, set[tuple[str, int]]] = {}

    def register(self, registration: BrokerInfo, connection: Hashable, now_ms: int) -> Instance:
        """Adds a broker process, or renews it.

        Returns:
            The master of its broker if there is one, else itself.

        Raises:
            SystemFailure: the table has its largest number of brokers or topics.
        """
        # All checks come first, so that a refused registration changes nothing. Only a master's
        # topics count: a slave's list is a copy, and may be older.
        self._check_capacity(registration)
        broker = self._brokers.get(registration.broker)
        if broker is None:
            broker = BrokerInstances(registration.broker, registration.cluster, False, None)
            self._brokers[broker.name] = broker
        broker.acting_master = registration.acting_master
        broker.zone = registration.zone
        self._drop_former_numbers(broker, registration)
        known = broker.instances.get(registration.number)
        if known is not None:
            self._unlink(known)
        broker.instances[registration.number] = self._instance(registration, connection, now_ms)
        self._registered.setdefault(connection, set()).add((broker.name, registration.number))
        if registration.number == MASTER:
            self._take_topics(registration, known.version if known else None)
        return broker.instances.get(MASTER, broker.instances[registration.number])

    def unregister(
        self, broker: str, number: int, address: str, *, connection: Hashable | None = None
    ) -> bool:
        """Removes an instance.

        Args:
            connection: over which that is asked; None for any. A process that ends may be heard
                after the next one at its address has registered.

        Returns:
            Whether it was registered with that number and that address, and last over that
            connection; any other request changes nothing.
        """
        instance = self._instance_at(broker, number)
        if instance is None or instance.address != address:
            return False
        if connection not in (None, instance.connection):
            return False
        self._remove([instance])
        return True

    def closed(self, connection: Hashable) -> list[Instance]:
        """Removes the instances whose last registration came over a closed connection."""
        known = sorted(self._registered.get(connection, ()))
        return self._remove(self._brokers[name].instances[number] for name, number in known)

    def expire(self, now_ms: int) -> list[Instance]:
        """Removes the instances that have been silent for too long."""
        return self._remove(i for i in self.instances() if i.last_ms + i.expiry_ms < now_ms)

    def heartbeat(
        self, broker: str, number: int | None, address: str, now_ms: int
    ) -> Instance | None:
        """Renews an instance's time of expiry.

        Returns:
            The instance with that address (and number, if one is given), or None.
        """
        instances = self._brokers[broker].instances.values() if broker in self._brokers else ()
        for instance in instances:
            if instance.address == address and number in (None, instance.number):
                instance.last_ms = now_ms
                return instance
        return None

    def route_of(self, topic: str) -> RouteEntry | None:
        """The route of a topic, or None if no broker has it."""
        queues = self._topics.get(topic)
        if not queues:
            return None
        ordered = dict(sorted(queues.items()))
        return RouteEntry(ordered, [self._brokers[name] for name in ordered])

    def brokers(self) -> list[BrokerInstances]:
        """All brokers, sorted by name."""
        return [self._brokers[name] for name in sorted(self._brokers)]

    def clusters(self) -> dict[str, list[str]]:
        """Names of brokers by cluster, all sorted."""
        clusters: dict[str, list[str]] = {}
        for broker in sorted(self.brokers(), key=lambda broker: broker.cluster):
            clusters.setdefault(broker.cluster, []).append(broker.name)
        return clusters

    def broker(self, name: str) -> BrokerInstances | None:
        """A broker by name."""
        return self._brokers.get(name)

    def instances(self) -> list[Instance]:
        """All instances, sorted by broker and number."""
        return [b.instances[number] for b in self.brokers() for number in sorted(b.instances)]

    def topics(self, wanted: Callable[[dict[str, BrokerQueues]], bool] | None = None) -> list[str]:
        """Names of topics, sorted; if `wanted` is given, those for whose queues it returns true."""
        return sorted(t for t, queues in self._topics.items() if not wanted or wanted(queues))

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Names of the topics that a broker of a cluster has, sorted."""
        names = set(self.clusters().get(cluster, ()))
        return self.topics(lambda queues: not names.isdisjoint(queues))

    def topics_of_units(self, *, is_unit: bool | None, is_subscribed: bool | None) -> list[str]:
        """Names of topics by two bits of their flag; None matches both. Source: TopicSysFlag."""

        def wanted(queues: dict[str, BrokerQueues]) -> bool:
            flag = queues[min(queues)].sys_flag
            return is_unit in (None, bool(flag & 1)) and is_subscribed in (None, bool(flag & 2))

        return self.topics(wanted)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Removes a topic from all brokers, or from those of one cluster."""
        queues = self._topics.get(topic, {})
        for name in list(queues):
            if cluster is None or self._brokers[name].cluster == cluster:
                self._forget(topic, name)

    def set_permission(self, broker: str, change: Callable[[int], int]) -> int:
        """Changes the permission of all topics of a broker, until the broker itself changes it.

        Returns:
            The number of its topics.
        """
        topics = self._topics_of.get(broker, ())
        for topic in topics:
            old = self._topics[topic][broker]
            self._topics[topic][broker] = old._replace(permission=change(old.permission))
        return len(topics)

    def _check_capacity(self, registration: BrokerInfo) -> None:
        is_new = self._instance_at(registration.broker, registration.number) is None
        held = sum(len(broker.instances) for broker in self._brokers.values())
        if is_new and held >= self._brokers_max:
            raise SystemFailure(f"{held} broker processes are registered, no more are taken")
        self._check_topics(registration.topics)

    def _check_topics(self, topics: Iterable[str]) -> None:
        more = sum(1 for topic in topics if topic not in self._topics)
        if len(self._topics) + more > self._topics_max:
            raise SystemFailure(f"no more than {self._topics_max} topics are taken")

    def _instance_at(self, broker: str, number: int) -> Instance | None:
        return self._brokers[broker].instances.get(number) if broker in self._brokers else None

    def _instance(self, registration: BrokerInfo, connection: Hashable, now_ms: int) -> Instance:
        expiry_ms = self._expiry_ms
        if registration.expiry_ms is not None:
            expiry_ms = min(max(registration.expiry_ms, EXPIRY_MS_LEAST), EXPIRY_MS_MOST)
        return Instance(
            broker=registration.broker,
            number=registration.number,
            address=registration.address,
            ha_address=registration.ha_address,
            version=registration.version,
            expiry_ms=expiry_ms,
            last_ms=now_ms,
            connection=connection,
            filter_servers=registration.filter_servers,
        )

    def _drop_former_numbers(self, broker: BrokerInstances, registration: BrokerInfo) -> None:
        """Removes other numbers with the same address: a slave that became master has a new one."""
        for number, instance in list(broker.instances.items()):
            if instance.address == registration.address and number != registration.number:
                del broker.instances[number]
                self._unlink(instance)

    def _unlink(self, instance: Instance) -> None:
        """Forgets over which connection an instance registered last."""
        known = self._registered[instance.connection]
        known.remove((instance.broker, instance.number))
        if not known:
            del self._registered[instance.connection]

    def _take_topics(self, registration: BrokerInfo, known: Version | None) -> None:
        """Adds a master's topics, and removes those that it no longer has if its list is whole."""
        # With a known version only missing topics are added: an operator may have changed
        # permissions since. A master that comes (back) with several topics lists all it has, so
        # others are removed: its slaves may have kept lost topics alive here. A single topic may be
        # a mere change, sent to a name server that had lost the broker.
        name = registration.broker
        is_whole = known is None and len(registration.topics) > 1
        if is_whole or self._absent_are_deleted:
            for topic in self._topics_of.get(name, set()) - registration.topics.keys():
                self._forget(topic, name)
        mine = self._topics_of.setdefault(name, set()) if registration.topics else set()
        mine.update(registration.topics)
        for topic, queues in registration.topics.items():
            held = self._topics.setdefault(topic, {})
            if known != registration.version or name not in held:
                held[name] = queues

    def _remove(self, instances: Iterable[Instance]) -> list[Instance]:
        removed = list(instances)
        for instance in removed:
            broker = self._brokers[instance.broker]
            del broker.instances[instance.number]
            self._unlink(instance)
            if not broker.instances:
                del self._brokers[broker.name]
                for topic in list(self._topics_of.get(broker.name, ())):
                    self._forget(topic, broker.name)
        return removed

    def _forget(self, topic: str, broker: str) -> None:
        queues = self._topics[topic]
        del queues[broker]
        if not queues:
            del self._topics[topic]
        mine = self._topics_of[broker]
        mine.remove(topic)
        if not mine:
            del self._topics_of[broker]

    def validate(self) -> None:
        """Asserts the invariants."""
        for name, broker in self._brokers.items():
            assert broker.name == name
            assert broker.instances
            assert len(set(broker.addresses.values())) == len(broker.instances)
            for number, instance in broker.instances.items():
                assert (instance.broker, instance.number) == (name, number)
        for topic, queues in self._topics.items():
            assert queues, topic
            assert queues.keys() <= self._brokers.keys(), topic
        pairs = {(topic, broker) for topic, queues in self._topics.items() for broker in queues}
        assert pairs == {
            (topic, name) for name, known in self._topics_of.items() for topic in known
        }
        assert all(self._topics_of.values())
        registered = sorted((i.broker, i.number) for i in self.instances())
        assert registered == sorted(each for known in self._registered.values() for each in known)
        assert all(
            self._brokers[name].instances[number].connection == connection
            for connection, known in self._registered.items()
            for name, number in known
        )
        assert len(self._topics) <= self._topics_max
