"""What the service refuses in names, texts and times, with RocketMQ's codes and words. Pure.

Source: GrpcValidator of RocketMQ 5.3 (module proxy), Validators, TopicValidator.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sprocket.base.errors import SubscriptionInvalid
from sprocket.filter.tags import TagFilter
from sprocket.message.topic import (
    SYSTEM_GROUP_PREFIX,
    SYSTEM_PREFIX,
    SYSTEM_TOPICS,
    fault_of_group,
    fault_of_topic,
)
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.statuses import CallRefused

#: Longer names are not looked up in caches.
_NAME_MAX = 255
#: The most characters of a group's name: its retry topics have to fit into a topic's.
GROUP_LENGTH_MAX = 120
#: The most characters of a filter's expression.
EXPRESSION_LENGTH_MAX = 16_384

_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")


def topic_name(topic: pb.Resource) -> str:
    """The name of a topic that clients may use.

    Raises:
        CallRefused: it cannot be a topic's, or is that of a system topic.
    """
    name = topic.name
    fault = _fault_of_topic(name) if len(name) <= _NAME_MAX else _fault_of_topic.__wrapped__(name)
    if fault is not None:
        raise CallRefused(pb.ILLEGAL_TOPIC, fault)
    return name


@lru_cache(maxsize=4096)
def _fault_of_topic(name: str) -> str | None:
    if name in SYSTEM_TOPICS or name.startswith(SYSTEM_PREFIX):
        return "cannot access system topic"
    return fault_of_topic(name)


def group_name(group: pb.Resource) -> str:
    """The name of a consumer group that clients may use.

    Raises:
        CallRefused: it cannot be a group's, or is that of a broker's own.
    """
    name = group.name
    fault = _fault_of_group(name) if len(name) <= _NAME_MAX else _fault_of_group.__wrapped__(name)
    if fault is not None:
        raise CallRefused(pb.ILLEGAL_CONSUMER_GROUP, fault)
    return name


@lru_cache(maxsize=4096)
def _fault_of_group(name: str) -> str | None:
    if len(name) > GROUP_LENGTH_MAX:
        return f"the specified group is longer than group max length: {GROUP_LENGTH_MAX}."
    if name.startswith(SYSTEM_GROUP_PREFIX):
        return "cannot use system consumer group"
    return fault_of_group(name)


def has_control(text: str) -> bool:
    """Whether a text has a control character."""
    return not text.isprintable() and _CONTROL.search(text) is not None


def check_word(text: str, code: pb.Code, what: str) -> None:
    """Refuses a text of blanks only, or with control characters.

    Raises:
        CallRefused: with that code.
    """
    if text.isspace():
        raise CallRefused(code, f"{what} cannot be the char sequence of whitespace")
    if has_control(text):
        raise CallRefused(code, f"{what} cannot contain control character")


def check_tag(tag: str) -> None:
    """Refuses what cannot be a tag.

    Raises:
        CallRefused: it is blank, or has `|` or a control character.
    """
    check_word(tag, pb.ILLEGAL_MESSAGE_TAG, "tag")
    if "|" in tag:
        raise CallRefused(pb.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")


def check_invisible(milliseconds: int, least: int, most: int) -> None:
    """Refuses an invisible time that is out of bounds; 0 for `most` means none.

    Raises:
        CallRefused: it is too short or too long.
    """
    if milliseconds < least:
        text = f"the invisibleTime is too small. min is {least}"
        raise CallRefused(pb.ILLEGAL_INVISIBLE_TIME, text)
    if 0 < most < milliseconds:
        text = f"the invisibleTime is too large. max is {most}"
        raise CallRefused(pb.ILLEGAL_INVISIBLE_TIME, text)


def check_expression(asked: pb.FilterExpression) -> TagFilter | None:
    """The tags that an expression names; None for one in SQL, which brokers parse.

    Raises:
        CallRefused: it is too long, or cannot be parsed.
    """
    expression = asked.expression
    if len(expression) > EXPRESSION_LENGTH_MAX:
        text = f"an expression has at most {EXPRESSION_LENGTH_MAX} characters"
        raise CallRefused(pb.ILLEGAL_FILTER_EXPRESSION, text)
    if asked.type == pb.SQL:
        if not expression.strip():
            raise CallRefused(pb.ILLEGAL_FILTER_EXPRESSION, "the expression is empty")
        return None
    try:
        return TagFilter.parse(expression.strip())
    except SubscriptionInvalid as error:
        raise CallRefused(pb.ILLEGAL_FILTER_EXPRESSION, error.remark) from None
