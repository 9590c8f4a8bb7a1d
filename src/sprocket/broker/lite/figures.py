"""What operators ask about lite topics (200074 to 200078), and a new look for messages (200079).

Source: LiteManagerProcessor, LiteConsumerLagCalculator of RocketMQ 5.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import nlargest, nsmallest
from itertools import islice
from operator import attrgetter

from sprocket.base.errors import InvalidParameter
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.lite.rules import LiteRules
from sprocket.broker.lite.subscriptions import LiteClient, LiteSubscriptions
from sprocket.broker.lite.taking import QUEUE
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.message.lite import QUEUE_PREFIX, LiteName
from sprocket.protocol.bodies.lite import (
    BrokerLiteFigures,
    ClientOfGroup,
    LiteClientFigures,
    LiteGroupFigures,
    LiteGroupOffsets,
    LiteLag,
    LiteOffsets,
    LiteTopicFigures,
    ParentTopicFigures,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.lite import (
    LiteClientInfo,
    LiteGroupInfo,
    LiteTopicInfo,
    ParentTopicInfo,
    TriggerLiteDispatch,
)
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: Lite topics of one client, and rows of a list, that a reply has at most.
_NAMES_MAX = 10_000
_AT_ONCE = 1000
#: Where RocketMQ keeps these queues; its tools show it.
_STORE_TYPE = "default"
_EVERY_CLIENT = "*"


class LiteFigureRequests:
    """Answers what operators ask.

    Args:
        look: looks for messages of all lite topics that a client subscribes.
    """

    def __init__(
        self,
        store: Store,
        subscriptions: LiteSubscriptions,
        *,
        rules: LiteRules,
        orders: OrderTable,
        offsets: ConsumerOffsets,
        settings: BrokerSettings,
        look: Callable[[LiteClient], None],
    ) -> None:
        self._store = store
        self._lite = store.lite
        self._subscriptions = subscriptions
        self._rules = rules
        self._orders = orders
        self._offsets = offsets
        self._settings = settings
        self._look = look

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.GET_BROKER_LITE_INFO: self.broker,
            RequestCode.GET_PARENT_TOPIC_INFO: self.parent,
            RequestCode.GET_LITE_TOPIC_INFO: self.lite,
            RequestCode.GET_LITE_CLIENT_INFO: self.client,
            RequestCode.GET_LITE_GROUP_INFO: self.group,
            RequestCode.TRIGGER_LITE_DISPATCH: self.dispatch,
        }

    def broker(self, command: Command, peer: Peer) -> Reply:
        """How much of everything there is."""
        count = len(self._lite)
        body = BrokerLiteFigures(
            store_type=_STORE_TYPE,
            max_lmq_num=self._settings.config.lite_topics_max,
            current_lmq_num=count,
            lite_subscription_count=self._subscriptions.count,
            order_info_count=sum(key.startswith(QUEUE_PREFIX) for key in self._orders.names()),
            cq_table_size=count,
            offset_table_size=len(self._offsets.names()),
            event_map_size=len(self._subscriptions),
            topic_meta=dict(self._rules.minutes()),
            group_meta=self._rules.groups_of(),
        )
        return Reply(body=body.encode())

    def parent(self, command: Command, peer: Peer) -> Reply:
        """How many lite topics a parent topic has, and its groups.

        Raises:
            TopicNotFound, InvalidParameter: there is no such parent topic.
        """
        topic = self._rules.parent(command.read(ParentTopicInfo).topic).topic_name
        body = ParentTopicFigures(
            topic=topic,
            ttl=self._rules.minutes_of(topic),
            lmq_num=len(self._lite),
            lite_topic_count=self._lite.count(topic),
            groups=self._rules.groups_of().get(topic),
        )
        return Reply(body=body.encode())

    async def lite(self, command: Command, peer: Peer) -> Reply:
        """The offsets of a lite topic, and who subscribes it.

        Raises:
            TopicNotFound, InvalidParameter: there is no such parent topic.
            StoreError: the disk failed.
        """
        header = command.read(LiteTopicInfo)
        parent = self._rules.parent(header.parent_topic).topic_name
        name = LiteName(parent, header.lite_topic or "")
        place, last_ms = self._lite.last_place(name), 0
        if place is not None:
            await self._store.cold.load_record(place)
            last_ms = max(0, self._lite.read_last_ms(name))
        clients = [
            ClientOfGroup(client_id=client_id, group=group)
            for group in self._subscriptions.groups(name)
            for client_id in self._clients(name, group)
        ]
        body = LiteTopicFigures(
            parent_topic=parent,
            lite_topic=name.lite,
            subscriber=clients,
            topic_offset=LiteOffsets(
                min_offset=self._lite.min_offset(name),
                max_offset=self._lite.max_offset(name),
                last_update_timestamp=last_ms,
            ),
            sharding_to_broker=True,
        )
        return Reply(body=body.encode())

    def _clients(self, name: LiteName, group: str) -> list[str]:
        if self._rules.is_wildcard(group):
            return [_EVERY_CLIENT]
        return self._subscriptions.subscribers(name, group)

    def client(self, command: Command, peer: Peer) -> Reply:
        """What a client subscribes.

        Raises:
            TopicNotFound, GroupNotFound: there is no such topic or group.
            InvalidParameter: the topic has no lite topics, or the group is not bound to it.
        """
        header = command.read(LiteClientInfo)
        parent = self._rules.parent(header.parent_topic).topic_name
        group = self._rules.group(header.group).group_name
        if self._rules.bound_to(group) != parent:
            raise InvalidParameter(f"Subscription [{group}]-[{parent}] not match.")
        client = self._subscriptions.find(header.client_id or "")
        body = LiteClientFigures(
            parent_topic=parent,
            group=group,
            client_id=header.client_id,
            lite_topic_count=-1,
            last_access_time=-1,
        )
        if client is not None and (client.group, client.parent) == (group, parent):
            count = max(0, min(header.max_count, _NAMES_MAX))
            body.lite_topic_count = len(client.lites)
            body.lite_topic_set = [
                LiteName(client.parent, lite).queue for lite in islice(client.lites, count)
            ]
            body.last_access_time = client.asked_ms or -1
        return Reply(body=body.encode())

    async def group(self, command: Command, peer: Peer) -> Reply:
        """The lag of a group: in one lite topic, or in all with those where it is largest.

        Raises:
            GroupNotFound: there is no such group.
            InvalidParameter: it is bound to no parent topic.
            StoreError: the disk failed.
        """
        header = command.read(LiteGroupInfo)
        parent = self._rules.bound_group(header.group)
        body = LiteGroupFigures(
            group=header.group, parent_topic=parent, lite_topic=header.lite_topic
        )
        if header.lite_topic:
            await self._fill_one(body, LiteName(parent, header.lite_topic))
        else:
            await self._fill_all(body, parent, max(0, min(header.top_k, _NAMES_MAX)))
        return Reply(body=body.encode())

    async def _fill_one(self, body: LiteGroupFigures, name: LiteName) -> None:
        group, end = body.group or "", self._lite.max_offset(name)
        committed = self._offsets.committed(group, name.queue, QUEUE)
        if not end:
            body.total_lag_count = -1
        elif committed is not None:
            body.total_lag_count = end - committed
            body.earliest_unconsumed_timestamp = await self._time_of(name, committed)
            body.lite_topic_offset_wrapper = LiteGroupOffsets(
                broker_offset=end,
                consumer_offset=committed,
                last_timestamp=max(0, await self._time_of(name, committed - 1)),
            )

    async def _fill_all(self, body: LiteGroupFigures, parent: str, top: int) -> None:
        lags: list[tuple[LiteName, LiteLag]] = []
        group, total = body.group or "", 0
        for number, name in enumerate(self._lite.names(parent), 1):
            committed = self._offsets.committed(group, name.queue, QUEUE)
            if committed is not None and (lag := self._lite.max_offset(name) - committed) > 0:
                total += lag
                lags.append((name, LiteLag(lite_topic=name.lite, lag_count=lag)))
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        for number, (name, lag_of) in enumerate(lags, 1):
            committed = self._offsets.committed(group, name.queue, QUEUE) or 0
            lag_of.earliest_unconsumed_timestamp = await self._time_of(name, committed)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        found = [lag_of for _, lag_of in lags]
        by_time = attrgetter("earliest_unconsumed_timestamp")
        timed = [each for each in found if by_time(each) >= 0]
        body.total_lag_count = total
        body.lag_count_top_k = nlargest(top, found, key=attrgetter("lag_count"))
        body.lag_timestamp_top_k = nsmallest(top, timed, key=by_time)
        body.earliest_unconsumed_timestamp = min(map(by_time, timed), default=-1)

    async def _time_of(self, name: LiteName, offset: int) -> int:
        """When a message was stored, ms; -1 if it is not there."""
        if offset < self._lite.min_offset(name):
            return -1
        for log_offset in self._lite.places(name, offset, 1):
            await self._store.cold.load_record(log_offset)
        return self._lite.time_of(name, offset)

    def dispatch(self, command: Command, peer: Peer) -> Reply:
        """Looks again for messages of all that a group's clients subscribe, or one of them.

        Raises:
            GroupNotFound: there is no such group.
            InvalidParameter: it is bound to no parent topic.
        """
        header = command.read(TriggerLiteDispatch)
        self._rules.bound_group(header.group)
        for client in self._subscriptions.clients_of(header.group):
            if header.client_id in (None, "", client.client_id):
                self._look(client)
        return Reply()
