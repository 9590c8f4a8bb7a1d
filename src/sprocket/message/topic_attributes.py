"""What the attributes of a topic say of its messages and queues, and the type of a message. Pure.

An attribute is a name and a value, both text. A topic that does not have one has its default.
Source: TopicAttributes, TopicMessageType, QueueTypeUtils and CleanupPolicyUtils of RocketMQ 5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from sprocket.message import properties as names

MESSAGE_TYPE = "message.type"
QUEUE_TYPE = "queue.type"
CLEANUP_POLICY = "cleanup.policy"
RESERVE_TIME = "reserve.time"
LITE_EXPIRATION = "lite.topic.expiration"

#: Values of `QUEUE_TYPE`: a unit of the queue for each message, or for each batch.
SIMPLE_QUEUE, BATCH_QUEUE = "SimpleCQ", "BatchCQ"
#: Values of `CLEANUP_POLICY`.
DELETE, COMPACTION = "DELETE", "COMPACTION"

_DELAYS = names.ASK_FOR_TIME | {names.DELAY}
_LOWEST_INT, _HIGHEST_INT = -(1 << 31), (1 << 31) - 1


class MessageType(Enum):
    """What a message is, or which messages a topic is for; `UNSPECIFIED` and `MIXED` are any."""

    UNSPECIFIED = "UNSPECIFIED"
    NORMAL = "NORMAL"
    FIFO = "FIFO"
    DELAY = "DELAY"
    TRANSACTION = "TRANSACTION"
    PRIORITY = "PRIORITY"
    LITE = "LITE"
    MIXED = "MIXED"


#: Values of `MESSAGE_TYPE`.
MESSAGE_TYPES = frozenset(each.value for each in MessageType)


def message_type(properties: Mapping[str, str]) -> MessageType:
    """The type of a message by its properties: each message has exactly one."""
    if properties.get(names.HALF, "").lower() == "true":
        return MessageType.TRANSACTION
    if not _DELAYS.isdisjoint(properties):
        return MessageType.DELAY
    if names.SHARDING_KEY in properties:
        return MessageType.FIFO
    if names.PRIORITY in properties:
        return MessageType.PRIORITY
    if names.LITE_TOPIC in properties:
        return MessageType.LITE
    return MessageType.NORMAL


def topic_type(attributes: Mapping[str, str] | None) -> MessageType:
    """The type of messages that a topic is for; an unknown one, of a newer broker, is any."""
    value = (attributes or {}).get(MESSAGE_TYPE, MessageType.NORMAL.value)
    return MessageType(value) if value in MESSAGE_TYPES else MessageType.UNSPECIFIED


def has_batch_queues(attributes: Mapping[str, str] | None) -> bool:
    """Whether a topic's queues keep each batch as one record."""
    return attributes is not None and attributes.get(QUEUE_TYPE) == BATCH_QUEUE


def is_compacted(attributes: Mapping[str, str] | None) -> bool:
    """Whether a topic is to keep the newest message of each key: its messages must have keys."""
    return attributes is not None and attributes.get(CLEANUP_POLICY) == COMPACTION


def priority_of(properties: Mapping[str, str]) -> int:
    """The priority of a message, 0 the lowest by default; -1 if it has none, or no valid one."""
    text = properties.get(names.PRIORITY, "")
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdecimal()) or len(digits) > 20:
        return -1
    number = int(text)
    return number if _LOWEST_INT <= number <= _HIGHEST_INT else -1
