"""Attributes of topics: `+name=value` sets one, `-name` removes it. Pure.

Source: TopicAttributes, AttributeParser, AttributeUtil of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.base.errors import SystemFailure

#: The attributes and their values; where the set is empty, a whole number of at least -1.
_KNOWN: dict[str, frozenset[str]] = {
    "queue.type": frozenset({"SimpleCQ", "BatchCQ"}),
    "cleanup.policy": frozenset({"DELETE", "COMPACTION"}),
    "message.type": frozenset({"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"}),
    "reserve.time": frozenset(),
}
#: Attributes that may change while the topic exists.
_CHANGEABLE = frozenset({"message.type", "reserve.time"})


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
        if not key.startswith(("+", "-")) or (key[0] == "+") != bool(separator):
            raise SystemFailure(f"an attribute is +name=value or -name, not {item[:80]!r}")
        if any(known[1:] == key[1:] for known in asked):
            raise SystemFailure(f"alter duplication key. key: {key[1:]}")
        asked[key] = value
    return asked


def altered(current: Mapping[str, str] | None, asked: Mapping[str, str]) -> dict[str, str]:
    """A topic's attributes after a change.

    Args:
        current: its attributes so far; None while the topic is being created.
        asked: the result of `parse`.

    Raises:
        SystemFailure: an attribute is unknown, does not accept the value, or may not change.
    """
    result = dict(current or {})
    for key, value in asked.items():
        sign, name = key[0], key[1:]
        if name not in _KNOWN:
            raise SystemFailure(f"unsupported key: {name}")
        if current is not None and name not in _CHANGEABLE:
            raise SystemFailure(f"attempt to update an unchangeable attribute. key: {name}")
        if sign == "-":
            if name not in result:
                raise SystemFailure(f"attempt to delete a nonexistent key: {name}")
            del result[name]
            continue
        _check_value(name, value)
        result[name] = value
    return result


def _check_value(name: str, value: str) -> None:
    choices = _KNOWN[name]
    is_number = value.removeprefix("-").isdecimal() and len(value) < 19
    if value in choices or (not choices and is_number and int(value) >= -1):
        return
    wanted = ", ".join(sorted(choices)) or "a whole number from -1 on"
    raise SystemFailure(f"attribute {name} is {wanted}, not {value[:80]!r}")
