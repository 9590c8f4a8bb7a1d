"""Requests to a name server: brokers, routes, its own settings.

Source: the headers of package `namesrv` of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.command import Header, Int, Long


class PutKv(Header, kw_only=True):
    """Sets a key of a namespace."""

    code: ClassVar[int] = 100

    namespace: str
    key: str
    value: str


class KvReply(Header, kw_only=True):
    """A key's value."""

    value: str | None = None


class GetKv(Header, kw_only=True):
    """Asks for a key's value; the reply is code 22 if there is none."""

    code: ClassVar[int] = 101
    reply: ClassVar[type[Header]] = KvReply

    namespace: str
    key: str


class DeleteKv(Header, kw_only=True):
    """Deletes a key."""

    code: ClassVar[int] = 102

    namespace: str
    key: str


class KvList(Header, kw_only=True):
    """Asks for all keys of a namespace; reply body: `KvTable`."""

    code: ClassVar[int] = 219

    namespace: str


class RegisterBrokerReply(Header, kw_only=True):
    """For a slave: its master, and the address to replicate from."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class RegisterBroker(Header, kw_only=True):
    """Registers a broker; request body: `RegisterBody`, in the compressed form if `compressed`.

    `body_crc32`: CRC-32 of the body as sent, without its top bit; 0 is not checked.
    """

    code: ClassVar[int] = 103
    reply: ClassVar[type[Header]] = RegisterBrokerReply

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str = ""
    broker_id: Long
    heartbeat_timeout_millis: Long | None = None
    enable_acting_master: bool | None = None
    compressed: bool = False
    body_crc32: Int = 0
    zone_name: str | None = msgspec.field(default=None, name="__ZONE_NAME")


class UnregisterBroker(Header, kw_only=True):
    """Removes a broker."""

    code: ClassVar[int] = 104

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class RouteOfTopic(Header, kw_only=True):
    """Asks for the route of a topic; reply body: `Route`. Without a topic the reply is code 17."""

    code: ClassVar[int] = 105

    topic: str | None = None
    accept_standard_json_only: bool | None = None


class ClusterOf(Header, kw_only=True):
    """Asks for all brokers and clusters; reply body: `ClusterInfo`."""

    code: ClassVar[int] = 106


class WipeReply(Header, kw_only=True):
    """The number of topics that lost the write permission."""

    wipe_topic_count: Int


class WipeWritePermission(Header, kw_only=True):
    """Removes the write permission of all topics of a broker."""

    code: ClassVar[int] = 205
    reply: ClassVar[type[Header]] = WipeReply

    broker_name: str


class AddWriteReply(Header, kw_only=True):
    """The number of topics that got the write permission."""

    add_topic_count: Int


class AddWritePermission(Header, kw_only=True):
    """Restores the write permission of all topics of a broker."""

    code: ClassVar[int] = 327
    reply: ClassVar[type[Header]] = AddWriteReply

    broker_name: str


class TopicNames(Header, kw_only=True):
    """Asks for all topics; reply body: `TopicList`."""

    code: ClassVar[int] = 206


class DeleteTopicRoute(Header, kw_only=True):
    """Deletes a topic's route."""

    code: ClassVar[int] = 216

    topic: str
    cluster_name: str | None = None


class TopicsOfCluster(Header, kw_only=True):
    """Asks for the topics of a cluster; reply body: `TopicList`."""

    code: ClassVar[int] = 224

    cluster: str


class SystemTopicsOfNameServer(Header, kw_only=True):
    """Asks for the names of clusters and brokers, which are topics too; reply body: `TopicList`."""

    code: ClassVar[int] = 304


class UnitTopics(Header, kw_only=True):
    """Asks for the topics of units; reply body: `TopicList`."""

    code: ClassVar[int] = 311


class UnitSubscriptionTopics(Header, kw_only=True):
    """Asks for the topics with unit subscriptions; reply body: `TopicList`."""

    code: ClassVar[int] = 312


class UnitSubscriptionOnlyTopics(Header, kw_only=True):
    """Asks for topics with unit subscriptions that are of no unit; reply body: `TopicList`."""

    code: ClassVar[int] = 313


class UpdateNameServerConfig(Header, kw_only=True):
    """Changes settings; request body: lines `key=value`."""

    code: ClassVar[int] = 318


class ReadNameServerConfig(Header, kw_only=True):
    """Asks for the settings; reply body: lines `key=value`."""

    code: ClassVar[int] = 319


class DataVersionReply(Header, kw_only=True):
    """Whether the given version differs from the stored one; body: the stored `DataVersion`."""

    changed: bool


class QueryDataVersion(Header, kw_only=True):
    """Asks whether a broker must register again; request body: `DataVersion`."""

    code: ClassVar[int] = 322
    reply: ClassVar[type[Header]] = DataVersionReply

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Long


class BrokerMembers(Header, kw_only=True):
    """Asks for the addresses of a broker's master and slaves; reply body: `BrokerMembersBody`."""

    code: ClassVar[int] = 901

    cluster_name: str
    broker_name: str


class BrokerHeartbeat(Header, kw_only=True):
    """Shows that a broker is alive, at less cost than a registration."""

    code: ClassVar[int] = 904

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Long | None = None
    epoch: Int | None = None
    max_offset: Long | None = None
    confirm_offset: Long | None = None
    heartbeat_timeout_mills: Long | None = None
    election_priority: Int | None = None


class SmallestNumberChanged(Header, kw_only=True):
    """A name server notifies brokers that another process of a name has the smallest number.

    Source: NotifyMinBrokerIdChangeRequestHeader of RocketMQ 5.x.
    """

    code: ClassVar[int] = 905

    min_broker_id: Long | None = None
    broker_name: str | None = None
    min_broker_addr: str | None = None
    offline_broker_addr: str | None = None
    ha_broker_addr: str | None = None
