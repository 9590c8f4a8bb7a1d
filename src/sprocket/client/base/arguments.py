"""Checks of the arguments that users pass to clients. An error names what is wrong. Pure."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from sprocket.base.errors import UsageError
from sprocket.filter.choice import Filter, MessageSelector, filter_of
from sprocket.message.offsets import LONG_MAX
from sprocket.message.outgoing import check_milliseconds
from sprocket.message.queue import QueueId

logger = logging.getLogger(__name__)

C = TypeVar("C")

#: The longest time that is accepted: a hundred years.
_MS_MAX = 100 * 366 * 86_400_000


def chosen(choice: MessageSelector) -> Filter:
    """Returns the filter that `tags=`, `sql=` or `code=` describes.

    Raises:
        SubscriptionInvalid: the tags or the SQL cannot be parsed.
        UsageError: several of them are given, or an unknown one.
    """
    for name in choice.keys() - MessageSelector.__annotations__.keys():
        raise UsageError(f"messages are chosen by tags, sql or code; there is no {name}")
    wanted = filter_of(**choice)
    for tag in wanted.tags:
        words = re.split(r"[|,\s]+", tag)
        if len(words) > 1:
            logger.warning("tags: %r is one tag; several are written %r", tag, " || ".join(words))
    return wanted


def settings(given: C | None, kind: type[C]) -> C:
    """Returns a client's configuration: the defaults if none is given."""
    if given is not None and not isinstance(given, kind):
        raise UsageError(f"config is a {kind.__name__}, not {_kind(given)}")
    return kind() if given is None else given


def check_queue(queue: QueueId) -> None:
    """Raises UsageError if the value is not a valid `QueueId`."""
    if (
        not isinstance(queue, QueueId)
        or not isinstance(queue.topic, str)
        or not isinstance(queue.broker, str)
        or not _is_whole(queue.number)
    ):
        raise UsageError(f"a queue is a QueueId(topic, broker, number), not {queue!r}")


def queues_of(queues: Iterable[QueueId]) -> list[QueueId]:
    """Returns the queues as a list, after a check of each."""
    if isinstance(queues, QueueId | str) or not isinstance(queues, Iterable):
        raise UsageError(f"that is a list of queues, not {queues!r}")
    found = list(queues)
    for queue in found:
        check_queue(queue)
    return found


def check_offset(offset: int) -> None:
    """Raises UsageError if the value is not a valid offset."""
    if not _is_whole(offset) or offset > LONG_MAX:
        raise UsageError(f"an offset is a whole number, not below 0: {offset!r}")


def offsets_of(offsets: Mapping[QueueId, int]) -> dict[QueueId, int]:
    """Returns the offsets by queue, after a check of each."""
    if not isinstance(offsets, Mapping):
        raise UsageError(f"offsets are a mapping of queues to numbers, not {_kind(offsets)}")
    for queue, offset in offsets.items():
        check_queue(queue)
        check_offset(offset)
    return dict(offsets)


def check_count(name: str, count: int) -> None:
    """Raises UsageError if the count is not a whole number from 1 to 2^31 - 1."""
    if not _is_whole(count) or not 0 < count < 2**31:
        raise UsageError(f"{name} is a whole number above 0, not {count!r}")


def milliseconds(name: str, value: float) -> float:
    """Returns a duration in ms after a check; it is a hundred years at most."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not value >= 0:  # written so that it refuses NaN as well
        raise UsageError(f"{name} is milliseconds, not below 0: {value!r}")
    return min(value, _MS_MAX)


def moment_ms(at: datetime | int) -> int:
    """Returns a time as ms since 1970 UTC."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise UsageError(f"the time {at} has no time zone: 10 o'clock where?")
        return int(at.timestamp() * 1000)
    if not isinstance(at, int) or isinstance(at, bool) or abs(at) > LONG_MAX:
        raise UsageError(f"a time is a datetime or ms since 1970, not {at!r}")
    check_milliseconds(at)
    return at


def check_takes(function: Callable[..., Any], *names: str, what: str) -> None:
    """Raises UsageError if the value is not a function that accepts these arguments.

    Args:
        names: names of the arguments, for the error message.
        what: what the function is used as, for the error message: "a listener".
    """
    given = ", ".join(names)
    if not callable(function):
        raise UsageError(f"{what} is a function of ({given}), not {function!r}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a function written in C may have no signature
        return
    try:
        signature.bind(*names)
    except TypeError:
        name = getattr(function, "__qualname__", None) or repr(function)
        raise UsageError(
            f"{what} is called with ({given}), which {name}{signature} does not take"
        ) from None


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _kind(value: object) -> str:
    return type(value).__name__
