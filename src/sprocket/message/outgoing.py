"""The properties that a message is sent with: its own, and those for its other attributes.

Pure. Source: MessageConst, MessageAccessor of RocketMQ 5.x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sprocket.base.errors import UsageError
from sprocket.message.message import Message
from sprocket.message.properties import (
    DELAY,
    KEYS,
    NAME_END,
    PAIR_END,
    PRIORITY,
    TAGS,
    TIMER_DELAY_MS,
    TIMER_DELIVER_MS,
    WAIT,
    check_user_property,
    encode,
)

_WAITS = f"{WAIT}{NAME_END}true{PAIR_END}"
_WAITS_NOT = f"{WAIT}{NAME_END}false{PAIR_END}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Brokers read a priority as a signed number of 32 bits.
_PRIORITY_MAX = (1 << 31) - 1
#: A thousand years; brokers have limits of their own.
_SECONDS_MAX = 1000 * 366 * 86_400


def text_of(message: Message) -> str:
    """The text of all properties of a sent message except its unique key, the user's first.

    Raises:
        UsageError: a user property, the tag or a key cannot be carried.
    """
    text = ""
    if message.properties:
        for name, value in message.properties.items():
            check_user_property(name, value)
            text += f"{name}{NAME_END}{value}{PAIR_END}"
    if message.keys:
        text += f"{KEYS}{NAME_END}{_checked(KEYS, _keys(message.keys))}{PAIR_END}"
    if message.tag:
        tag = _checked(TAGS, message.tag)
        if "||" in tag or tag == "*" or tag != tag.strip():
            raise UsageError(f"no subscription can name the tag {tag!r}: it is one word")
        text += f"{TAGS}{NAME_END}{tag}{PAIR_END}"
    if not text.isascii():  # almost all are, which costs no look at the characters
        _check_unicode(message, text)
    if message.priority is not None:
        text += f"{PRIORITY}{NAME_END}{_priority(message)}{PAIR_END}"
    if message.waits:
        text += encode(_waiting(message))
    return text + (_WAITS if message.wait_stored else _WAITS_NOT)


def _check_unicode(message: Message, text: str) -> None:
    """Raises UsageError if a text contains half of a surrogate pair, which no encoding carries."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        parts = {**message.properties, TAGS: message.tag, KEYS: " ".join(message.keys)}
        half = text[error.start]
        named = next(name for name, value in parts.items() if half in f"{name}{value}")
        raise UsageError(
            f"property {named!a} contains U+{ord(half):04X}, half of a surrogate pair: no Unicode"
        ) from None


def _keys(keys: Sequence[str]) -> str:
    """Keys as one text, separated by blanks."""
    text = " ".join(keys)
    if len(text.split()) > len(keys):
        raise UsageError(
            f"a key is one word: with a blank in it, it is more than one key: {text!r}"
        )
    return text


def _priority(message: Message) -> int:
    priority = message.priority
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise UsageError(f"a priority is a whole number from 0 on, not {priority!r}")
    if not 0 <= priority <= _PRIORITY_MAX:
        raise UsageError(f"a priority is 0 to {_PRIORITY_MAX}, not {priority}")
    if message.waits:
        raise UsageError("a message with a priority cannot be delayed: brokers would drop it")
    return priority


def _waiting(message: Message) -> dict[str, str]:
    """The property for a delayed message. Fractions of a millisecond are rounded up."""
    delay, deliver_at = message.delay, message.deliver_at
    if (message.delay_level != 0) + (delay is not None) + (deliver_at is not None) > 1:
        raise UsageError("delay_level, delay and deliver_at exclude each other")
    if delay is not None:
        seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if not 0 <= seconds <= _SECONDS_MAX:
            raise UsageError(f"a delay is 0 s to 1000 years, not {seconds} s")
        # Rounding first: 2.007 s are 2007.0000000000002 ms as a float, and must not become 2008.
        return {TIMER_DELAY_MS: str(math.ceil(round(seconds * 1000, 3)))}
    if deliver_at is None:
        return {DELAY: str(message.delay_level)}
    if isinstance(deliver_at, int):
        check_milliseconds(deliver_at)
        return {TIMER_DELIVER_MS: str(deliver_at)}
    if deliver_at.tzinfo is None:
        raise UsageError(f"deliver_at {deliver_at} has no time zone: 10 o'clock where?")
    since = deliver_at - _EPOCH
    return {TIMER_DELIVER_MS: str(-(-since // timedelta(milliseconds=1)))}


def check_milliseconds(at: int) -> None:
    """Raises UsageError for a time that is in seconds since 1970, as `time.time()` gives it."""
    if 1_000_000_000 <= at < 10_000_000_000:  # in ms that is a time of 1970
        raise UsageError(f"times are in ms since 1970, and {at} looks like seconds: {at}000?")


def _checked(name: str, value: str) -> str:
    if NAME_END in value or PAIR_END in value:
        raise UsageError(f"{name} contains U+0001 or U+0002: {value!r}")
    return value
