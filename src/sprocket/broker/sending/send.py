"""Sending: one message (codes 10 and 310) or a batch (320), whatever it asks for.

A send is answered at once unless the broker has to wait for its disk. The broker marks each message
with its region, cluster and the wish for traces, and gives it a unique key if its sender did not.
Most messages ask for nothing and never come here: see `plain_sends`.
Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable

from sprocket.base.errors import (
    IllegalMessage,
    InvalidParameter,
    NoPermission,
    RemoteProtocolError,
    TopicNotFound,
)
from sprocket.base.ports import Clock, Entropy
from sprocket.broker.dispatch import Answers
from sprocket.broker.sending.ingress import Ingress, after
from sprocket.broker.sending.retries import GroupRules
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.settings import Settings
from sprocket.broker.tables.access import FAQ
from sprocket.broker.tables.topics import Topics
from sprocket.delay.timers.timed import handle_of
from sprocket.message import properties as names
from sprocket.message.batch import decode as decode_batch
from sprocket.message.compression import COMPRESSED
from sprocket.message.hashing import tag_code
from sprocket.message.hosts import pack
from sprocket.message.properties import PROPERTIES_BYTES_MAX, decode
from sprocket.message.record import TRANSACTION_MASK, Draft
from sprocket.message.topic import (
    CLOSED_TOPICS,
    RETRY_PREFIX,
    UNIT,
    UNIT_SUBSCRIPTION,
    fault_of_topic,
    is_retry_topic,
    is_writable,
    permission_text,
)
from sprocket.protocol.bodies import TopicConfig
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.send import SendBatch, SendMessage, SendMessageV2
from sprocket.remoting.transport import Peer

SendHeader = SendMessage | SendMessageV2
Answer = Reply | Awaitable[Reply]

#: Bit of `sys_flag`: the topic's messages carry several tags.
_MULTI_TAG = 0x2
#: Messages that one batch may hold.
BATCH_COUNT_MAX = 10_000


class Sends:
    """Answers sends."""

    def __init__(
        self,
        ingress: Ingress,
        placing: Placing,
        *,
        rules: GroupRules,
        stamp: Stamp,
        clock: Clock,
        batch_bytes_max: int,
    ) -> None:
        self._ingress = ingress
        self._placing = placing
        self._rules = rules
        self._stamp = stamp
        self._clock = clock
        self._batch_bytes_max = batch_bytes_max

    def answers(self) -> Answers:
        """By request code."""
        return {
            RequestCode.SEND_MESSAGE: self.send_long,
            RequestCode.SEND_MESSAGE_V2: self.send,
            RequestCode.SEND_BATCH_MESSAGE: self.send_batch,
        }

    def send(self, command: Command, peer: Peer) -> Answer:
        """One message, or a batch; the header's names have one letter."""
        header = command.read(SendMessageV2)
        if header.batch:
            return self._send_batch(header, command, peer)
        return self._send_one(header, command, peer)

    def send_long(self, command: Command, peer: Peer) -> Answer:
        """The same with long names."""
        header = command.read(SendMessage)
        send = self._send_batch if header.batch else self._send_one
        return send(header, command, peer)

    def send_batch(self, command: Command, peer: Peer) -> Answer:
        """A batch."""
        return self._send_batch(command.read(SendBatch), command, peer)

    def _send_one(self, header: SendHeader, command: Command, peer: Peer) -> Answer:
        body = command.body
        if not body:
            raise IllegalMessage("the message body is empty")
        topic, queue_number = self._placing.place(header, peer)
        text = header.properties or ""
        if len(text) > PROPERTIES_BYTES_MAX:
            raise _too_long(text)
        properties = decode(text)
        unique_key = self._stamp.mark(properties, self._clock.now_ms())
        if names.HALF in properties:
            properties.setdefault(names.PRODUCER_GROUP, header.producer_group)
        draft = Draft(
            topic.topic_name,
            queue_number,
            body,
            b"",
            tag_code(properties.get(names.TAGS)),
            header.flag,
            stored_flag(header.sys_flag, topic),
            header.born_timestamp,
            pack(peer.address),
            header.reconsume_times,
            keys=properties.get(names.KEYS, ""),
            unique_key=unique_key,
        )
        waits_as = properties
        if draft.topic.startswith(RETRY_PREFIX):
            self._divert(draft, properties, header, command.version)
            queue_number = draft.queue_number
            waits_as = {}  # a consumer gives it back: however it was sent first
        appended = self._ingress.accept(draft, properties)
        reply = self._stamp.reply(appended, queue_number=queue_number, unique_key=unique_key)
        if names.TIMER_OUT_MS in properties:
            reply.recall_handle = handle_of(properties, self._stamp.broker)
        settled = self._ingress.settled(appended, waits_as)
        return Reply(reply) if settled is None else after(settled, reply)

    def _send_batch(self, header: SendHeader, command: Command, peer: Peer) -> Answer:
        if not command.body:
            raise IllegalMessage("the message body is empty")
        if is_retry_topic(header.topic):
            raise IllegalMessage(f"batch request does not support retry group {header.topic}")
        topic, queue_number = self._placing.place(header, peer)
        if header.sys_flag & COMPRESSED:
            raise RemoteProtocolError("a batch cannot be compressed as a whole")
        now_ms = self._clock.now_ms()
        if len(command.body) > self._batch_bytes_max:
            raise IllegalMessage(
                f"the batch has {len(command.body)} bytes, at most {self._batch_bytes_max} are "
                "allowed"
            )
        envelope = decode(_checked(header.properties or ""))
        batch_key = self._stamp.mark(envelope, now_ms)
        born_host, sys_flag = pack(peer.address), stored_flag(header.sys_flag, topic)
        drafts, all_properties = [], []
        parts = decode_batch(command.body)
        if not 0 < len(parts) <= BATCH_COUNT_MAX:
            raise IllegalMessage(f"a batch has 1 to {BATCH_COUNT_MAX} messages, not {len(parts)}")
        for flag, body, text in parts:
            properties = decode(text)
            unique_key = self._stamp.mark(properties, now_ms)
            drafts.append(
                Draft(
                    topic=topic.topic_name,
                    queue_number=queue_number,
                    body=body,
                    properties=b"",
                    tag_code=tag_code(properties.get(names.TAGS)),
                    flag=flag,
                    sys_flag=sys_flag,
                    born_ms=header.born_timestamp,
                    born_host=born_host,
                    keys=properties.get(names.KEYS, ""),
                    unique_key=unique_key,
                )
            )
            all_properties.append(properties)
        appended = self._ingress.accept_batch(drafts, all_properties)
        reply = self._stamp.reply_batch(appended, queue_number=queue_number, unique_key=batch_key)
        settled = self._ingress.settled(appended[-1], envelope)
        return Reply(reply) if settled is None else after(settled, reply)

    def _divert(
        self, draft: Draft, properties: dict[str, str], header: SendHeader, version: int
    ) -> None:
        """Sends a message that was tried too often to its group's dead letters."""
        topic = self._rules.diverted(
            draft.topic,
            times=header.reconsume_times,
            told_max=header.max_reconsume_times,
            version=version,
        )
        if topic is not None:
            draft.topic, draft.queue_number = topic, 0
            properties[names.DELAY] = "0"


def _checked(properties: str) -> str:
    """The text, which is not taken apart before it is known to be of a sane length."""
    if len(properties) > PROPERTIES_BYTES_MAX:
        raise _too_long(properties)
    return properties


def _too_long(properties: str) -> IllegalMessage:
    return IllegalMessage(
        f"the message is illegal: the properties have {len(properties)} characters, at most "
        f"{PROPERTIES_BYTES_MAX} bytes are allowed"
    )


def stored_flag(sys_flag: int, topic: TopicConfig) -> int:
    """The sender's bits; those of transactions would hide the message from its queue."""
    sys_flag &= ~TRANSACTION_MASK
    return sys_flag | _MULTI_TAG if topic.topic_filter_type == "MULTI_TAG" else sys_flag


class Placing:
    """Finds topic and queue for a message, and makes the topic if it may."""

    def __init__(self, topics: Topics, *, settings: Settings, entropy: Entropy) -> None:
        self._topics = topics
        self._by_name = topics.by_name
        self._settings = settings
        self._entropy = entropy

    def open_topic(self, name: str) -> TopicConfig | None:
        """The topic of a name, if it is there and takes messages without a closer look."""
        topic = self._by_name.get(name)
        return None if topic is None or topic.order or name in CLOSED_TOPICS else topic

    def place(self, header: SendHeader, peer: Peer) -> tuple[TopicConfig, int]:
        """Where a send goes.

        Raises:
            InvalidParameter: the topic's name or the queue cannot be.
            NoPermission: the topic is the broker's own.
            TopicNotFound: it is unknown and may not be made.
        """
        topic = self.open_topic(header.topic)
        if topic is None:
            topic = self._look_closer(header, self._by_name.get(header.topic))
        number = header.queue_id
        if 0 <= number < topic.write_queue_nums:
            return topic, number
        return topic, self._other_queue(topic, number, peer)

    def _look_closer(self, header: SendHeader, topic: TopicConfig | None) -> TopicConfig:
        name = header.topic
        config = self._settings.config
        if topic is not None and topic.order and not is_writable(config.permission):
            raise NoPermission(f"the broker[{config.name}] sending message is forbidden")
        if fault := fault_of_topic(name):
            raise InvalidParameter(fault)
        if name in CLOSED_TOPICS:
            raise NoPermission(f"Sending message to topic[{name}] is forbidden.")
        if topic is None:
            topic = self._topics.make_by_send(
                name,
                template=header.default_topic,
                queues=header.default_topic_queue_nums,
                sys_flag=_unit_flag(header),
            )
        if topic is None:
            raise TopicNotFound(f"topic[{name}] not exist, apply first please!\n{FAQ}")
        return topic

    def _other_queue(self, topic: TopicConfig, number: int, peer: Peer) -> int:
        """A queue for a number that is not plainly one to write to."""
        if number >= max(topic.write_queue_nums, topic.read_queue_nums):
            raise InvalidParameter(
                f"request queueId[{number}] is illegal, topic {topic.topic_name} has "
                f"{topic.write_queue_nums} queues to write and {topic.read_queue_nums} to read, "
                f"{permission_text(topic.perm)} Producer: {peer.address}"
            )
        if number >= 0:
            return number
        if not topic.write_queue_nums:
            raise InvalidParameter(f"topic {topic.topic_name} has no queue to write")
        return self._entropy.below(topic.write_queue_nums)


def _unit_flag(header: SendHeader) -> int:
    if not header.unit_mode:
        return 0
    return UNIT_SUBSCRIPTION if is_retry_topic(header.topic) else UNIT
