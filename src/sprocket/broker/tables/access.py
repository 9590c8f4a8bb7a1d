"""Permission to read: the checks before a pull, in RocketMQ's order and with its remarks.

Source: PullMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.errors import (
    GroupNotFound,
    InvalidParameter,
    NoPermission,
    SubscriptionMissing,
    SubscriptionOutdated,
    SystemFailure,
    TopicNotFound,
)
from sprocket.broker.dispatch import FAQ
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.code_filters import Choose, CodeFilters
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.message_filters import is_code, wants_of
from sprocket.broker.tables.topics import Topics
from sprocket.message.topic import is_readable
from sprocket.message.topic_attributes import has_batch_queues
from sprocket.protocol.bodies import GroupConfig, SubscriptionData, TopicConfig
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Header
from sprocket.protocol.requests.pull import (
    CLASS_FILTER,
    SUBSCRIPTION,
    ForbiddenReply,
    PullMessage,
)
from sprocket.remoting.transport import Peer
from sprocket.store.reading.queue_reader import ReadFilter

#: Why reading is forbidden, as the reply's header encodes it. Source: ForbiddenType.
BY_BROKER, BY_GROUP, BY_TOPIC, BY_BROADCASTING, BY_SUBSCRIPTION = 1, 2, 3, 4, 5


class Forbidden(NoPermission):
    """Reading is forbidden; the header of the reply names the reason."""

    def __init__(self, remark: str, kind: int) -> None:
        super().__init__(remark)
        self.header: Header = ForbiddenReply(forbidden_type=kind)


class Permit(NamedTuple):
    """A pull that is allowed.

    Attributes:
        wants: the filter of the subscription; None for all messages.
        choose: the group's filter in Python, which runs in another process; None if it has none.
    """

    topic: TopicConfig
    group: GroupConfig
    wants: ReadFilter | None
    choose: Choose | None = None


class ReadAccess:
    """Decides which pulls are allowed."""

    def __init__(
        self,
        topics: Topics,
        groups: Groups,
        *,
        clients: ClientTable,
        settings: BrokerSettings,
        filters: CodeFilters,
    ) -> None:
        self._filters = filters
        self._topics = topics
        self._groups = groups
        self._clients = clients
        self._settings = settings

    def permit(self, header: PullMessage, peer: Peer) -> Permit:
        """The topic, group and filter of a pull.

        Raises:
            Forbidden: broker, group or topic may not be read.
            GroupNotFound, TopicNotFound, InvalidParameter: there is no such group, topic, queue.
            SubscriptionMissing, SubscriptionOutdated, SubscriptionInvalid: the group's
                subscription is unknown, older than the client's, or cannot be parsed.
            SystemFailure: the subscription's type of filter is switched off.
            FilterMissing, FilterFailed: its filter in Python is not uploaded, or does not work.
        """
        config = self._settings.config
        if not is_readable(config.permission):
            raise Forbidden(f"the broker[{config.name}] pulling message is forbidden", BY_BROKER)
        if header.code == RequestCode.LITE_PULL_MESSAGE and not config.lite_pull:
            raise Forbidden(
                f"the broker[{config.name}] for lite pull consumer is forbidden", BY_BROKER
            )
        group = self._group(header.consumer_group)
        topic = self._topic(header, peer)
        if not header.sys_flag & SUBSCRIPTION:
            known = self._known(header, group)
            kind, text, codes = known.expression_type, known.sub_string, known.code_set
            is_class = known.class_filter_mode
        else:  # the pull carries its own subscription
            kind, text, codes = header.expression_type, header.subscription, []
            is_class = bool(header.sys_flag & CLASS_FILTER)
        if is_code(kind) or is_class:
            if has_batch_queues(topic.attributes):
                raise SystemFailure("filters in Python do not see the messages of batches")
            choose = self._filters.choose(header.consumer_group, header.topic, text)
            return Permit(topic, group, None, choose)
        return Permit(topic, group, wants_of(kind, text, config, codes=codes))

    def _group(self, name: str) -> GroupConfig:
        group = self._groups.find(name)
        if group is None:
            raise GroupNotFound(f"subscription group [{name}] does not exist, \n{FAQ}")
        if not group.consume_enable:
            raise Forbidden(f"subscription group no permission, {name}", BY_GROUP)
        return group

    def _topic(self, header: PullMessage, peer: Peer) -> TopicConfig:
        name = header.topic
        topic = self._topics.by_name.get(name)
        if topic is None:
            raise TopicNotFound(f"topic[{name}] not exist, apply first please! \n{FAQ}")
        if not is_readable(topic.perm):
            raise Forbidden(f"the topic[{name}] pulling message is forbidden", BY_TOPIC)
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise InvalidParameter(
                f"queueId[{header.queue_id}] is illegal, topic:[{name}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{peer.address}]"
            )
        return topic

    def _known(self, header: PullMessage, config: GroupConfig) -> SubscriptionData:
        """The subscription that the group's heartbeats reported."""
        group = self._clients.group(header.consumer_group)
        if group is None:
            raise SubscriptionMissing(f"the consumer's group info not exist\n{FAQ}")
        if group.is_broadcasting and not config.consume_broadcast_enable:
            raise Forbidden(
                f"the consumer group[{group.name}] can not consume by broadcast way",
                BY_BROADCASTING,
            )
        if self._groups.is_forbidden(group.name, header.topic):
            raise Forbidden(
                f"the consumer group[{group.name}] is forbidden for topic[{header.topic}]",
                BY_SUBSCRIPTION,
            )
        subscription = group.subscriptions.get(header.topic)
        if subscription is None:
            raise SubscriptionMissing(f"the consumer's subscription not exist\n{FAQ}")
        if subscription.sub_version < header.sub_version:
            raise SubscriptionOutdated("the consumer's subscription not latest")
        return subscription
