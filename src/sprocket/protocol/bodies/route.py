"""Bodies about routes: where topics and brokers are.

Source: TopicRouteData, BrokerData, QueueData, ClusterInfo, BrokerMemberGroup, TopicList, KVTable
of RocketMQ 4.9 and 5.x; recorded frames.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol import lenient_json
from sprocket.protocol.bodies.body import Body, always
from sprocket.protocol.bodies.static_topic import MappingInfo
from sprocket.protocol.command import Long


class BrokerData(Body):
    """A broker's addresses, `ip:port`, by number: 0 is the master."""

    broker_addrs: dict[Long, str] = always({})
    broker_name: str = always("")
    cluster: str | None = None
    enable_acting_master: bool = always(False)
    zone_name: str | None = None


class QueueData(Body):
    """A topic's queues on one broker."""

    broker_name: str = always("")
    perm: Long = always(0)
    read_queue_nums: Long = always(0)
    topic_sys_flag: Long = always(0)
    write_queue_nums: Long = always(0)


class Route(Body):
    """Reply body of `RouteOfTopic`.

    Attributes:
        broker_datas, queue_datas: the brokers, and the topic's queues on each.
        filter_server_table: addresses of filter servers, by the address of their broker.
        order_topic_conf: for an ordered topic `broker:queues;…`, else None.
        topic_queue_mapping_by_broker: of a static topic, by broker.
    """

    broker_datas: list[BrokerData] = always([])
    filter_server_table: dict[str, list[str]] = always({})
    order_topic_conf: str | None = None
    queue_datas: list[QueueData] = always([])
    topic_queue_mapping_by_broker: dict[str, MappingInfo] | None = None

    def encode(self, *, standard: bool = True) -> bytes:
        """The body; broker numbers are quoted or, for old clients, bare.

        A client reads standard JSON if its request states that or its version is at least 401;
        older Go and Java clients need `{0:"…"}`.
        """
        return Body.encode(self) if standard else lenient_json.write(self)


class ClusterInfo(Body):
    """Reply body of `ClusterOf`: brokers by name, broker names by cluster."""

    is_dialect: ClassVar[bool] = True

    broker_addr_table: dict[str, BrokerData] = always({})
    cluster_addr_table: dict[str, list[str]] = always({})


class BrokerMemberGroup(Body):
    """A broker's addresses by number."""

    broker_addrs: dict[Long, str] = always({})
    broker_name: str | None = None
    cluster: str | None = None


class BrokerMembersBody(Body):
    """Reply body of `BrokerMembers`."""

    is_dialect: ClassVar[bool] = True

    broker_member_group: BrokerMemberGroup | None = None


class TopicList(Body):
    """Names of topics; some replies contain the broker's address too."""

    broker_addr: str | None = None
    topic_list: list[str] = always([])


class GroupList(Body):
    """Names of groups."""

    group_list: list[str] = always([])


class KvTable(Body):
    """Texts by name. Also the reply body of a registration: the order configuration."""

    table: dict[str, str] = always({})


class GroupMemberList(Body):
    """Reply body of `GroupMembers`."""

    consumer_id_list: list[str] = always([])
