"""Every request a name server answers: decode, ask the tables, make the reply.

Source: DefaultRequestProcessor and ClientRequestProcessor of RocketMQ's name server, 4.9 and 5.x.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sprocket.base.config import settings_of
from sprocket.base.config_files import DEFAULT, ConfigFile, load
from sprocket.base.errors import (
    ConfigError,
    ConnectFailed,
    InvalidParameter,
    NoPermission,
    QueryNotFound,
    RemoteProtocolError,
    ReplyError,
    RequestNotSupported,
    SystemFailure,
    TopicNotFound,
)
from sprocket.message.topic import READ, WRITE
from sprocket.nameserver.config import NameServerConfig
from sprocket.nameserver.routes import MASTER, Broker, Queues, Registration, Routes, Version
from sprocket.nameserver.settings import ORDER_NAMESPACE, Settings
from sprocket.protocol import registration
from sprocket.protocol.bodies import (
    BrokerData,
    BrokerMemberGroup,
    BrokerMembersBody,
    ClusterInfo,
    DataVersion,
    KvTable,
    QueueData,
    RegisterBody,
    Route,
    TopicConfig,
    TopicList,
)
from sprocket.protocol.codes import VERSION_STANDARD_JSON
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests import route
from sprocket.remoting import address as addresses
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Settings that may change while a name server runs; the others need a restart.
CHANGEABLE = frozenset(
    {
        "scan_ms",
        "order_conf_in_routes",
        "order_conf_to_brokers",
        "topic_lists",
        "all_topics_list",
    }
)
_NAME_MAX = 255
_QUEUES_MAX = 65_535


class Answer:
    """Answers requests from the tables of one name server.

    Args:
        routes, settings: the tables.
        config: what was set; `config` is what holds now.
        now_ms: a clock that never jumps.
        save: keeps the settings; raises OSError if that fails.
    """

    def __init__(
        self,
        routes: Routes,
        settings: Settings,
        config: NameServerConfig,
        *,
        now_ms: Callable[[], int],
        save: Callable[[], None],
    ) -> None:
        self.config = config
        self._routes = routes
        self._settings = settings
        self._now_ms = now_ms
        self._save = save
        self._table: dict[int, Callable[[Command, Peer], Reply]] = {
            route.PutKv.code: self._put_kv,
            route.GetKv.code: self._get_kv,
            route.DeleteKv.code: self._delete_kv,
            route.KvList.code: self._list_kv,
            route.RegisterBroker.code: self._register,
            route.UnregisterBroker.code: self._unregister,
            route.QueryDataVersion.code: self._data_version,
            route.BrokerHeartbeat.code: self._heartbeat,
            route.BrokerMembers.code: self._members,
            route.RouteOfTopic.code: self._route,
            route.ClusterOf.code: self._cluster,
            route.WipeWritePermission.code: self._wipe_write,
            route.AddWritePermission.code: self._add_write,
            route.TopicNames.code: self._topic_names,
            route.DeleteTopicRoute.code: self._delete_topic,
            route.TopicsOfCluster.code: self._topics_of_cluster,
            route.SystemTopicsOfNameServer.code: self._system_topics,
            route.UnitTopics.code: self._units(is_unit=True, is_subscribed=None),
            route.UnitSubscriptionTopics.code: self._units(is_unit=None, is_subscribed=True),
            route.UnitSubscriptionOnlyTopics.code: self._units(is_unit=False, is_subscribed=True),
            route.UpdateNameServerConfig.code: self._update_config,
            route.NameServerConfig.code: self._read_config,
        }

    def __call__(self, command: Command, peer: Peer) -> Reply:
        """The reply to a request; errors become their response codes."""
        answer = self._table.get(command.code)
        try:
            if answer is None:
                raise RequestNotSupported(f" request type {command.code} not supported")
            return answer(command, peer)
        except ReplyError as error:
            return Reply(code=error.code, remark=error.remark)
        except RemoteProtocolError as error:
            return Reply(code=SystemFailure.code, remark=str(error))

    # Brokers.

    def _register(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.RegisterBroker)
        if asked.body_crc32 and asked.body_crc32 != registration.checksum(command.body):
            raise SystemFailure("crc32 not match: the body is not what was sent")
        for name in (asked.broker_name, asked.cluster_name):
            if not 0 < len(name) <= _NAME_MAX:
                raise InvalidParameter(f"a name has 1 to {_NAME_MAX} characters")
        _check_address(asked.broker_addr)
        body = RegisterBody()
        if command.body:
            body = registration.decode(command.body, compressed=asked.compressed)
        version = body.topics.data_version
        master = self._routes.register(
            Registration(
                cluster=asked.cluster_name,
                broker=asked.broker_name,
                number=asked.broker_id,
                address=asked.broker_addr,
                ha_address=asked.ha_server_addr[:_NAME_MAX],
                topics=_queues(body.topics.topic_config_table),
                version=_version(version),
                expiry_ms=asked.heartbeat_timeout_millis,
                acting_master=bool(asked.enable_acting_master),
                zone=command.fields.get("zoneName"),
            ),
            peer,
            self._now_ms(),
        )
        header = route.RegisterBrokerReply()
        if asked.broker_id != MASTER and master.number == MASTER:
            header.master_addr, header.ha_server_addr = master.address, master.ha_address
        order = self._settings.of(ORDER_NAMESPACE) if self.config.order_conf_to_brokers else None
        return Reply(header, body=KvTable(order).encode() if order else b"")

    def _unregister(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.UnregisterBroker)
        if not self._routes.unregister(asked.broker_name, asked.broker_id, asked.broker_addr):
            logger.info(
                "%s asks to take off %s %d at %s, which is not there",
                peer.address,
                asked.broker_name,
                asked.broker_id,
                asked.broker_addr,
            )
        return Reply()

    def _data_version(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.QueryDataVersion)
        theirs = _version(DataVersion.decode(command.body))
        known = self._routes.heard(
            asked.broker_name, asked.broker_id, asked.broker_addr, self._now_ms()
        )
        if known is None:
            return Reply(route.DataVersionReply(changed=True))
        ours = known.version
        body = DataVersion(
            counter=ours.counter, state_version=ours.state, timestamp=ours.timestamp
        ).encode()
        return Reply(route.DataVersionReply(changed=ours != theirs), body=body)

    def _heartbeat(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.BrokerHeartbeat)
        self._routes.heard(asked.broker_name, asked.broker_id, asked.broker_addr, self._now_ms())
        return Reply()

    def _members(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.BrokerMembers)
        broker = self._routes.broker(asked.broker_name)
        group = BrokerMemberGroup(
            broker_addrs=broker.addresses if broker else {},
            broker_name=asked.broker_name,
            cluster=asked.cluster_name,
        )
        return Reply(body=BrokerMembersBody(group).encode())

    def _cluster(self, command: Command, peer: Peer) -> Reply:
        brokers = {broker.name: _broker_data(broker) for broker in self._routes.brokers()}
        return Reply(body=ClusterInfo(brokers, self._routes.clusters()).encode())

    def _wipe_write(self, command: Command, peer: Peer) -> Reply:
        broker = command.read(route.WipeWritePermission).broker_name
        count = self._routes.set_permission(broker, lambda permission: permission & ~WRITE)
        return Reply(route.WipeReply(wipe_topic_count=count))

    def _add_write(self, command: Command, peer: Peer) -> Reply:
        broker = command.read(route.AddWritePermission).broker_name
        count = self._routes.set_permission(broker, lambda permission: READ | WRITE)
        return Reply(route.AddWriteReply(add_topic_count=count))

    # Topics.

    def _route(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.RouteOfTopic)
        topic = asked.topic or ""
        found = self._routes.route_of(topic)
        if found is None:
            raise TopicNotFound(f"No topic route info in name server for the topic: {topic}")
        order = None
        if self.config.order_conf_in_routes:
            order = self._settings.get(ORDER_NAMESPACE, topic)
        body = Route(
            broker_datas=[_broker_data(broker) for broker in found.brokers],
            order_topic_conf=order,
            queue_datas=[_queue_data(name, queues) for name, queues in found.queues.items()],
        )
        is_standard = command.version >= VERSION_STANDARD_JSON
        return Reply(
            body=body.encode(standard=is_standard or bool(asked.accept_standard_json_only))
        )

    def _delete_topic(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.DeleteTopicRoute)
        self._routes.delete_topic(asked.topic, asked.cluster_name or None)
        return Reply()

    def _topic_names(self, command: Command, peer: Peer) -> Reply:
        if not self.config.all_topics_list:
            raise SystemFailure("disable: all_topics_list is off")
        return _topic_list(self._routes.topics())

    def _topics_of_cluster(self, command: Command, peer: Peer) -> Reply:
        self._check_lists()
        cluster = command.read(route.TopicsOfCluster).cluster
        return _topic_list(self._routes.topics_of_cluster(cluster))

    def _system_topics(self, command: Command, peer: Peer) -> Reply:
        """Clusters and brokers: each has a topic of its name."""
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
        if not self.config.topic_lists:
            raise SystemFailure("disable: topic_lists is off")

    # Key-value settings.

    def _put_kv(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.PutKv)
        before = self._settings.get(asked.namespace, asked.key)
        self._settings.put(asked.namespace, asked.key, asked.value)
        self._keep(asked.namespace, asked.key, before)
        return Reply()

    def _get_kv(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.GetKv)
        value = self._settings.get(asked.namespace, asked.key)
        if value is None:
            raise QueryNotFound(f"No config item, Namespace: {asked.namespace} Key: {asked.key}")
        return Reply(route.KvReply(value=value))

    def _delete_kv(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.DeleteKv)
        before = self._settings.get(asked.namespace, asked.key)
        self._settings.delete(asked.namespace, asked.key)
        self._keep(asked.namespace, asked.key, before)
        return Reply()

    def _list_kv(self, command: Command, peer: Peer) -> Reply:
        namespace = command.read(route.KvList).namespace
        table = self._settings.of(namespace)
        if table is None:
            raise QueryNotFound(f"No config item, Namespace: {namespace}")
        return Reply(body=KvTable(table).encode())

    def _keep(self, namespace: str, key: str, before: str | None) -> None:
        """Saves the settings; if that fails, the change is taken back."""
        try:
            self._save()
        except OSError as error:
            if before is None:
                self._settings.delete(namespace, key)
            else:
                self._settings.put(namespace, key, before)
            raise SystemFailure(f"cannot keep it: {error}") from error

    # The name server's own settings.

    def _update_config(self, command: Command, peer: Peer) -> Reply:
        """Changes hold until the name server ends."""
        try:
            text = bytes(command.body).decode("utf-8")
            loaded = load([NameServerConfig], file=ConfigFile("request.properties", text))
        except (ConfigError, UnicodeDecodeError) as error:
            raise SystemFailure(str(error)) from None
        asked = loaded.of(NameServerConfig)
        changes: dict[str, Any] = {
            name: getattr(asked, name)
            for name, declared in settings_of(NameServerConfig).items()
            if loaded.origins[declared.key] != DEFAULT
            and getattr(asked, name) != getattr(self.config, name)
        }
        if fixed := sorted(changes.keys() - CHANGEABLE):
            raise NoPermission(f"cannot change while it runs: {', '.join(fixed)}")
        self.config = replace(self.config, **changes)
        return Reply()

    def _read_config(self, command: Command, peer: Peer) -> Reply:
        lines = [
            f"{(declared.rocketmq_names or [name])[0]}={_plain(getattr(self.config, name))}\n"
            for name, declared in settings_of(NameServerConfig).items()
        ]
        return Reply(body="".join(sorted(lines)).encode())


def _check_address(text: str) -> None:
    try:
        addresses.split(text)
    except ConnectFailed as error:
        raise InvalidParameter(str(error)) from None


def _queues(topics: dict[str, TopicConfig]) -> dict[str, Queues]:
    """Topics as the table keeps them. What no client could use is left out."""
    taken: dict[str, Queues] = {}
    for name, topic in topics.items():
        reads, writes = topic.read_queue_nums, topic.write_queue_nums
        counts_are_right = 0 <= reads <= _QUEUES_MAX and 0 <= writes <= _QUEUES_MAX
        if not 0 < len(name) <= _NAME_MAX or not counts_are_right:
            logger.warning("topic %.*r is left out: %d, %d queues", 80, name, reads, writes)
            continue
        taken[name] = Queues(reads, writes, topic.perm, topic.topic_sys_flag)
    return taken


def _version(version: DataVersion) -> Version:
    return Version(version.state_version, version.timestamp, version.counter)


def _broker_data(broker: Broker) -> BrokerData:
    return BrokerData(
        broker_addrs=broker.addresses,
        broker_name=broker.name,
        cluster=broker.cluster,
        enable_acting_master=broker.acting_master,
        zone_name=broker.zone,
    )


def _queue_data(broker: str, queues: Queues) -> QueueData:
    return QueueData(
        broker_name=broker,
        perm=queues.permission,
        read_queue_nums=queues.reads,
        topic_sys_flag=queues.sys_flag,
        write_queue_nums=queues.writes,
    )


def _topic_list(topics: list[str], *, broker: str | None = None) -> Reply:
    return Reply(body=TopicList(broker, topics).encode())


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
