"""What a name server knows of brokers: their processes, and the queues of their topics. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sprocket.protocol.bodies import MappingInfo


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
        mappings: of those of its topics that are static.
        version: of its topics.
        expiry_ms: after how much silence it expires, or None for the name server's default.
        acting_master: whether a slave may act as the master; None: it is of a release that does not
            know of that.
        zone: the name of its zone, or None.
        filter_servers: the addresses of its filter servers.
    """

    cluster: str
    broker: str
    number: int
    address: str
    ha_address: str = ""
    topics: Mapping[str, BrokerQueues] = field(default_factory=dict)
    mappings: Mapping[str, MappingInfo] = field(default_factory=dict)
    version: Version = NO_VERSION
    expiry_ms: int | None = None
    acting_master: bool | None = None
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
    def smallest(self) -> int:
        """The smallest number of an instance: 0 if there is a master."""
        return min(self.instances)

    @property
    def filter_servers(self) -> dict[str, list[str]]:
        """The addresses of filter servers, by the address of their instance."""
        return {
            instance.address: list(instance.filter_servers)
            for _, instance in sorted(self.instances.items())
            if instance.filter_servers
        }


@dataclass(frozen=True, slots=True)
class SmallestChange:
    """Another process of a broker has the smallest number. Source: NotifyMinBrokerIdChange.

    Attributes:
        broker: its name.
        number, address: of the process that has it now.
        ha_address: where slaves reach it, if it has just registered; else None.
        gone: the address of the one that had it and is gone; else None.
        told: the addresses of the processes that are to know.
    """

    broker: str
    number: int
    address: str
    ha_address: str | None
    gone: str | None
    told: tuple[str, ...]


class RouteEntry(NamedTuple):
    """A topic's queues by broker name, and those brokers; both sorted by name.

    `mappings`: of a static topic, by broker name.
    """

    queues: dict[str, BrokerQueues]
    brokers: list[BrokerInstances]
    mappings: dict[str, MappingInfo] | None = None
