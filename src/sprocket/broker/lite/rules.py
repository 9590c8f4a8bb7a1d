"""What groups and topics say of lite topics, and which pops are allowed, in RocketMQ's order and
with its remarks.

A group consumes the lite topics of one parent topic, to which it is bound by an attribute. Source:
LiteMetadataUtil, PopLiteMessageProcessor.preCheck of RocketMQ 5.5.
"""

from __future__ import annotations

from sprocket.base.errors import (
    GroupNotFound,
    InvalidParameter,
    NoPermission,
    TopicNotFound,
)
from sprocket.broker.dispatch import FAQ
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.topics import Topics
from sprocket.message import lite
from sprocket.message.pop_handle import POP_COUNT_MAX
from sprocket.message.topic import is_readable
from sprocket.message.topic_attributes import LITE_EXPIRATION, MessageType, topic_type
from sprocket.protocol.bodies import GroupConfig, TopicConfig
from sprocket.protocol.requests.lite import PopLite

_EXCLUSIVE = "Exclusive"
#: Characters of an attempt id; clients send a UUID.
_ATTEMPT_MAX = 255


class LiteRules:
    """The rules of one broker."""

    def __init__(self, topics: Topics, groups: Groups, settings: BrokerSettings) -> None:
        self._topics = topics
        self._groups = groups
        self._settings = settings

    def bound_to(self, group: str) -> str | None:
        """The parent topic to which a group is bound; None if it is to none."""
        return self._attribute(group, lite.BIND_TOPIC)

    def groups_of(self) -> dict[str, list[str]]:
        """The groups that are bound, by parent topic."""
        found: dict[str, list[str]] = {}
        for name, group in self._groups.by_name.items():
            if parent := group.attributes.get(lite.BIND_TOPIC):
                found.setdefault(parent, []).append(name)
        return found

    def is_exclusive(self, group: str) -> bool:
        """Whether just one client of a group may subscribe a lite topic: the last one."""
        return self._attribute(group, lite.SUB_MODEL) == _EXCLUSIVE

    def is_wildcard(self, group: str) -> bool:
        """Whether all clients of a group subscribe all lite topics."""
        return self._attribute(group, lite.WILDCARD) is not None

    def resets_exclusive(self, group: str) -> bool:
        """Whether a client that takes a lite topic over begins with its first message."""
        return (self._attribute(group, lite.RESETS_EXCLUSIVE) or "").lower() == "true"

    def resets_unsubscribed(self, group: str) -> bool:
        """Whether a group begins with the first message after a client's unsubscription."""
        return (self._attribute(group, lite.RESETS_UNSUBSCRIBED) or "").lower() == "true"

    def _attribute(self, group: str, name: str) -> str | None:
        known = self._groups.get(group)
        return None if known is None else known.attributes.get(name)

    def may_consume(self, group: str) -> bool:
        """Whether a group exists and may consume."""
        known = self._groups.get(group)
        return known is not None and known.consume_enable

    def is_parent(self, topic: str) -> bool:
        """Whether a topic is for messages with a lite topic."""
        known = self._topics.get(topic)
        return known is not None and topic_type(known.attributes) is MessageType.LITE

    def minutes_of(self, topic: str) -> int:
        """How many minutes the lite topics of a topic live without messages; -1: for ever."""
        known = self._topics.get(topic)
        text = "" if known is None else known.attributes.get(LITE_EXPIRATION, "")
        return int(text) if text.isascii() and text.isdecimal() else -1

    def minutes(self) -> dict[str, int]:
        """The same of all parent topics."""
        return {
            name: self.minutes_of(name) for name in self._topics.by_name if self.is_parent(name)
        }

    def parent(self, topic: str | None) -> TopicConfig:
        """A parent topic.

        Raises:
            TopicNotFound: there is no such topic.
            InvalidParameter: it is none for lite topics.
        """
        known = None if topic is None else self._topics.get(topic)
        if known is None:
            raise TopicNotFound(f"Topic [{topic}] not exist.")
        if topic_type(known.attributes) is not MessageType.LITE:
            raise InvalidParameter(f"Topic [{topic}] type not match.")
        return known

    def group(self, name: str | None) -> GroupConfig:
        """A group.

        Raises:
            GroupNotFound: there is no such group.
        """
        known = None if name is None else self._groups.get(name)
        if known is None:
            raise GroupNotFound(f"Group [{name}] not exist.")
        return known

    def bound_group(self, name: str) -> str:
        """The parent topic of a group.

        Raises:
            GroupNotFound: there is no such group.
            InvalidParameter: it is bound to none.
        """
        if not (parent := self.group(name).attributes.get(lite.BIND_TOPIC)):
            raise InvalidParameter(f"Group [{name}] is not a LITE group.")
        return parent

    def check_pop(self, header: PopLite) -> None:
        """Refuses a pop that is not allowed.

        Raises:
            NoPermission: broker, topic or group may not be read.
            TopicNotFound, GroupNotFound: there is no such topic or group.
            InvalidParameter: it asks for too many, the topic has no lite topics, or the group is
                not bound to it.
        """
        config = self._settings.config
        if not is_readable(config.permission):
            raise NoPermission(f"the broker[{config.name}] pop message is forbidden")
        if not 0 < header.max_msg_num <= POP_COUNT_MAX:
            raise InvalidParameter(
                f"the broker[{config.name}] pop message's num is greater than {POP_COUNT_MAX}"
                if header.max_msg_num > 0
                else f"a pop asks for 1 to {POP_COUNT_MAX} messages, not {header.max_msg_num}"
            )
        if header.attempt_id is not None and len(header.attempt_id) > _ATTEMPT_MAX:
            raise InvalidParameter(f"an attempt id has at most {_ATTEMPT_MAX} characters")
        topic = self._topics.get(header.topic)
        if topic is None:
            raise TopicNotFound(f"topic [{header.topic}] not exist, apply first please! {FAQ}")
        if not is_readable(topic.perm):
            raise NoPermission(f"the topic [{header.topic}] peeking message is forbidden")
        if topic_type(topic.attributes) is not MessageType.LITE:
            raise InvalidParameter(f"the topic [{header.topic}] message type not match")
        group = self._groups.find(header.consumer_group)
        if group is None:
            raise GroupNotFound(f"subscription group [{header.consumer_group}] not exist, {FAQ}")
        if not group.consume_enable or self._groups.is_forbidden(
            header.consumer_group, header.topic
        ):
            raise NoPermission(f"subscription group no permission, {header.consumer_group}")
        if group.attributes.get(lite.BIND_TOPIC) != header.topic:
            raise InvalidParameter(f"subscription bind topic not match, {header.consumer_group}")
