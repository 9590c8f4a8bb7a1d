"""Finds the value of a wrong type because of which a message cannot be made ready. Pure.

It is searched for only after a failure, so that a valid message costs nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from sprocket.base.errors import UsageError
from sprocket.message.message import Message

_NUMBERS = ("delay_level", "flag")


def mistake(message: Any, error: Exception) -> UsageError:
    """The error to raise for a message.

    Args:
        error: raised while it was made ready; its text is used if no wrong type is found.
    """
    if not isinstance(message, Message):
        return UsageError(f"expected a Message, not {_kind(message)}")
    return UsageError(next(_faults(message), None) or f"the message cannot be sent: {error}")


def _faults(message: Message) -> Iterator[str]:
    given: dict[str, Any] = {name: getattr(message, name) for name in message.__struct_fields__}
    if given["tag"] is not None and not isinstance(given["tag"], str):
        yield f"a tag is a text, not {_kind(given['tag'])}"
    keys, properties = given["keys"], given["properties"]
    if not isinstance(keys, Collection):
        yield f"keys is a list of words, not {_kind(keys)}"
    else:
        yield from (f"a key is a text, not {_kind(k)}" for k in keys if not isinstance(k, str))
    if not isinstance(properties, Mapping):
        yield f"properties is a mapping of texts, not {_kind(properties)}"
    else:
        for name, value in properties.items():
            if not isinstance(name, str) or not isinstance(value, str):
                yield f"a property is a text with a text as name: {name!r}={value!r}"
    if not isinstance(given["delay"], timedelta | int | float | None):
        yield f"a delay is a timedelta or seconds, not {_kind(given['delay'])}"
    if not isinstance(given["deliver_at"], datetime | int | None):
        yield f"deliver_at is a datetime or ms since 1970, not {_kind(given['deliver_at'])}"
    for name in _NUMBERS:
        if not isinstance(given[name], int):
            yield f"{name} is a whole number, not {_kind(given[name])}"


def _kind(value: object) -> str:
    return type(value).__name__
