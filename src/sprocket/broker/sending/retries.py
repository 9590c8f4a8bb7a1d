"""Messages that consumers could not consume: another try later, or the group's dead letters.

They come back in two ways: by the log offset of the stored message (code 36), or, from ordered
consumers and from clients whose first attempt failed, as an ordinary send to the retry topic.
Source: AbstractSendMessageProcessor.consumerSendMsgBack, SendMessageProcessor.handleRetryAndDLQ of
RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import GroupNotFound, NoPermission, OffsetOutOfRange, SystemFailure
from sprocket.base.ports import Entropy
from sprocket.broker.dispatch import Answers
from sprocket.broker.sending import rewrite
from sprocket.broker.sending.ingress import Ingress, after
from sprocket.broker.settings import Settings
from sprocket.broker.tables.access import FAQ
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.queue_locks import QueueLocks
from sprocket.broker.tables.topics import Topics
from sprocket.broker.tables.volumes import Volumes
from sprocket.message.properties import decode_bytes
from sprocket.message.record import Record, parse
from sprocket.message.topic import (
    RETRY_PREFIX,
    UNIT_SUBSCRIPTION,
    dead_letter_topic,
    is_writable,
    retry_topic,
)
from sprocket.protocol.bodies import GroupConfig
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.send import SendBack
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: From this version on a client's own limit of tries counts. Source: MQVersion V3_4_9.
_VERSION_OWN_LIMIT = 121


class GroupRules:
    """Where messages that a group could not consume belong."""

    def __init__(self, topics: Topics, groups: Groups, *, locks: QueueLocks) -> None:
        self._topics = topics
        self._groups = groups
        self._locks = locks

    def group(self, name: str) -> GroupConfig:
        """The group's settings.

        Raises:
            GroupNotFound: it is unknown and may not be made.
        """
        group = self._groups.find(name)
        if group is None:
            raise GroupNotFound(f"subscription group not exist, {name} \n{FAQ}")
        return group

    def times_max(self, group: GroupConfig, *, told: int | None, version: int) -> int:
        """How many times a message is offered again; a client may set its own limit."""
        if told is not None and version >= _VERSION_OWN_LIMIT:
            return told
        return group.retry_max_times

    def dead_letters(self, group_name: str) -> str:
        """The group's dead-letter topic, made if it is missing: readable and writable."""
        return self._topics.make_for_group(dead_letter_topic(group_name), queues=1).topic_name

    def retries(self, group: GroupConfig, *, sys_flag: int) -> str:
        """The group's retry topic, made if it is missing.

        Raises:
            NoPermission: it may not be written.
        """
        topic = self._topics.make_for_group(
            retry_topic(group.group_name), queues=group.retry_queue_nums, sys_flag=sys_flag
        )
        if not is_writable(topic.perm):
            raise NoPermission(f"the topic[{topic.topic_name}] sending message is forbidden")
        return topic.topic_name

    def diverted(self, topic: str, *, times: int, told_max: int | None, version: int) -> str | None:
        """The dead-letter topic, if a message sent to a retry topic has used up its tries.

        An ordered consumer sends there only when it gives up, so what a group sends while it
        holds queues in order is a dead letter at once.

        Raises:
            GroupNotFound: the group is unknown and may not be made.
        """
        name = topic.removeprefix(RETRY_PREFIX)
        group = self.group(name)
        times_max = self.times_max(group, told=told_max, version=version)
        is_ordered = self._locks.is_ordered(name, loop_ms())
        return self.dead_letters(name) if times > times_max or is_ordered else None


class SendBacks:
    """Answers requests to take a message back (36)."""

    def __init__(
        self,
        store: Store,
        ingress: Ingress,
        *,
        rules: GroupRules,
        settings: Settings,
        volumes: Volumes,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._volumes = volumes
        self._ingress = ingress
        self._rules = rules
        self._settings = settings
        self._entropy = entropy

    def answers(self) -> Answers:
        """By request code."""
        return {RequestCode.CONSUMER_SEND_MSG_BACK: self.send_back}

    def send_back(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Stores a message again: for another try, or as a dead letter.

        Raises:
            GroupNotFound: the group is unknown.
            NoPermission: the broker or the retry topic takes no writes.
            SystemFailure: there is no such message.
            DiskFull: there is no room.
        """
        header = command.read(SendBack)
        group = self._rules.group(header.group)
        config = self._settings.config
        if not is_writable(config.permission):
            raise NoPermission(f"the broker[{config.name}] sending message is forbidden")
        if group.retry_queue_nums <= 0:
            return Reply()
        self._rules.retries(group, sys_flag=UNIT_SUBSCRIPTION if header.unit_mode else 0)
        record = self._record(header.offset)
        properties = decode_bytes(record.properties)
        times_max = self._rules.times_max(
            group, told=header.max_reconsume_times, version=command.version
        )
        if rewrite.is_given_up(record, level=header.delay_level, times_max=times_max):
            self._rules.dead_letters(header.group)
            draft = rewrite.given_up(record, properties, group=header.group)
        else:
            draft = rewrite.retried(
                record,
                properties,
                group=header.group,
                level=header.delay_level,
                queue_number=self._entropy.below(group.retry_queue_nums),
            )
        appended = self._ingress.accept(draft, properties)
        self._volumes.returned(header.group, record.topic)
        # Even if its sender did not wait: the group's position moves on once this is answered.
        settled = self._ingress.settled(appended, {})
        return Reply() if settled is None else after(settled)

    def _record(self, log_offset: int) -> Record:
        try:
            return parse(self._store.lookup(log_offset))
        except OffsetOutOfRange:
            raise SystemFailure(f"look message by offset failed, {log_offset}") from None
