"""Parses and checks the texts of options; errors name the option. Pure."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

from sprocket.base import setting_forms as forms
from sprocket.base.errors import UsageError
from sprocket.base.suggestions import shown
from sprocket.base.whole_numbers import whole_number
from sprocket.filter.tags import TagFilter
from sprocket.message.offsets import LONG_MAX
from sprocket.message.properties import check_user_property
from sprocket.message.topic import check_consumer_group, check_topic
from sprocket.spark.options.positions import QueuePositions, parse_offsets

logger = logging.getLogger(__name__)

#: Shorter times are hardly meant in ms.
_MS_DOUBTFUL = 60
#: Takes the option's name and its text; returns the value or raises UsageError.
Parser = Callable[[str, str], Any]


def text(name: str, value: str) -> str:
    """Any text that is not blank."""
    if not value.strip():
        raise UsageError(f"option {name} is empty")
    return value.strip()


def whole(minimum: int, maximum: int = LONG_MAX) -> Parser:
    """Makes a parser of whole numbers in [minimum, maximum]."""

    def parse(name: str, value: str) -> int:
        number = whole_number(value)
        if number is None:
            raise UsageError(f"option {name} takes a whole number, not {shown(value)}")
        if not minimum <= number <= maximum:
            limits = f"at least {minimum}" if number < minimum else f"at most {maximum}"
            raise UsageError(f"option {name} must be {limits}, not {number}")
        return number

    return parse


def milliseconds(minimum: int, maximum: int) -> Parser:
    """Makes a parser of times in ms; one that looks like seconds is logged as a warning."""
    parse_whole = whole(minimum, maximum)

    def parse(name: str, value: str) -> int:
        number: int = parse_whole(name, value)
        if 0 < number < _MS_DOUBTFUL:
            logger.warning(
                "option %s is %d ms: the unit is milliseconds, not seconds", name, number
            )
        return number

    return parse


def switch(name: str, value: str) -> bool:
    """`true` or `false`."""
    word = value.strip().lower()
    if word not in ("true", "false"):
        raise UsageError(f"option {name} takes true or false, not {shown(value)}")
    return word == "true"


_DURATION = re.compile(r"(\d{1,9})\s*(ms|s|m|h|d)", re.ASCII)
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration(name: str, value: str) -> int:
    """A time with its unit, as milliseconds: `15m`, `30s`, `500ms`."""
    found = _DURATION.fullmatch(value.strip().lower())
    if found is None:
        raise UsageError(
            f"option {name} takes a time such as 15m, 30s or 500ms, not {shown(value)}"
        )
    return int(found[1]) * _UNITS_MS[found[2]]


_SIZE = re.compile(r"(\d{1,19})\s*(?:([kmgt])i?)?b?", re.ASCII)


def size(name: str, value: str) -> int:
    """A number of bytes, at least one: `64m`, `512 KiB`, `1g`, or a plain number."""
    found = _SIZE.fullmatch(value.strip().lower())
    if found is None or int(found[1]) == 0:
        raise UsageError(f"option {name} takes a size such as 64m, 512k or 1g, not {shown(value)}")
    number = int(found[1]) << 10 * " kmgt".index(found[2] or " ")
    if number > LONG_MAX:
        raise UsageError(f"option {name} must be at most {LONG_MAX} bytes, not {shown(value)}")
    return number


def addresses(name: str, value: str) -> tuple[str, ...]:
    """`host:port`, several are separated by `;` or `,`."""
    found = tuple(one.strip() for one in re.split(r"[;,]", value) if one.strip())
    for one in found:
        if complaint := forms.address(one):
            raise UsageError(f"option {name} {complaint}")
    if not found:
        raise UsageError(f"option {name} is empty")
    return found


def topics(name: str, value: str) -> tuple[str, ...]:
    """Topic names, separated by commas."""
    found = tuple(dict.fromkeys(one.strip() for one in value.split(",") if one.strip()))
    if not found:
        raise UsageError(f"option {name} names no topic")
    for one in found:
        check_topic(one)
    return found


def brokers(name: str, value: str) -> tuple[str, ...]:
    """Names of brokers, separated by commas."""
    found = tuple(dict.fromkeys(one.strip() for one in value.split(",") if one.strip()))
    if not found:
        raise UsageError(f"option {name} names no broker")
    for one in found:
        if complaint := forms.name(one):
            raise UsageError(f"option {name}: a broker's name {complaint}")
    return found


def topic(name: str, value: str) -> str:
    """One topic's name."""
    check_topic(value.strip())
    return value.strip()


def property_name(name: str, value: str) -> str:
    """The name of a property that users may set."""
    check_user_property(value.strip(), "value")
    return value.strip()


def queue_choice(name: str, value: str) -> str:
    """`turn` or `key`: how the sink chooses queues."""
    word = value.strip().lower()
    if word not in ("turn", "key"):
        raise UsageError(f'option {name} takes "turn" or "key", not {shown(value)}')
    return word


def pattern(name: str, value: str) -> str:
    """A regular expression that a whole topic name must match."""
    if not value.strip():
        raise UsageError(f"option {name} is empty")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"option {name} is no regular expression: {error}") from None
    return value


def group(name: str, value: str) -> str:
    """A consumer group's name."""
    check_consumer_group(value.strip())
    return value.strip()


def tags(name: str, value: str) -> str:
    """A tag expression: `*`, or tags separated by `||`."""
    return TagFilter.parse(value.strip()).expression


def sql(name: str, value: str) -> str:
    """An SQL92 condition."""
    from sprocket.filter.sql92 import SqlFilter

    return SqlFilter.parse(value.strip()).expression


def strategy(name: str, value: str) -> str:
    """`latest` or `error`: the choice for queues without a message as new as the starting time."""
    word = value.strip().lower()
    if word not in ("latest", "error"):
        raise UsageError(f'option {name} takes "latest" or "error", not {shown(value)}')
    return word


def either(name: str, value: str) -> QueuePositions:
    """The begin of a read: a word or offsets."""
    return parse_offsets(name, value, words=("earliest", "latest", "committed"))


def latest_or_json(name: str, value: str) -> QueuePositions:
    """The end of a batch read: `latest` or offsets."""
    return parse_offsets(name, value, words=("latest",))


def event_prefix(name: str, value: str) -> str | None:
    """`true` for the usual prefix of CloudEvents' properties, `false`, or another prefix."""
    word = value.strip()
    if word.lower() == "false":
        return None
    if not word or not word.isprintable() or " " in word:
        raise UsageError(f"option {name} takes true, false or a prefix, not {shown(value)}")
    return "CE_" if word.lower() == "true" else word
