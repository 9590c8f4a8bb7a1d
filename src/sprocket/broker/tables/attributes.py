"""Attributes of topics and groups: `+name=value` sets one, `-name` removes it. Pure.

The rules and their texts are RocketMQ's, also for what came with 5.5: priorities, lite topics.
Source: TopicAttributes, SubscriptionGroupAttributes, AttributeParser and AttributeUtil of RocketMQ
5.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sprocket.base.errors import SystemFailure
from sprocket.message import lite
from sprocket.message.topic_attributes import (
    BATCH_QUEUE,
    CLEANUP_POLICY,
    COMPACTION,
    DELETE,
    LITE_EXPIRATION,
    MESSAGE_TYPE,
    MESSAGE_TYPES,
    QUEUE_TYPE,
    RESERVE_TIME,
    SIMPLE_QUEUE,
)

#: Of 100 pops of a group from a topic for priorities, how many go by priority.
PRIORITY_FACTOR = "priority.factor"
PRIORITY_FACTOR_MAX = 100

_LONG_MAX = (1 << 63) - 1
#: Characters of a number at most; more are none that Java reads.
_DIGITS_MAX = 20
_MINUTES_OF_30_DAYS = 30 * 24 * 60


class AttributeRule(NamedTuple):
    """What an attribute may be.

    Attributes:
        choices: its values; None if it is a number or any text.
        numbers: the lowest and the highest number; None if it is none.
        is_changeable: whether it may change while the topic or group exists.
    """

    choices: frozenset[str] | None = None
    numbers: tuple[int, int] | None = None
    is_changeable: bool = True


OF_TOPICS: Mapping[str, AttributeRule] = {
    QUEUE_TYPE: AttributeRule(frozenset({SIMPLE_QUEUE, BATCH_QUEUE}), is_changeable=False),
    CLEANUP_POLICY: AttributeRule(frozenset({DELETE, COMPACTION}), is_changeable=False),
    MESSAGE_TYPE: AttributeRule(MESSAGE_TYPES),
    RESERVE_TIME: AttributeRule(numbers=(-1, _LONG_MAX)),
    LITE_EXPIRATION: AttributeRule(numbers=(-1, _MINUTES_OF_30_DAYS)),
}
_TRUTH = frozenset({"true", "false"})
OF_GROUPS: Mapping[str, AttributeRule] = {
    PRIORITY_FACTOR: AttributeRule(numbers=(0, PRIORITY_FACTOR_MAX)),
    lite.BIND_TOPIC: AttributeRule(),
    lite.SUB_MODEL: AttributeRule(frozenset({"Shared", "Exclusive"})),
    lite.RESETS_EXCLUSIVE: AttributeRule(_TRUTH),
    lite.RESETS_UNSUBSCRIBED: AttributeRule(_TRUTH),
    lite.CLIENT_QUOTA: AttributeRule(numbers=(-1, _LONG_MAX)),
    "lite.sub.client.max.event.cnt": AttributeRule(numbers=(10, _LONG_MAX)),
    lite.WILDCARD: AttributeRule(),
}


def parse(text: str | None) -> dict[str, str]:
    """Parses `+name=value,-name` into a map whose keys keep their sign.

    Raises:
        SystemFailure: an item has another form.
    """
    asked: dict[str, str] = {}
    for item in (text or "").split(","):
        if not item.strip():
            continue
        key, separator, value = item.partition("=")
        if separator and not key.startswith("+"):
            raise SystemFailure(f"add/alter attribute format is wrong: {key[:80]}")
        if not separator and not key.startswith("-"):
            raise SystemFailure(f"delete attribute format is wrong: {key[:80]}")
        if key in asked:
            raise SystemFailure(f"key duplication: {key[:80]}")
        asked[key] = value
    return asked


def altered(
    current: Mapping[str, str] | None,
    asked: Mapping[str, str],
    rules: Mapping[str, AttributeRule] = OF_TOPICS,
) -> dict[str, str]:
    """The attributes of a topic or group after a change.

    Args:
        current: its attributes so far; None while it is being created.
        asked: the changes, by the name with its sign.

    Raises:
        SystemFailure: an attribute is unknown, does not accept the value, or may not change.
    """
    result = dict(current or {})
    for key, name in _named(asked, result, is_new=current is None):
        rule = rules.get(name)
        if rule is None:
            raise SystemFailure(f"unsupported key: {name[:80]}")
        if current is not None and not rule.is_changeable:
            raise SystemFailure(f"attempt to update an unchangeable attribute. key: {name}")
        if key[0] == "-":
            del result[name]
            continue
        _check_value(name, asked[key], rule)
        result[name] = asked[key]
    return result


def _named(
    asked: Mapping[str, str], current: Mapping[str, str], *, is_new: bool
) -> list[tuple[str, str]]:
    """The keys of the changes, and the names in them."""
    named: list[tuple[str, str]] = []
    for key in asked:
        name = key[1:]
        if not name or "+" in name or "-" in name:
            raise SystemFailure("kv string format wrong.")
        if any(name == known for _, known in named):
            raise SystemFailure(f"alter duplication key. key: {name[:80]}")
        if is_new and key[0] != "+":
            raise SystemFailure(
                f"only add attribute is supported while creating topic. key: {name[:80]}"
            )
        if key[0] not in "+-":
            raise SystemFailure(f"wrong format key: {name[:80]}")
        if key[0] == "-" and name not in current:
            raise SystemFailure(f"attempt to delete a nonexistent key: {name[:80]}")
        named.append((key, name))
    return named


def _check_value(name: str, value: str, rule: AttributeRule) -> None:
    if rule.choices is not None:
        known = value.lower() if rule.choices is _TRUTH else value
        if known not in rule.choices:
            choices = ", ".join(sorted(rule.choices))
            raise SystemFailure(f"value is not in set: [{choices}] ({name}={value[:80]})")
    elif rule.numbers is not None:
        low, high = rule.numbers
        digits = value[1:] if value[:1] in ("+", "-") else value
        is_number = digits.isascii() and digits.isdecimal() and len(value) <= _DIGITS_MAX
        if not is_number:
            raise SystemFailure(f'For input string: "{value[:80]}" ({name})')
        if not low <= int(value) <= high:
            raise SystemFailure(f"value is not in range({low}, {high}) ({name}={value})")
