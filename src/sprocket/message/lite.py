"""The names of lite topics: light queues under a parent topic, millions of them. Pure.

A message with the property `__LITE_TOPIC`, sent to a topic whose `message.type` is LITE, is in a
queue of the parent topic, as any message, and in the queue of its lite topic. The broker writes the
name of that queue, and the offset in it, into the message's properties.
Source: LiteUtil, LmqDispatch, SubscriptionGroupAttributes, GrpcValidator of RocketMQ 5.5.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sprocket.message.properties import LITE_OFFSET, LITE_QUEUE, value_in

#: A lite topic's name has at most so many characters. Source: ProxyConfig.maxLiteTopicSize.
LITE_TOPIC_MAX = 64
#: Attributes of groups: the parent topic; whether one client alone may subscribe a lite topic
#: (`Shared`, `Exclusive`), and begins anew then, or after an unsubscription; how many lite topics a
#: client may subscribe; and that all clients subscribe all of them.
BIND_TOPIC = "lite.bind.topic"
SUB_MODEL = "lite.sub.model"
RESETS_EXCLUSIVE = "lite.sub.reset.offset.exclusive"
RESETS_UNSUBSCRIBED = "lite.sub.reset.offset.unsubscribe"
CLIENT_QUOTA = "lite.sub.client.quota"
WILDCARD = "lite.sub.wildcard"
#: What `CLIENT_QUOTA` is by default.
CLIENT_QUOTA_DEFAULT = 2000
#: What a lite topic's queue is called begins so; there is always just one, with the number 0.
QUEUE_PREFIX = "%LMQ%$"
_SEPARATOR = "$"
_NAME = re.compile(r"[A-Za-z0-9_-]+")


class LiteName(NamedTuple):
    """A lite topic and its parent topic."""

    parent: str
    lite: str

    @property
    def queue(self) -> str:
        """What its queue is called in records and in consumer offsets: `%LMQ%$parent$lite`."""
        return f"{QUEUE_PREFIX}{self.parent}{_SEPARATOR}{self.lite}"

    @classmethod
    def of_queue(cls, queue: str) -> LiteName | None:
        """The names in the name of a queue; None if it is not one of a lite topic."""
        if not queue.startswith(QUEUE_PREFIX):
            return None
        words = queue[len(QUEUE_PREFIX) :].split(_SEPARATOR)
        return cls(*words) if len(words) == 2 and all(words) else None


class LitePlace(NamedTuple):
    """Where a message is: its lite topic, and the offset in that."""

    name: LiteName
    offset: int


def fault_of_lite_topic(name: str, length_max: int = LITE_TOPIC_MAX) -> str:
    """What is wrong with the name of a lite topic; empty if nothing is."""
    if not name.strip():
        return "lite topic cannot be the char sequence of whitespace"
    if len(name) > length_max:
        return f"lite topic exceed the max size {length_max}"
    if not _NAME.fullmatch(name):
        return "lite topic can only contain alphanumeric characters, hyphens(-), and underscores(_)"
    return ""


def place_of(topic: str, properties: bytes) -> LitePlace | None:
    """The lite topic of a record, and its offset there, by its topic and properties; None if it is
    in none: it has no such properties, or they were copied with a message of another topic."""
    queue, offset = value_in(properties, LITE_QUEUE), value_in(properties, LITE_OFFSET)
    if queue is None or offset is None or not (offset.isascii() and offset.isdecimal()):
        return None
    name = LiteName.of_queue(queue)
    if name is None or name.parent != topic or len(offset) > 19:
        return None
    return LitePlace(name, int(offset))
