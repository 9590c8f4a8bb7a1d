"""Messages of brokers, as clients of the service get them. Pure.

The service knows one kind of compression, which its clients open: zlib's, as RocketMQ's clients
make it. Bodies of any other kind are opened here.
Source: GrpcConverter of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from hashlib import md5

from sprocket.message import properties as names
from sprocket.message.compression import COMPRESSED
from sprocket.message.hosts import pack
from sprocket.message.ids import offset_id
from sprocket.message.message import StoredMessage
from sprocket.message.opening import Opening
from sprocket.message.properties import RESERVED
from sprocket.proxy.messages import rocketmq_pb2 as pb

_BORN_HOST = "__BORNHOST"
_TRACE_CONTEXT = "TRACE_CONTEXT"
_DEAD_LETTER_TOPIC, _DEAD_LETTER_ID = "DLQ_ORIGIN_TOPIC", "DLQ_ORIGIN_MESSAGE_ID"
#: The bits that say which kind of compression a body has; none of them means zlib.
_KIND_OF_COMPRESSION = 0x700
_INT_MAX = (1 << 31) - 1


def opening_of_answer() -> Opening:
    """Opens the bodies of one answer; those behind the bound stay as they are."""
    return Opening(keeps_rest=True)


def fill_message(
    target: pb.Message,
    message: StoredMessage,
    *,
    handle: str | None,
    opening: Opening,
    now_ms: int,
) -> None:
    """Writes a stored message into one of the service.

    Args:
        target: an empty message.
        handle: its receipt handle, if it was popped.
        opening: see `opening_of_answer`.
        now_ms: for messages that wait for a time from now on.
    """
    properties = message.properties
    target.topic.name = message.queue.topic
    users = target.user_properties
    for name, value in properties.items():
        if name not in RESERVED and name != names.LITE_QUEUE:
            users[name] = value
    system = target.system_properties
    _fill_body(target, system, message, opening)
    tag, keys = properties.get(names.TAGS), properties.get(names.KEYS)
    if tag is not None:
        system.tag = tag
    if keys is not None:
        system.keys.extend(keys.split())
    system.message_id = properties.get(names.UNIQUE_KEY) or offset_id_of(message)
    system.message_type = type_of(properties)
    _fill_times(system, message, now_ms)
    system.born_host = properties.get(_BORN_HOST) or message.born_host.rpartition(":")[0]
    system.store_host = message.store_host
    if handle is not None:
        system.receipt_handle = handle
    system.queue_id = message.queue.number
    system.queue_offset = message.queue_offset
    system.delivery_attempt = min(message.reconsume_times + 1, _INT_MAX)
    _fill_rest(system, properties)


def _fill_rest(system: pb.SystemProperties, properties: dict[str, str]) -> None:
    """What few messages have."""
    group, trace = properties.get(names.SHARDING_KEY), properties.get(_TRACE_CONTEXT)
    if group is not None:
        system.message_group = group
    if trace is not None:
        system.trace_context = trace
    if (text := properties.get(names.PRIORITY)) is not None:
        priority = _number(text)
        if priority is not None and priority <= _INT_MAX:
            system.priority = priority
    if (lite := properties.get(names.LITE_TOPIC)) is not None:
        system.lite_topic = lite
    topic, message_id = properties.get(_DEAD_LETTER_TOPIC), properties.get(_DEAD_LETTER_ID)
    if topic is not None and message_id is not None:
        system.dead_letter_queue.topic = topic
        system.dead_letter_queue.message_id = message_id


def _fill_body(
    target: pb.Message, system: pb.SystemProperties, message: StoredMessage, opening: Opening
) -> None:
    body, flag = message.body, message.sys_flag
    if flag & COMPRESSED and flag & _KIND_OF_COMPRESSION not in (0, 0x300):
        body, flag = opening.open(body, flag, message.queue_offset)
    target.body = body
    system.body_encoding = pb.GZIP if flag & COMPRESSED else pb.IDENTITY
    system.body_digest.type = pb.MD5
    system.body_digest.checksum = md5(body, usedforsecurity=False).hexdigest().upper()


def _fill_times(system: pb.SystemProperties, message: StoredMessage, now_ms: int) -> None:
    born, stored = system.born_timestamp, system.store_timestamp
    born.seconds, born.nanos = message.born_ms // 1000, message.born_ms % 1000 * 1_000_000
    stored.seconds = message.stored_ms // 1000
    stored.nanos = message.stored_ms % 1000 * 1_000_000
    properties = message.properties
    due_ms: int | None = None
    if (text := properties.get(names.TIMER_DELAY_SECONDS)) is not None:
        seconds = _number(text)
        due_ms = None if seconds is None else now_ms + seconds * 1000
    elif (text := properties.get(names.TIMER_DELIVER_MS)) is not None:
        due_ms = _number(text)
    if due_ms is not None:
        system.delivery_timestamp.seconds = due_ms // 1000
        system.delivery_timestamp.nanos = due_ms % 1000 * 1_000_000


def _number(text: str) -> int | None:
    """A number in a property, which anybody may have written."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def type_of(properties: dict[str, str]) -> pb.MessageType:
    """The type of a message by its properties, as RocketMQ's proxy tells it."""
    if properties.get(names.HALF) == "true":
        return pb.TRANSACTION
    if (
        names.DELAY in properties
        or names.TIMER_DELIVER_MS in properties
        or names.TIMER_DELAY_SECONDS in properties
    ):
        return pb.DELAY
    if names.SHARDING_KEY in properties:
        return pb.FIFO
    if names.PRIORITY in properties:
        return pb.PRIORITY
    return pb.LITE if names.LITE_TOPIC in properties else pb.NORMAL


def offset_id_of(message: StoredMessage) -> str:
    """The id of a message that has none from its sender: broker address and log offset."""
    return offset_id(pack(message.store_host), message.log_offset)
