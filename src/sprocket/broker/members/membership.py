"""Membership of clients in groups: heartbeats (34), unregistration (35), the members of a group
(38), and the check of a subscription (46). The table itself is in `clients`.

When a member joins or leaves a consumer group, all its members are notified, so that they rebalance
(`notices`). In a small group the member that joins is notified too, before it gets the reply to its
heartbeat.
Source: ClientManageProcessor, ConsumerManageProcessor, DefaultConsumerIdsChangeListener of
RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import RemoteProtocolError, SystemFailure
from sprocket.base.ports import Clock
from sprocket.base.rare_log import RareLog
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.callbacks import peer_of
from sprocket.broker.members.harmony import Harmony
from sprocket.broker.members.notices import MemberNotices
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables import message_filters as choosing
from sprocket.broker.tables.clients import (
    CLUSTERING,
    PASSIVELY,
    ClientInfo,
    ClientTable,
    ConsumerGroup,
    GroupMode,
    HeartbeatChange,
)
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.topics import Topics
from sprocket.message.topic import UNIT_SUBSCRIPTION, retry_topic
from sprocket.protocol.bodies import (
    CheckClientBody,
    ConsumerData,
    GroupMemberList,
    HeartbeatBody,
    ProducerData,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.client import GroupMembers, HeartbeatReply, Unregister
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Largest body of a heartbeat: its content is kept as long as the member.
_BODY_BYTES_MAX = 1 << 20
#: Longest warning in the reply to a heartbeat, in characters.
_REMARK_MAX = 1_000
_FROM_LAST = "CONSUME_FROM_LAST_OFFSET"
#: Groups of one heartbeat that are handled in one turn of the loop; a new group takes 0.1 ms.
_GROUPS_AT_ONCE = 16
G = TypeVar("G")


class _Heartbeat:
    """A heartbeat that is being handled.

    Attributes:
        must_resend: whether the next heartbeat must contain all subscriptions.
        warnings: what is wrong with the client's groups.
        left: groups that the client has left since the heartbeat arrived: (is producer, name).
    """

    __slots__ = ("body", "client", "left", "must_resend", "warnings")

    def __init__(self, body: HeartbeatBody, client: ClientInfo) -> None:
        self.body = body
        self.client = client
        self.must_resend = not body.heartbeat_fingerprint
        self.warnings: list[str] = []
        self.left: set[tuple[bool, str | None]] = set()

    def reply(self) -> Reply:
        """The reply to the heartbeat."""
        header = HeartbeatReply(is_support_heart_beat_v2=True, is_sub_change=self.must_resend)
        return Reply(header, remark="; ".join(self.warnings)[:_REMARK_MAX] or None)


class MembershipRequests:
    """Keeps the table of clients up to date by their requests and the ends of their connections."""

    def __init__(
        self,
        clients: ClientTable,
        *,
        topics: Topics,
        groups: Groups,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        self._clients = clients
        self._topics = topics
        self._groups = groups
        self._settings = settings
        self._clock = clock
        self._notices = MemberNotices(clients)
        self._warnings = RareLog(logger)
        self.send_notices = self._notices.run
        #: Heartbeats that are handled in several turns, by connection.
        self._beats: dict[Peer, list[_Heartbeat]] = {}
        self._harmony = Harmony()
        #: Connections whose end is watched.
        self._watched: set[Peer] = set()

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.HEART_BEAT: self.heartbeat,
            RequestCode.UNREGISTER_CLIENT: self.unregister,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self.members,
            RequestCode.CHECK_CLIENT_CONFIG: self.check,
        }

    def heartbeat(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Records a client in all its groups; if they are many, in several turns of the loop.

        Raises:
            RemoteProtocolError: the body is no heartbeat.
            SystemBusy: there are too many topics, groups or members.
        """
        if len(command.body) > _BODY_BYTES_MAX:
            raise RemoteProtocolError(f"a heartbeat has at most {_BODY_BYTES_MAX} bytes")
        body = HeartbeatBody.of_request(command.body)
        client = self.described(
            peer, body.client_id, language=command.language, version=command.version
        )
        return self.record(body, client, peer)

    def described(self, peer: Peer, client_id: str, *, language: str, version: int) -> ClientInfo:
        """A client that gives a sign of life now."""
        now_ms = self._clock.now_ms()
        return ClientInfo(peer, client_id, peer.address, language, version, now_ms, loop_ms())

    def record(
        self, body: HeartbeatBody, client: ClientInfo, peer: Peer
    ) -> Reply | Awaitable[Reply]:
        """Records a heartbeat.

        Raises:
            SystemBusy: there are too many topics, groups or members.
        """
        self._watch(peer)
        heartbeat = _Heartbeat(body, client)
        if len(body.consumers) + len(body.producers) > _GROUPS_AT_ONCE:
            return self._in_turns(heartbeat, peer)
        self._producers(heartbeat, body.producers)
        self._consumers(heartbeat, body.consumers)
        return heartbeat.reply()

    # A heartbeat with thousands of groups would block the loop too long, so it yields between
    # slices. Meanwhile the client may leave a group that is still to be handled: the heartbeat is
    # kept in a list, and unregistration notes the group in `left`, so that it is not joined again.
    async def _in_turns(self, heartbeat: _Heartbeat, peer: Peer) -> Reply:
        beats = self._beats.setdefault(peer, [])
        beats.append(heartbeat)
        try:
            for producers in _slices(heartbeat.body.producers):
                self._producers(heartbeat, producers)
                await asyncio.sleep(0)
            for consumers in _slices(heartbeat.body.consumers):
                self._consumers(heartbeat, consumers)
                await asyncio.sleep(0)
        finally:
            beats.remove(heartbeat)
            if not beats:
                del self._beats[peer]
        return heartbeat.reply()

    def _producers(self, heartbeat: _Heartbeat, producers: Sequence[ProducerData]) -> None:
        for producer in producers:
            if (True, producer.group_name) not in heartbeat.left:
                self._clients.producer_heartbeat(producer.group_name, heartbeat.client)

    def _consumers(self, heartbeat: _Heartbeat, consumers: Sequence[ConsumerData]) -> None:
        fingerprint = heartbeat.body.heartbeat_fingerprint or 0
        for data in consumers:
            if (False, data.group_name) in heartbeat.left:
                continue
            group = self._clients.group(data.group_name)
            has_other = group is not None and group.fingerprint != fingerprint
            seen = self._consumer(data, heartbeat.client, heartbeat.body)
            heartbeat.must_resend |= has_other or seen.is_unknown
            online = self._clients.group(data.group_name)
            if online is not None:
                heartbeat.warnings += self._harmony.warnings(online, heartbeat.client)

    def _consumer(
        self, data: ConsumerData, client: ClientInfo, body: HeartbeatBody
    ) -> HeartbeatChange:
        name = data.group_name
        group = self._groups.find(name)
        if group is None:
            return HeartbeatChange()
        self._topics.make_for_group(
            retry_topic(name),
            queues=group.retry_queue_nums,
            sys_flag=UNIT_SUBSCRIPTION if data.unit_mode else 0,
            order=self._has_ordered_topic(data),
        )
        # A heartbeat of the second version leaves out subscriptions that have not changed since the
        # last one, and sends their fingerprint instead. If this broker does not know it, because it
        # has restarted since, the reply asks for the whole heartbeat.
        is_left_out = bool(body.heartbeat_fingerprint) and bool(body.without_sub)
        seen = self._clients.consumer_heartbeat(
            name,
            client,
            mode=GroupMode(
                data.consume_type or PASSIVELY,
                data.message_model or CLUSTERING,
                data.consume_from_where or _FROM_LAST,
            ),
            subscriptions=None if is_left_out else data.subscriptions,
            fingerprint=body.heartbeat_fingerprint or 0,
        )
        _log_changes(name, client, seen, self._warnings)
        online = self._clients.group(name)
        if seen.has_changed and online is not None:
            self._notify(online)
        return seen

    def _has_ordered_topic(self, data: ConsumerData) -> bool:
        subscribed = [self._topics.get(each.topic) for each in data.subscriptions]
        return any(topic is not None and topic.order for topic in subscribed)

    def _notify(self, group: ConsumerGroup) -> None:
        config = self._groups.get(group.name)
        is_wanted = config is None or config.notify_consumer_ids_changed_enable
        if is_wanted and self._settings.config.notify_members and not group.is_broadcasting:
            self._notices.group_changed(group)

    def unregister(self, command: Command, peer: Peer) -> Reply:
        """Removes a client from a group; no error if it is no member."""
        header = command.read(Unregister)
        for heartbeat in self._beats.get(peer, ()):
            heartbeat.left |= {(True, header.producer_group), (False, header.consumer_group)}
        if header.producer_group is not None:
            self._clients.producer_left(header.producer_group, peer)
        if header.consumer_group is not None:
            group = self._clients.consumer_left(header.consumer_group, peer)
            if group is not None:
                logger.info("%s left consumer group %s", peer.address, group.name)
                self._harmony.left(group)
                self._notify(group)
        return Reply()

    def members(self, command: Command, peer: Peer) -> Reply:
        """The client ids of a consumer group's members.

        Raises:
            SystemFailure: the group has no members.
        """
        header = command.read(GroupMembers)
        group = self._clients.group(header.consumer_group)
        if group is None:
            raise SystemFailure(f"no consumer for this group, {header.consumer_group}")
        return Reply(body=GroupMemberList(consumer_id_list=group.client_ids()).encode())

    def check(self, command: Command, peer: Peer) -> Reply:
        """Checks that pulls with a consumer's subscription can be answered.

        Raises:
            SubscriptionInvalid: its expression cannot be parsed.
            SystemFailure: its type of filter is switched off.
        """
        if not command.body:
            return Reply()
        subscription = CheckClientBody.of_request(command.body).subscription_data
        if subscription is not None:
            config = self._settings.config
            choosing.check(subscription.expression_type, subscription.sub_string, config)
        return Reply()

    def _watch(self, peer: Peer) -> None:
        if peer not in self._watched:
            self._watched.add(peer)
            peer.on_close(self._closed)

    def _closed(self, peer: Peer) -> None:
        """Removes the members of a closed connection; if they are many, in several turns."""
        self._watched.discard(peer)
        for group in self._clients.closed(peer, _GROUPS_AT_ONCE):
            logger.info("%s is gone from consumer group %s", peer.address, group.name)
            self._harmony.left(group)
            self._notify(group)
        if self._clients.is_in_groups(peer):
            asyncio.get_running_loop().call_soon(self._closed, peer)

    async def drop_silent(self) -> None:
        """Removes clients that sent no heartbeat for too long, and closes their connections; if
        they are many, in several turns of the loop."""
        before_ms = loop_ms() - self._settings.config.client_expiry_ms
        for clients in _slices(self._clients.silent(before_ms)):
            for client in clients:
                if self._clients.knows(client):  # it may have sent a heartbeat meanwhile
                    self._drop(client)
            await asyncio.sleep(0)

    def _drop(self, client: ClientInfo) -> None:
        self._warnings.warning(
            "%s (%s) sends no heartbeat: removed", client.client_id, client.address
        )
        peer = peer_of(client)
        self._closed(peer)
        peer.close()

    async def run(self) -> None:
        """Removes silent clients periodically, until cancelled."""
        while True:
            await asyncio.sleep(self._settings.config.client_scan_ms / 1000)
            await self.drop_silent()


def _slices(groups: Sequence[G]) -> Iterator[Sequence[G]]:
    for begin in range(0, len(groups), _GROUPS_AT_ONCE):
        yield groups[begin : begin + _GROUPS_AT_ONCE]


def _log_changes(group: str, client: ClientInfo, seen: HeartbeatChange, log: RareLog) -> None:
    """Logs the changes that explain why messages reach unexpected consumers."""
    if seen.is_new:
        logger.info("%s (%s) joined consumer group %s", client.client_id, client.address, group)
    if seen.clashing is not None:
        log.warning(
            "two clients of consumer group %s call themselves %s: %s and %s; they will consume "
            "the same queues",
            group, client.client_id, seen.clashing.address, client.address,
        )  # fmt: skip
    for sent, kept in seen.outdated:
        log.warning(
            "%s of consumer group %s subscribes %s as %r; the group has the newer subscription %r, "
            "which applies to all its members",
            client.client_id, group, sent.topic, sent.sub_string, kept.sub_string,
        )  # fmt: skip
    for old, new in seen.replaced:
        log.warning(
            "consumer group %s subscribes %s now as %r and no longer as %r, by a heartbeat of %s",
            group, new.topic, new.sub_string, old.sub_string, client.client_id,
        )  # fmt: skip
