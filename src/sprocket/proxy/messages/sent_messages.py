"""Messages that clients send: checked, and made what a broker takes. Pure.

The text of the properties is written directly: parsing and writing it again would cost more than
the rest. Times and hosts that the record has anyway are no properties of it.
Source: SendMessageActivity of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sprocket.message import batch
from sprocket.message import properties as names
from sprocket.message.compression import COMPRESSED
from sprocket.message.lite import fault_of_lite_topic
from sprocket.message.properties import NAME_END, PAIR_END, RESERVED
from sprocket.message.record import PREPARED
from sprocket.protocol.requests.send import SendBatch, SendMessageV2
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import checks
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.proxy.messages.times import ms_of

_BORN_HOST = "__BORNHOST"
_TRACE_CONTEXT = "TRACE_CONTEXT"

#: What a topic of a type takes; a topic of the type `MIXED` takes all of these.
_MIXED = (pb.NORMAL, pb.FIFO, pb.DELAY, pb.TRANSACTION)
_TYPES_OF_TOPICS: dict[str, tuple[pb.MessageType, ...]] = {
    "NORMAL": (pb.NORMAL,),
    "FIFO": (pb.FIFO,),
    "DELAY": (pb.DELAY,),
    "TRANSACTION": (pb.TRANSACTION,),
    "LITE": (pb.LITE,),
    "PRIORITY": (pb.PRIORITY,),
    "MIXED": _MIXED,
}
UNKNOWN_TYPE = "UNSPECIFIED"


def types_of_topic(attribute: str) -> tuple[pb.MessageType, ...]:
    """The types of messages that a topic takes, by its attribute."""
    return _TYPES_OF_TOPICS.get(attribute, (pb.MESSAGE_TYPE_UNSPECIFIED,))


class SentMessage(NamedTuple):
    """A message that a client sends, ready for a broker.

    Attributes:
        type: what it is, by its properties.
        message_group: its message group, or its lite topic; decides its queue, empty for any.
        properties: as text.
    """

    topic: str
    body: bytes
    properties: str
    sys_flag: int
    born_ms: int
    message_id: str
    type: pb.MessageType
    message_group: str

    def header(self, queue: int, broker: str) -> SendMessageV2:
        """The request that sends it to a queue."""
        return SendMessageV2(
            producer_group=self.topic,
            topic=self.topic,
            queue_id=queue,
            sys_flag=self.sys_flag,
            born_timestamp=self.born_ms,
            properties=self.properties,
            bname=broker,
        )


def read_message(
    message: pb.Message, config: ProxyConfig, *, address: str, now_ms: int, in_batch: bool = False
) -> SentMessage:
    """Checks a message and makes it ready.

    Args:
        address: of the client, for a message that does not say where it was born.
        in_batch: whether others go with it: then its time of birth is a property.

    Raises:
        CallRefused: the service refuses it.
    """
    topic = checks.topic_name(message.topic)
    system = message.system_properties
    _check_body(message.body, config)
    text = _user_text(message, system, config)
    message_id = system.message_id
    if not message_id or message_id.isspace():
        raise CallRefused(pb.ILLEGAL_MESSAGE_ID, "message id cannot be empty")
    checks.check_word(message_id, pb.ILLEGAL_MESSAGE_ID, "message id")
    kind, group, more = _kind_text(system, topic, config, now_ms)
    born_ms = ms_of(system.born_timestamp) if system.HasField("born_timestamp") else now_ms
    born_host = system.born_host or address
    if checks.has_control(born_host):
        raise CallRefused(pb.BAD_REQUEST, "born host cannot contain control character")
    text += f"{more}{_BORN_HOST}{NAME_END}{born_host}{PAIR_END}"
    if system.trace_context:
        checks.check_word(system.trace_context, pb.BAD_REQUEST, "trace context")
        text += f"{_TRACE_CONTEXT}{NAME_END}{system.trace_context}{PAIR_END}"
    if in_batch:
        text += f"{names.BORN_MS}{NAME_END}{born_ms}{PAIR_END}"
    text += f"{names.UNIQUE_KEY}{NAME_END}{message_id}{PAIR_END}"
    sys_flag = COMPRESSED if system.body_encoding == pb.GZIP else 0
    if kind == pb.TRANSACTION:
        sys_flag |= PREPARED
    return SentMessage(topic, message.body, text, sys_flag, born_ms, message_id, kind, group)


def _check_body(body: bytes, config: ProxyConfig) -> None:
    if not body and config.check_empty_body:
        raise CallRefused(pb.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if len(body) > config.body_bytes_max:
        text = f"message body cannot exceed the max {config.body_bytes_max}"
        raise CallRefused(pb.MESSAGE_BODY_TOO_LARGE, text)


def _user_text(message: pb.Message, system: pb.SystemProperties, config: ProxyConfig) -> str:
    """The text of what the user sets: properties, tag and keys."""
    text = ""
    size = 0
    if message.user_properties:
        text = _properties_text(message, config)
        size = len(text) - 2 * len(message.user_properties)
    if system.tag:
        checks.check_tag(system.tag)
        text += f"{names.TAGS}{NAME_END}{system.tag}{PAIR_END}"
        size += len(system.tag)
    if system.keys:
        for key in system.keys:
            checks.check_word(key, pb.ILLEGAL_MESSAGE_KEY, "key")
        keys = " ".join(system.keys)
        size += len(keys) - len(system.keys) + 1
        if keys:
            text += f"{names.KEYS}{NAME_END}{keys}{PAIR_END}"
    if not text.isascii():
        size += len(text.encode()) - len(text)
    if size > config.property_bytes_max:
        raise CallRefused(
            pb.MESSAGE_PROPERTIES_TOO_LARGE,
            f"the total size of user property is too large, max is {config.property_bytes_max}",
        )
    return text


def _properties_text(message: pb.Message, config: ProxyConfig) -> str:
    given = message.user_properties
    if len(given) > config.properties_max:
        text = f"too many user properties, max is {config.properties_max}"
        raise CallRefused(pb.MESSAGE_PROPERTIES_TOO_LARGE, text)
    pieces = []
    for name, value in given.items():
        if name in RESERVED:
            text = f"property is used by system: {name}"
            raise CallRefused(pb.ILLEGAL_MESSAGE_PROPERTY_KEY, text)
        for part, what in ((name, "key"), (value, "value")):
            if checks.has_control(part):
                raise CallRefused(
                    pb.ILLEGAL_MESSAGE_PROPERTY_KEY,
                    f"the {what} of property cannot contain control character",
                )
        if name and value:  # a text of properties has no others
            pieces.append(f"{name}{NAME_END}{value}{PAIR_END}")
    return "".join(pieces)


def _kind_text(
    system: pb.SystemProperties, topic: str, config: ProxyConfig, now_ms: int
) -> tuple[pb.MessageType, str, str]:
    """The type of a message, its message group, and the text of the properties that say so.

    As in RocketMQ a message is what its properties make it, whatever type it names; only that it
    is a transaction's is said by the type.
    """
    kind = pb.NORMAL
    pieces = []
    lite = system.lite_topic
    if lite:
        kind = pb.LITE
        if fault := fault_of_lite_topic(lite, config.lite_topic_max):
            raise CallRefused(pb.ILLEGAL_LITE_TOPIC, fault)
        pieces.append(f"{names.LITE_TOPIC}{NAME_END}{lite}{PAIR_END}")
    if system.HasField("priority"):
        kind = pb.PRIORITY
        pieces.append(f"{names.PRIORITY}{NAME_END}{_priority(system.priority)}{PAIR_END}")
    group = system.message_group
    if group:
        kind = pb.FIFO
        _check_message_group(group, config.message_group_bytes_max)
        pieces.append(f"{names.SHARDING_KEY}{NAME_END}{group}{PAIR_END}")
    if system.HasField("delivery_timestamp"):
        kind = pb.DELAY
        deliver_ms = ms_of(system.delivery_timestamp)
        if 0 < config.delay_ms_max < deliver_ms - now_ms:
            text = f"the max delay time of message is too large, max is {config.delay_ms_max}"
            raise CallRefused(pb.ILLEGAL_DELIVERY_TIME, text)
        pieces.append(f"{names.TIMER_DELIVER_MS}{NAME_END}{max(deliver_ms, 0)}{PAIR_END}")
    if system.message_type == pb.TRANSACTION:
        kind = pb.TRANSACTION
        pieces.append(f"{names.HALF}{NAME_END}true{PAIR_END}")
        pieces.append(f"{names.PRODUCER_GROUP}{NAME_END}{topic}{PAIR_END}")
        if system.HasField("orphaned_transaction_recovery_duration"):
            seconds = system.orphaned_transaction_recovery_duration.seconds
            pieces.append(_check_after(seconds, config.transaction_check_seconds_max))
    return kind, group or lite, "".join(pieces)


def _priority(priority: int) -> int:
    if priority < 0:
        raise CallRefused(pb.BAD_REQUEST, "the priority must be greater than or equal to 0")
    return priority


def _check_message_group(group: str, bytes_max: int) -> None:
    checks.check_word(group, pb.ILLEGAL_MESSAGE_GROUP, "message group")
    if 0 < bytes_max <= len(group.encode()):
        text = f"message group exceed the max size {bytes_max}"
        raise CallRefused(pb.ILLEGAL_MESSAGE_GROUP, text)


def _check_after(seconds: int, seconds_max: int) -> str:
    if 0 < seconds_max < seconds:
        raise CallRefused(
            pb.BAD_REQUEST,
            f"the max transaction recovery time of message is too large, max is {seconds_max}",
        )
    return f"{names.CHECK_IMMUNITY_SECONDS}{NAME_END}{max(seconds, 0)}{PAIR_END}"


def check_type(kind: pb.MessageType, attribute: str) -> None:
    """Refuses a message in a topic that is for messages of another type.

    Raises:
        CallRefused: code 40014.
    """
    if kind in _TYPES_OF_TOPICS.get(attribute, ()):
        return
    raise CallRefused(
        pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        f"TopicMessageType validate failed, the expected type is {attribute}, but actual type is "
        f"{name_of_type(kind)}",
    )


def batch_of(messages: Sequence[SentMessage], queue: int, broker: str) -> tuple[SendBatch, bytes]:
    """Header and body of the request that sends several messages to one queue.

    Raises:
        CallRefused: they cannot go in one request.
    """
    first = messages[0]
    for message in messages:
        if message.topic != first.topic:
            raise CallRefused(pb.MESSAGE_CORRUPTED, "topic in message is not same")
        if message.type not in (pb.NORMAL, pb.FIFO):
            text = f"a message of type {name_of_type(message.type)} cannot be sent in a batch"
            raise CallRefused(pb.BAD_REQUEST, text)
        if (message.sys_flag, message.message_group) != (first.sys_flag, first.message_group):
            text = "messages of a batch have one encoding and one message group"
            raise CallRefused(pb.BAD_REQUEST, text)
    parts = [batch.BatchedMessage(0, each.body, each.properties) for each in messages]
    header = SendBatch(
        producer_group=first.topic,
        topic=first.topic,
        queue_id=queue,
        sys_flag=first.sys_flag,
        born_timestamp=first.born_ms,
        properties=f"{names.UNIQUE_KEY}{NAME_END}{first.message_id}{PAIR_END}",
        batch=True,
        bname=broker,
    )
    return header, batch.encode(parts)


def name_of_type(kind: pb.MessageType) -> str:
    """The name of a type of messages."""
    return str(pb.MessageType.Name(kind))
