"""Permission to pop: the checks in RocketMQ's order and with its remarks.

Source: PopMessageProcessor, NotificationProcessor, PeekMessageProcessor and PollingInfoProcessor of
RocketMQ 5.3.
"""

from __future__ import annotations

from sprocket.base.errors import (
    GroupNotFound,
    InvalidParameter,
    NoPermission,
    SystemFailure,
    TopicNotFound,
)
from sprocket.broker.dispatch import FAQ
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.attributes import PRIORITY_FACTOR, PRIORITY_FACTOR_MAX
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.message_filters import is_code, wants_of
from sprocket.broker.tables.topics import Topics
from sprocket.message.pop_handle import POP_COUNT_MAX
from sprocket.message.topic import is_readable
from sprocket.message.topic_attributes import MessageType, has_batch_queues, topic_type
from sprocket.protocol.bodies import TopicConfig
from sprocket.protocol.requests.pop import (
    Notification,
    PeekMessage,
    PollingInfo,
    PopMessage,
)
from sprocket.remoting.transport import Peer
from sprocket.store.reading.queue_reader import ReadFilter

#: Characters of an attempt id, which is kept for each queue; clients send a UUID.
_ATTEMPT_MAX = 255


class PopAccess:
    """Decides which pops are allowed."""

    def __init__(self, topics: Topics, groups: Groups, settings: BrokerSettings) -> None:
        self._topics = topics
        self._groups = groups
        self._settings = settings

    def topic(
        self, header: PopMessage | PeekMessage | Notification | PollingInfo, peer: Peer
    ) -> TopicConfig:
        """The topic that a group may pop.

        Raises:
            NoPermission: broker, topic or group may not be read.
            TopicNotFound, GroupNotFound, InvalidParameter: there is no such topic, group, queue.
        """
        config, group = self._settings.config, header.consumer_group
        if not is_readable(config.permission):
            raise NoPermission(f"the broker[{config.name}] peeking message is forbidden")
        topic = self._topics.get(header.topic)
        if topic is None:
            raise TopicNotFound(f"topic[{header.topic}] not exist, apply first please! {FAQ}")
        if not is_readable(topic.perm):
            raise NoPermission(f"the topic[{header.topic}] peeking message is forbidden")
        if header.queue_id >= topic.read_queue_nums:
            raise InvalidParameter(
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{peer.address}]"
            )
        if has_batch_queues(topic.attributes):
            raise InvalidParameter(
                f"topic {header.topic} keeps batches as one message each: it can only be pulled"
            )
        known = self._groups.find(group)
        if known is None:
            raise GroupNotFound(f"subscription group [{group}] does not exist, {FAQ}")
        if not known.consume_enable or self._groups.is_forbidden(group, header.topic):
            raise NoPermission(f"subscription group no permission, {group}")
        return topic

    def by_priority(self, topic: TopicConfig, group: str) -> int:
        """Of 100 pops of a group from a topic, how many go over its queues by priority."""
        if topic_type(topic.attributes) is not MessageType.PRIORITY:
            return 0
        known = self._groups.get(group)
        text = "" if known is None else known.attributes.get(PRIORITY_FACTOR, "")
        return int(text) if text.isascii() and text.isdecimal() else PRIORITY_FACTOR_MAX

    def check_numbers(self, header: PopMessage) -> None:
        """Refuses a pop of too many messages, or for too long.

        Raises:
            InvalidParameter: the number or the time is out of bounds.
            SystemFailure: timers, in which check points wait, are switched off.
        """
        config, store = self._settings.config, self._settings.store
        if not 0 < header.max_msg_nums <= POP_COUNT_MAX:
            raise InvalidParameter(
                f"the broker[{config.name}] pop message's num is greater than {POP_COUNT_MAX}"
                if header.max_msg_nums > 0
                else f"a pop asks for 1 to {POP_COUNT_MAX} messages, not {header.max_msg_nums}"
            )
        if header.attempt_id is not None and len(header.attempt_id) > _ATTEMPT_MAX:
            raise InvalidParameter(f"an attempt id has at most {_ATTEMPT_MAX} characters")
        if not store.timers:
            raise SystemFailure(
                f"the broker[{config.name}] pop message is forbidden because timerWheelEnable is "
                "false"
            )
        self.check_invisible(header.invisible_time)

    def check_invisible(self, invisible_ms: int) -> None:
        """Refuses an invisible time for which no timer waits.

        Raises:
            InvalidParameter: it is out of bounds.
        """
        longest_ms = self._settings.store.timer_delay_seconds_max * 1000
        if not 0 < invisible_ms < longest_ms:
            raise InvalidParameter(
                f"an invisible time is 1 to {longest_ms - 1} ms, not {invisible_ms}"
            )

    def wants(self, header: PopMessage) -> ReadFilter | None:
        """The filter of a pop; None if it wants all messages.

        Raises:
            SubscriptionInvalid: it cannot be parsed.
            SystemFailure: its type is unknown or switched off.
        """
        if not header.exp:
            return None
        if is_code(header.exp_type):
            raise SystemFailure("filters in Python work for pulls only")
        return wants_of(header.exp_type, header.exp, self._settings.config)
