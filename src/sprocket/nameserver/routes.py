"""The table of registered brokers and of their topics' queues. Pure.

Requests are values, `now_ms` is a monotonic clock's milliseconds, and a connection is any hashable
object. Every result is sorted, so that all name servers list queues in the same order and all
clients number them alike.

A broker is a name with one or several processes (*instances*): number 0 is the master, the others
are its slaves. An instance is removed when it unregisters, when the connection of its last
registration closes, or when it is silent for too long. The topics of a broker are removed with its
last instance.

A number may move from one address to another, as when a slave becomes the master. Of two that claim
one number, the one with the higher state version has it, which in a group is the epoch of its
master; so a former master that wakes up takes nothing from its successor.

Source: RouteInfoManager of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from sprocket.base.errors import SystemFailure
from sprocket.message.topic import WRITE
from sprocket.nameserver.instances import (
    BrokerInfo,
    BrokerInstances,
    BrokerQueues,
    Instance,
    RouteEntry,
    SmallestChange,
    Version,
)
from sprocket.nameserver.static_topics import StaticTopics
from sprocket.protocol.codes import MASTER

#: Bounds of the expiry time that an instance may ask for, ms.
EXPIRY_MS_LEAST = 100
EXPIRY_MS_MOST = 86_400_000


class Superseded(SystemFailure):
    """Another process has this number in a newer epoch; the registration changes nothing."""


class RouteTable:
    """The table of one name server.

    Args:
        on_smallest: is called when another process of a broker has the smallest number.
    """

    def __init__(
        self,
        *,
        expiry_ms: int = 120_000,
        topics_max: int = 200_000,
        brokers_max: int = 10_000,
        static_entries_max: int = 1_000_000,
        absent_are_deleted: bool = False,
        on_smallest: Callable[[SmallestChange], None] | None = None,
    ) -> None:
        self._on_smallest = on_smallest
        self._expiry_ms = expiry_ms
        self._topics_max = topics_max
        self._brokers_max = brokers_max
        self._absent_are_deleted = absent_are_deleted
        self._brokers: dict[str, BrokerInstances] = {}
        #: Topic to broker name to queues. Every topic has a broker, every broker is registered.
        self._topics: dict[str, dict[str, BrokerQueues]] = {}
        #: The topics of each broker, so that one that comes or goes costs only its own topics.
        self._topics_of: dict[str, set[str]] = {}
        self._static = StaticTopics(static_entries_max)
        #: Broker names and numbers by the connection of their last registration: most connections
        #: that close are those of clients.
        self._registered: dict[Hashable, set[tuple[str, int]]] = {}

    def change(
        self, *, expiry_ms: int, topics_max: int, brokers_max: int, absent_are_deleted: bool
    ) -> None:
        """Applies other settings from the next registration or scan on."""
        self._expiry_ms = expiry_ms
        self._topics_max = topics_max
        self._brokers_max = brokers_max
        self._absent_are_deleted = absent_are_deleted

    def register(self, registration: BrokerInfo, connection: Hashable, now_ms: int) -> Instance:
        """Adds a broker process, or renews it.

        Returns:
            The master of its broker if there is one, else itself.

        Raises:
            SystemFailure: the table has its largest number of brokers, topics, or queues of static
                topics.
            Superseded: another process has this number in a newer epoch.
        """
        # All checks come first, so that a refused registration changes nothing.
        self._check_capacity(registration)
        known = self._instance_at(registration.broker, registration.number)
        if known is not None and known.address != registration.address:
            if known.version.state > registration.version.state:
                raise Superseded(f"{known.address} is {registration.broker} {known.number} since")
            known = None
        broker = self._brokers.get(registration.broker)
        if broker is None:
            broker = BrokerInstances(registration.broker, registration.cluster, False, None)
            self._brokers[broker.name] = broker
        broker.acting_master = bool(registration.acting_master)
        broker.zone = registration.zone
        smallest = broker.smallest if broker.instances else MASTER
        self._drop_former_numbers(broker, registration)
        if (replaced := broker.instances.get(registration.number)) is not None:
            self._unlink(replaced)
        broker.instances[registration.number] = self._instance(registration, connection, now_ms)
        self._registered.setdefault(connection, set()).add((broker.name, registration.number))
        if registration.number == MASTER:
            self._take_topics(registration, known.version if known else None)
        elif registration.number == broker.smallest and registration.acting_master is not None:
            self._add_topics(registration)
        if registration.number < smallest:
            others = [a for n, a in broker.addresses.items() if n != registration.number]
            self._tell_smallest(broker, others, ha_address=registration.ha_address)
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

    def _tell_smallest(
        self,
        broker: BrokerInstances,
        told: Iterable[str],
        *,
        ha_address: str | None = None,
        gone: str | None = None,
    ) -> None:
        if self._on_smallest is not None:
            now = broker.instances[broker.smallest]
            told = tuple(told) or (now.address,)
            self._on_smallest(
                SmallestChange(broker.name, now.number, now.address, ha_address, gone, told)
            )

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
        brokers = [self._brokers[name] for name in ordered]
        return RouteEntry(ordered, brokers, self._static.of(topic))

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

    @property
    def topic_count(self) -> int:
        """How many topics have a route."""
        return len(self._topics)

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
                self._static.forget(topic, name)

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
        self._static.check(registration.broker, registration.mappings, self._brokers.keys())

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
                self._static.forget(topic, name)
        mine = self._topics_of.setdefault(name, set()) if registration.topics else set()
        mine.update(registration.topics)
        for topic, queues in registration.topics.items():
            held = self._topics.setdefault(topic, {})
            if known != registration.version or name not in held:
                held[name] = queues
        if known != registration.version:
            self._static.register(name, registration.topics, registration.mappings)

    def _add_topics(self, registration: BrokerInfo) -> None:
        """Adds topics from the slave that stands for the master: its list is a copy, and may be
        older than what is known."""
        name = registration.broker
        for topic, queues in registration.topics.items():
            if name not in (held := self._topics.setdefault(topic, {})):
                allowed = ~WRITE if registration.acting_master else ~0
                held[name] = queues._replace(permission=queues.permission & allowed)
                self._topics_of.setdefault(name, set()).add(topic)
        self._static.add(name, registration.topics, registration.mappings)

    def _remove(self, instances: Iterable[Instance]) -> list[Instance]:
        removed = list(instances)
        for instance in removed:
            broker = self._brokers[instance.broker]
            was_smallest = instance.number == broker.smallest
            del broker.instances[instance.number]
            self._unlink(instance)
            if broker.instances and was_smallest and broker.acting_master:
                self.set_permission(broker.name, lambda permission: permission & ~WRITE)
                self._tell_smallest(broker, broker.addresses.values(), gone=instance.address)
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
            self._static.forget(topic)
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
        assert self._topics.keys() >= set(self._static.topics())
        self._static.validate()
