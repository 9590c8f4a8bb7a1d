"""Requests about topics: their routes and their names."""

from __future__ import annotations

from collections.abc import Callable

from sprocket.base.errors import SystemFailure, TopicNotFound
from sprocket.message.topic import is_writable
from sprocket.nameserver.brokers import broker_data
from sprocket.nameserver.configuration import Configuration
from sprocket.nameserver.instances import BrokerQueues, RouteEntry
from sprocket.nameserver.routes import RouteTable
from sprocket.nameserver.settings import ORDER_NAMESPACE, KeyValueSettings
from sprocket.protocol.bodies import QueueData, Route, TopicList
from sprocket.protocol.codes import MASTER, VERSION_STANDARD_JSON
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests import route
from sprocket.remoting.transport import Peer

#: By the routes of these topics Java's brokers find the processes of their own name.
_MEMBERS_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_"


class RouteRequests:
    """Handles requests of clients and operators about topics."""

    def __init__(
        self, routes: RouteTable, settings: KeyValueSettings, *, configuration: Configuration
    ) -> None:
        self._routes = routes
        self._settings = settings
        self._configuration = configuration

    def table(self) -> dict[int, Callable[[Command, Peer], Reply]]:
        """The handling functions by request code."""
        return {
            route.RouteOfTopic.code: self._route,
            route.TopicNames.code: self._topic_names,
            route.DeleteTopicRoute.code: self._delete_topic,
            route.TopicsOfCluster.code: self._topics_of_cluster,
            route.SystemTopicsOfNameServer.code: self._system_topics,
            route.UnitTopics.code: self._units(is_unit=True, is_subscribed=None),
            route.UnitSubscriptionTopics.code: self._units(is_unit=None, is_subscribed=True),
            route.UnitSubscriptionOnlyTopics.code: self._units(is_unit=False, is_subscribed=True),
        }

    def _route(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.RouteOfTopic)
        topic = asked.topic or ""
        found = self._routes.route_of(topic)
        if found is None:
            raise TopicNotFound(f"No topic route info in name server for the topic: {topic}")
        order = None
        if self._configuration.now.order_conf_in_routes:
            order = self._settings.get(ORDER_NAMESPACE, topic)
        acting = self._acting(topic, found)
        body = Route(
            broker_datas=[broker_data(broker, acting.get(broker.name)) for broker in found.brokers],
            filter_server_table={
                address: servers
                for broker in found.brokers
                for address, servers in broker.filter_servers.items()
            },
            order_topic_conf=order,
            queue_datas=[_queue_data(name, queues) for name, queues in found.queues.items()],
            topic_queue_mapping_by_broker=found.mappings,
        )
        # Clients before 4.9.4 read only fastjson's dialect, in which numbers are keys of objects.
        is_standard = command.version >= VERSION_STANDARD_JSON
        return Reply(
            body=body.encode(standard=is_standard or bool(asked.accept_standard_json_only))
        )

    def _acting(self, topic: str, found: RouteEntry) -> dict[str, int]:
        """By broker name, the number of the slave that the route shows as the master."""
        if not self._configuration.now.acting_masters or topic.startswith(_MEMBERS_TOPIC):
            return {}
        return {
            broker.name: broker.smallest
            for broker in found.brokers
            if broker.acting_master
            and broker.smallest != MASTER
            and not is_writable(found.queues[broker.name].permission)
        }

    def _delete_topic(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.DeleteTopicRoute)
        self._routes.delete_topic(asked.topic, asked.cluster_name or None)
        return Reply()

    def _topic_names(self, command: Command, peer: Peer) -> Reply:
        if not self._configuration.now.all_topics_list:
            raise SystemFailure("disable: all_topics_list is off")
        return _topic_list(self._routes.topics())

    def _topics_of_cluster(self, command: Command, peer: Peer) -> Reply:
        self._check_lists()
        cluster = command.read(route.TopicsOfCluster).cluster
        return _topic_list(self._routes.topics_of_cluster(cluster))

    def _system_topics(self, command: Command, peer: Peer) -> Reply:
        """The names of clusters and brokers: each of them is also the name of a topic."""
        brokers = self._routes.brokers()
        names = [*self._routes.clusters(), *(broker.name for broker in brokers)]
        first = next(iter(brokers[0].addresses.values())) if brokers else None
        return _topic_list(sorted(set(names)), broker=first)

    def _units(
        self, *, is_unit: bool | None, is_subscribed: bool | None
    ) -> Callable[[Command, Peer], Reply]:
        def answer(command: Command, peer: Peer) -> Reply:
            self._check_lists()
            return _topic_list(
                self._routes.topics_of_units(is_unit=is_unit, is_subscribed=is_subscribed)
            )

        return answer

    def _check_lists(self) -> None:
        if not self._configuration.now.topic_lists:
            raise SystemFailure("disable: topic_lists is off")


def _queue_data(broker: str, queues: BrokerQueues) -> QueueData:
    return QueueData(
        broker_name=broker,
        perm=queues.permission,
        read_queue_nums=queues.reads,
        topic_sys_flag=queues.sys_flag,
        write_queue_nums=queues.writes,
    )


def _topic_list(topics: list[str], *, broker: str | None = None) -> Reply:
    return Reply(body=TopicList(broker, topics).encode())
