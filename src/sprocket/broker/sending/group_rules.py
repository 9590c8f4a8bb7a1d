"""The rules for messages that a group could not consume: how often they are retried, and where.

Source: AbstractSendMessageProcessor.consumerSendMsgBack, SendMessageProcessor.handleRetryAndDLQ of
RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import GroupNotFound, NoPermission
from sprocket.base.ports import Entropy
from sprocket.broker.dispatch import FAQ
from sprocket.broker.sending.destination import Retry
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.queue_locks import QueueLocks
from sprocket.broker.tables.topics import Topics
from sprocket.message.record import Draft
from sprocket.message.topic import RETRY_PREFIX, UNIT_SUBSCRIPTION, is_writable, retry_topic
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.requests.send import SendBack, SendMessage, SendMessageV2

#: From this version on a client's own limit of retries applies. Source: MQVersion V3_4_9.
_VERSION_OWN_LIMIT = 121
#: The delay level that asks for no further retry.
_NO_TRY = -1


class GroupRules:
    """Derives the retry of a message from its group's configuration."""

    def __init__(
        self,
        topics: Topics,
        groups: Groups,
        *,
        locks: QueueLocks,
        settings: BrokerSettings,
        entropy: Entropy,
    ) -> None:
        self._topics = topics
        self._groups = groups
        self._locks = locks
        self._settings = settings
        self._entropy = entropy

    def retry_of_send_back(self, header: SendBack, version: int) -> Retry | None:
        """The retry of a stored message that is sent back; None if its group has no retries.

        The group's retry topic is created if it is missing.

        Raises:
            GroupNotFound: the group is unknown and may not be created.
            NoPermission: the broker or the retry topic is not writable.
        """
        group = self._group(header.group)
        config = self._settings.config
        if not is_writable(config.permission):
            raise NoPermission(f"the broker[{config.name}] sending message is forbidden")
        if group.retry_queue_nums <= 0:
            return None
        topic = self._topics.make_for_group(
            retry_topic(group.group_name),
            queues=group.retry_queue_nums,
            sys_flag=UNIT_SUBSCRIPTION if header.unit_mode else 0,
        )
        if not is_writable(topic.perm):
            raise NoPermission(f"the topic[{topic.topic_name}] sending message is forbidden")
        return Retry(
            group=header.group,
            times_max=_times_max(group, header.max_reconsume_times, version),
            level=header.delay_level,
            queue_number=self._entropy.below(group.retry_queue_nums),
        )

    def retry_of_send(
        self, header: SendMessage | SendMessageV2, draft: Draft, version: int
    ) -> Retry:
        """The retry of a message that was sent to a retry topic.

        An ordered consumer sends there only when it gives up. So a message that a group sends while
        one of its members holds a queue lock becomes a dead letter at once.

        Raises:
            GroupNotFound: the group is unknown and may not be created.
        """
        name = draft.topic.removeprefix(RETRY_PREFIX)
        group = self._group(name)
        return Retry(
            group=name,
            times_max=_times_max(group, header.max_reconsume_times, version),
            level=_NO_TRY if self._locks.is_ordered(name, loop_ms()) else None,
            queue_number=draft.queue_number,
        )

    def _group(self, name: str) -> GroupConfig:
        group = self._groups.find(name)
        if group is None:
            raise GroupNotFound(f"subscription group not exist, {name} \n{FAQ}")
        return group


def _times_max(group: GroupConfig, asked: int | None, version: int) -> int:
    """How many times a message is retried; a client may set its own limit."""
    return group.retry_max_times if asked is None or version < _VERSION_OWN_LIMIT else asked
