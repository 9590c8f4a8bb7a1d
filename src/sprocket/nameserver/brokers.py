"""Requests about brokers: registrations, heartbeats, removals, and an operator's questions."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sprocket.base.errors import ConnectFailed, InvalidParameter, SystemFailure
from sprocket.base.rare_log import RareLog
from sprocket.message.record import body_crc
from sprocket.message.topic import READ, WRITE
from sprocket.nameserver.configuration import Configuration
from sprocket.nameserver.instances import BrokerInfo, BrokerInstances, BrokerQueues, Version
from sprocket.nameserver.rivals import Rivals
from sprocket.nameserver.routes import RouteTable, Superseded
from sprocket.nameserver.settings import ORDER_NAMESPACE, KeyValueSettings
from sprocket.nameserver.static_topics import mappings_in
from sprocket.protocol import registration
from sprocket.protocol.bodies import (
    BrokerData,
    BrokerMemberGroup,
    BrokerMembersBody,
    ClusterInfo,
    DataVersion,
    KvTable,
    RegisterBody,
    TopicConfig,
)
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests import route
from sprocket.remoting import address as addresses
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

_NAME_MAX = 255
_FILTER_SERVERS_MAX = 16
_QUEUES_MAX = 65_535


class BrokerRequests:
    """Handles requests from brokers and about brokers."""

    def __init__(
        self,
        routes: RouteTable,
        settings: KeyValueSettings,
        *,
        configuration: Configuration,
        now_ms: Callable[[], int],
    ) -> None:
        self._routes = routes
        self._settings = settings
        self._configuration = configuration
        self._now_ms = now_ms
        self._rivals = Rivals(now_ms)
        self._warnings = RareLog(logger, now_ms)

    def table(self) -> dict[int, Callable[[Command, Peer], Reply]]:
        """The handling functions by request code."""
        return {
            route.RegisterBroker.code: self._register,
            route.UnregisterBroker.code: self._unregister,
            route.QueryDataVersion.code: self._data_version,
            route.BrokerHeartbeat.code: self._heartbeat,
            route.BrokerMembers.code: self._members,
            route.ClusterOf.code: self._cluster,
            route.WipeWritePermission.code: self._wipe_write,
            route.AddWritePermission.code: self._add_write,
        }

    def _register(self, command: Command, peer: Peer) -> Reply:
        # The checksum is compared before anything is decoded: a body that was damaged on the way
        # must not change the table. What a broker states about itself is bounded here, since one
        # broker's mistake would reach all clients through their routes.
        asked = command.read(route.RegisterBroker)
        if asked.body_crc32 and asked.body_crc32 != body_crc(command.body):
            raise SystemFailure("crc32 not match: the body is not what was sent")
        _check(asked)
        body = RegisterBody()
        if command.body:
            body = registration.decode(command.body, compressed=asked.compressed)
        info = BrokerInfo(
            cluster=asked.cluster_name,
            broker=asked.broker_name,
            number=asked.broker_id,
            address=asked.broker_addr,
            ha_address=asked.ha_server_addr,
            topics=_queues(body.topics.topic_config_table, self._warnings),
            mappings=mappings_in(body.topics.topic_queue_mapping_info_map, asked.broker_name),
            version=_version(body.topics.data_version),
            expiry_ms=asked.heartbeat_timeout_millis,
            acting_master=asked.enable_acting_master,
            zone=command.fields.get("zoneName", "")[:_NAME_MAX] or None,
            filter_servers=tuple(body.filter_server_list[:_FILTER_SERVERS_MAX]),
        )
        header = route.RegisterBrokerReply()
        warning = self._rivals.warning(info, self._routes.broker(info.broker))
        try:
            master = self._routes.register(info, peer, self._now_ms())
        except Superseded as error:
            self._warnings.warning("%s is not registered: %s", info.address, error)
            return Reply(header, remark=f"not registered: {error.remark}")
        if info.number != MASTER and master.number == MASTER:
            header.master_addr, header.ha_server_addr = master.address, master.ha_address
        return Reply(header, body=self._order_conf(), remark=warning)

    def _order_conf(self) -> bytes:
        """The order configuration of all topics; empty if none is set or brokers do not get it."""
        is_wanted = self._configuration.now.order_conf_to_brokers
        table = self._settings.of(ORDER_NAMESPACE) if is_wanted else None
        return b"" if table is None else KvTable(table).encode()

    def _unregister(self, command: Command, peer: Peer) -> Reply:
        asked = command.read(route.UnregisterBroker)
        if not self._routes.unregister(
            asked.broker_name, asked.broker_id, asked.broker_addr, connection=peer
        ):
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
        known = self._routes.heartbeat(
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
        self._routes.heartbeat(
            asked.broker_name, asked.broker_id, asked.broker_addr, self._now_ms()
        )
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
        brokers = {broker.name: broker_data(broker) for broker in self._routes.brokers()}
        return Reply(body=ClusterInfo(brokers, self._routes.clusters()).encode())

    def _wipe_write(self, command: Command, peer: Peer) -> Reply:
        broker = command.read(route.WipeWritePermission).broker_name
        count = self._routes.set_permission(broker, lambda permission: permission & ~WRITE)
        return Reply(route.WipeReply(wipe_topic_count=count))

    def _add_write(self, command: Command, peer: Peer) -> Reply:
        broker = command.read(route.AddWritePermission).broker_name
        count = self._routes.set_permission(broker, lambda permission: READ | WRITE)
        return Reply(route.AddWriteReply(add_topic_count=count))


def _check(asked: route.RegisterBroker) -> None:
    for name in (asked.broker_name, asked.cluster_name):
        if not 0 < len(name) <= _NAME_MAX:
            raise InvalidParameter(f"a broker and a cluster have 1 to {_NAME_MAX} characters")
    if len(asked.ha_server_addr) > _NAME_MAX:
        raise InvalidParameter(f"haServerAddr has at most {_NAME_MAX} characters")
    try:
        addresses.split(asked.broker_addr)
    except ConnectFailed as error:
        raise InvalidParameter(f"brokerAddr: {error}") from None


def _queues(topics: dict[str, TopicConfig], log: RareLog) -> dict[str, BrokerQueues]:
    """A registration's topics for the table, without those that no client could use."""
    taken: dict[str, BrokerQueues] = {}
    for name, topic in topics.items():
        reads, writes = topic.read_queue_nums, topic.write_queue_nums
        counts_are_right = 0 <= reads <= _QUEUES_MAX and 0 <= writes <= _QUEUES_MAX
        if not 0 < len(name) <= _NAME_MAX or not counts_are_right:
            log.warning("topic %.*r is left out: %d, %d queues", 80, name, reads, writes)
            continue
        taken[name] = BrokerQueues(reads, writes, topic.perm, topic.topic_sys_flag)
    return taken


def _version(version: DataVersion) -> Version:
    return Version(version.state_version, version.timestamp, version.counter)


def broker_data(broker: BrokerInstances, acting: int | None = None) -> BrokerData:
    """A broker as in routes and cluster tables.

    Args:
        acting: the number of the slave that is shown as the master, if one is.
    """
    addresses = broker.addresses
    if acting is not None:
        addresses = {MASTER: addresses.pop(acting), **addresses}
    return BrokerData(
        broker_addrs=addresses,
        broker_name=broker.name,
        cluster=broker.cluster,
        enable_acting_master=broker.acting_master,
        zone_name=broker.zone,
    )
