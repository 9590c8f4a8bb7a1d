"""Reads sends: turns a request into an `Intake`, the value that `Ingress` accepts.

Topic and queue are found, or the topic is created; the properties are parsed; the broker adds its
own properties. Most sends need none of this: `run_reader` gives the same values faster.
Source: SendMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from sprocket.base.errors import (
    IllegalMessage,
    InvalidParameter,
    NoPermission,
    RemoteProtocolError,
    TopicNotFound,
)
from sprocket.base.ports import Clock, Entropy
from sprocket.broker.dispatch import FAQ
from sprocket.broker.sending.destination import Intake, check_batched
from sprocket.broker.sending.group_rules import GroupRules
from sprocket.broker.sending.stamp import Stamp
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.topics import Topics
from sprocket.message import properties as names
from sprocket.message.batch import decode as decode_batch
from sprocket.message.compression import COMPRESSED
from sprocket.message.drafting import drafted
from sprocket.message.hosts import pack
from sprocket.message.inner_batch import WRAPPED
from sprocket.message.lite import LiteName, fault_of_lite_topic
from sprocket.message.properties import (
    PROPERTIES_BYTES_MAX,
    SENT_PROPERTIES_BYTES_MAX,
    SENT_TEXT_SHORT,
    decode,
    encode,
)
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
from sprocket.message.topic_attributes import (
    MessageType,
    has_batch_queues,
    is_compacted,
    message_type,
    priority_of,
    topic_type,
)
from sprocket.protocol.bodies import TopicConfig
from sprocket.protocol.command import Buffer, Command
from sprocket.protocol.requests.send import SendBatch, SendMessage, SendMessageV2
from sprocket.remoting.transport import Peer

SendHeader = SendMessage | SendMessageV2

#: Bit of `sys_flag`: the topic's messages carry several tags.
_MULTI_TAG = 0x2
#: The bits of `sys_flag` that a sender may set.
SENDERS_BITS = ~(TRANSACTION_MASK | WRAPPED)
#: Messages in one batch at most.
BATCH_COUNT_MAX = 10_000


class SendReader:
    """Reads sends of every kind."""

    def __init__(
        self,
        placing: Placing,
        *,
        rules: GroupRules,
        stamp: Stamp,
        clock: Clock,
        settings: BrokerSettings,
    ) -> None:
        self._placing = placing
        self._rules = rules
        self._stamp = stamp
        self._clock = clock
        self._settings = settings

    # The order of the checks is RocketMQ's: a send that is wrong in two ways gets the same reply.
    def read_send(self, header: SendHeader, command: Command, peer: Peer) -> Intake:
        """Reads a message or a batch.

        Raises:
            IllegalMessage: it has no body or too long properties, lacks the keys that its topic
                asks for, or is a batch that is too large or addressed to a retry topic.
            InvalidParameter, NoPermission, TopicNotFound: as `Placing.place`.
            RemoteProtocolError: its body is not the batch that its header announces.
            GroupNotFound: its retry topic belongs to a group that may not be created.
        """
        is_batch = header.batch or isinstance(header, SendBatch)
        if not command.body:
            raise IllegalMessage("the message body is empty")
        if is_batch and is_retry_topic(header.topic):
            raise IllegalMessage(f"batch request does not support retry group {header.topic}")
        topic, number = self._placing.place(header, peer)
        if is_batch:
            self._check_batch(header, command)
        text, sys_flag = header.properties or "", stored_flag(header.sys_flag, topic)
        if len(text) > PROPERTIES_BYTES_MAX:  # a text of any length would take long to parse
            raise IllegalMessage(
                f"the message is illegal: the properties have {len(text.encode())} bytes, at most "
                f"{PROPERTIES_BYTES_MAX} are allowed"
            )
        properties, now_ms = decode(text), self._clock.now_ms()
        has_key = names.UNIQUE_KEY in properties
        self._stamp.mark(properties, now_ms, is_retry=is_retry_topic(header.topic))
        if not is_retry_topic(header.topic):
            check_room(text, properties)
        if names.PRIORITY in properties and not is_batch:
            number = queue_by_priority(properties, topic, number)
        if is_compacted(topic.attributes) and not is_batch and not properties.get(names.KEYS, ""):
            raise IllegalMessage("Required message key is missing")
        if names.HALF in properties and not is_batch:
            properties.setdefault(names.PRODUCER_GROUP, header.producer_group)
        draft = drafted(
            properties,
            topic=topic.topic_name,
            queue_number=number,
            body=command.body,
            flag=header.flag,
            sys_flag=sys_flag,
            born_ms=header.born_timestamp,
            born_host=pack(peer.address),
            reconsume_times=header.reconsume_times,
        )
        if is_batch and has_batch_queues(topic.attributes) and has_key:
            return Intake(draft, properties, inner_count=self._inner_count(command.body))
        if is_batch:
            return Intake(draft, properties, parts=self._parts(draft, now_ms))
        if not is_retry_topic(draft.topic):
            return Intake(draft, properties, lite=lite_of(properties, topic))
        return Intake(draft, properties, self._rules.retry_of_send(header, draft, command.version))

    def _check_batch(self, header: SendHeader, command: Command) -> None:
        if header.sys_flag & COMPRESSED:
            raise RemoteProtocolError("a batch cannot be compressed as a whole")
        bytes_max = self._settings.store.message_bytes_max
        if len(command.body) > bytes_max:
            raise IllegalMessage(
                f"the batch has {len(command.body)} bytes, at most {bytes_max} are allowed"
            )

    def _inner_count(self, body: Buffer) -> int:
        """How many messages a batch has that is kept as one record; they are stored as they are.

        Raises:
            IllegalMessage: there are none or too many, or one asks for what only a message by
                itself gets: a delay or a transaction.
        """
        parts = decode_batch(body)
        if not 0 < len(parts) <= BATCH_COUNT_MAX:
            raise IllegalMessage(f"a batch has 1 to {BATCH_COUNT_MAX} messages, not {len(parts)}")
        for _, _, text in parts:
            if len(text) > PROPERTIES_BYTES_MAX:
                raise IllegalMessage("a message of the batch has too long properties")
            check_batched(decode(text))
        return len(parts)

    def _parts(self, envelope: Draft, now_ms: int) -> list[Intake]:
        """The messages of a batch, each with its own properties."""
        parts = decode_batch(envelope.body)
        if not 0 < len(parts) <= BATCH_COUNT_MAX:
            raise IllegalMessage(f"a batch has 1 to {BATCH_COUNT_MAX} messages, not {len(parts)}")
        intakes = []
        for flag, body, text in parts:
            properties = decode(text)
            self._stamp.mark(properties, now_ms)
            check_room(text, properties)
            draft = drafted(
                properties,
                topic=envelope.topic,
                queue_number=envelope.queue_number,
                body=body,
                flag=flag,
                sys_flag=envelope.sys_flag,
                born_ms=envelope.born_ms,
                born_host=envelope.born_host,
            )
            intakes.append(Intake(draft, properties))
        return intakes


def queue_by_priority(properties: dict[str, str], topic: TopicConfig, number: int) -> int:
    """The queue of a message with a priority: that of its number, or the last one.

    The priority of a message that is of another type, such as a delayed one, is removed; one that
    is no number counts for nothing. The topic need not be for priorities: consumers that pull get
    the message as any other.

    Args:
        number: the queue to which it was sent.
    """
    priority = priority_of(properties)
    if priority < 0:
        return number
    if message_type(properties) is not MessageType.PRIORITY:
        del properties[names.PRIORITY]
        return number
    return max(0, min(priority, topic.write_queue_nums - 1))


def lite_of(properties: Mapping[str, str], topic: TopicConfig) -> LiteName | None:
    """The lite topic of a message; None if it has none. One that is sent to a topic that is not for
    such messages is in none either, as nobody could pop it there.

    Raises:
        IllegalMessage: its name is not valid, or the message has to wait.
    """
    lite = properties.get(names.LITE_TOPIC)
    if lite is None or topic_type(topic.attributes) is not MessageType.LITE:
        return None
    if fault := fault_of_lite_topic(lite):
        raise IllegalMessage(fault)
    if (kind := message_type(properties)) is not MessageType.LITE:
        raise IllegalMessage(
            f"a message with a lite topic cannot be of type {kind.value} as well: it would wait, "
            "or have an order of its own"
        )
    return LiteName(topic.topic_name, lite)


def check_room(text: str, properties: Mapping[str, str]) -> None:
    """Refuses properties that leave no room for what the broker adds when the message has to wait.

    Args:
        text: as it was sent; most are so short that nothing need be counted.

    Raises:
        IllegalMessage: they are too long.
    """
    if len(text) > SENT_TEXT_SHORT:
        size = len(encode(properties).encode("utf-8", "replace"))
        if size > SENT_PROPERTIES_BYTES_MAX:
            raise IllegalMessage(
                f"the message is illegal: the properties have {size} bytes with those of the "
                f"broker, at most {SENT_PROPERTIES_BYTES_MAX} bytes are allowed"
            )


def stored_flag(sys_flag: int, topic: TopicConfig) -> int:
    """The sender's bits without those of brokers, which would hide the message from its queue, or
    make it a batch."""
    sys_flag &= SENDERS_BITS
    return sys_flag | _MULTI_TAG if topic.topic_filter_type == "MULTI_TAG" else sys_flag


class Placing:
    """Finds topic and queue of a message, and creates the topic if that is allowed.

    Args:
        static: names of static topics, whose queues have other numbers for clients.
    """

    def __init__(
        self,
        topics: Topics,
        *,
        static: Container[str],
        settings: BrokerSettings,
        entropy: Entropy,
    ) -> None:
        self._static = static
        self._topics = topics
        self._by_name = topics.by_name
        self._settings = settings
        self._entropy = entropy
        self._closed = CLOSED_TOPICS | {settings.config.audit_topic}

    def open_topic(self, name: str) -> TopicConfig | None:
        """The topic of a name if it exists and accepts any message; None if it must be checked."""
        topic = self._by_name.get(name)
        if topic is None or topic.order or name in self._closed or name in self._static:
            return None
        return topic

    def staged_topic(self, name: str) -> TopicConfig | None:
        """The topic of a name if staged messages can be stored in it."""
        if name in self._closed or name in self._static or is_retry_topic(name):
            return None
        return self._by_name.get(name)

    def plain_topic(self, name: str) -> tuple[int, int] | None:
        """The write queues of a topic that takes a message unread, and bits for the system flags of
        its messages; None if a message to it must be read alone."""
        topic = self.open_topic(name)
        if topic is None or name.startswith(RETRY_PREFIX):
            return None
        if topic.attributes and is_compacted(topic.attributes):
            return None
        return topic.write_queue_nums, stored_flag(0, topic)

    def place(self, header: SendHeader, peer: Peer) -> tuple[TopicConfig, int]:
        """The topic and the queue number of a send.

        Raises:
            InvalidParameter: the topic's name or the queue is invalid.
            NoPermission: the topic is the broker's own.
            TopicNotFound: it is unknown and may not be created.
        """
        topic = self.open_topic(header.topic)
        if topic is None:
            topic = self.checked_topic(
                header.topic,
                template=header.default_topic,
                queues=header.default_topic_queue_nums,
                sys_flag=_unit_flag(header),
            )
        number = header.queue_id
        if 0 <= number < topic.write_queue_nums:
            return topic, number
        return topic, self._other_queue(topic, number, peer)

    def checked_topic(
        self, name: str, *, template: str, queues: int, sys_flag: int = 0
    ) -> TopicConfig:
        """The topic of a name, created from a template if that is allowed.

        Raises:
            InvalidParameter, NoPermission, TopicNotFound: as `place`.
        """
        topic = self._by_name.get(name)
        config = self._settings.config
        if topic is not None and topic.order and not is_writable(config.permission):
            raise NoPermission(f"the broker[{config.name}] sending message is forbidden")
        if fault := fault_of_topic(name):
            raise InvalidParameter(fault)
        if name in self._closed:
            raise NoPermission(f"Sending message to topic[{name}] is forbidden.")
        if topic is None:
            topic = self._topics.make_by_send(
                name, template=template, queues=queues, sys_flag=sys_flag
            )
        if topic is None:
            raise TopicNotFound(f"topic[{name}] not exist, apply first please!\n{FAQ}")
        return topic

    def _other_queue(self, topic: TopicConfig, number: int, peer: Peer) -> int:
        """The queue for a number that is outside the queues to write to; negative: any queue."""
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
