"""Conditions that Spark pushes down, and how they limit a read. Pure.

The read takes a condition over from Spark only if it applies it exactly. With a condition on the
store time it only skips messages that are far outside, and Spark applies it too, because clocks may
have been set back.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sprocket.message.queue import QueueId
from sprocket.message.topic import SYSTEM_PREFIX, is_system_topic
from sprocket.spark.options.options import SelectionOptions

#: Columns that are never null.
_NEVER_NULL = {"topic", "queue_id", "queue_offset", "body", "born_timestamp", "store_timestamp"}
#: Clocks may be wrong by this much, ms.
_CLOCK_MS = 60_000


@dataclass(frozen=True, slots=True)
class PushedConditions:
    """The limits of a read; None for no limit.

    Attributes:
        topics, brokers, numbers: of the queues.
        first, end: queue offsets [first, end).
        since_ms, until_ms: store times, widened because clocks may be wrong.
        tags: messages with one of these.
    """

    topics: frozenset[str] | None = None
    brokers: frozenset[str] | None = None
    numbers: frozenset[int] | None = None
    first: int | None = None
    end: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    tags: frozenset[str] | None = None

    def admits(self, queue: QueueId) -> bool:
        """Whether a queue is to be read."""
        return (
            (self.topics is None or queue.topic in self.topics)
            and (self.brokers is None or queue.broker in self.brokers)
            and (self.numbers is None or queue.number in self.numbers)
        )


#: No limit, and a limit that excludes everything.
EVERYTHING = PushedConditions()
NOTHING = PushedConditions(numbers=frozenset())

Chosen = TypeVar("Chosen", bound=SelectionOptions)


def narrow_choice(
    filters: Iterable[Any], columns: Iterable[str], options: Chosen
) -> tuple[PushedConditions, Chosen, list[Any]]:
    """Takes over the conditions that the read can apply; those on tags become options.

    Returns:
        The limits of the read, its options, and the filters that Spark must apply itself.
    """
    knows_tags = options.sql is None and not _has_system_topics(options)
    known = [one for one in columns if one != "tag" or knows_tags]
    wanted, left = narrow(filters, known)
    if wanted.tags is None:
        return wanted, options, left
    asked = options.filter
    tags = sorted(tag for tag in wanted.tags if asked.is_all or tag in asked.tags)
    if not tags:
        return NOTHING, options, left
    return wanted, replace(options, tags=" || ".join(tags)), left


def _has_system_topics(options: SelectionOptions) -> bool:
    """Whether topics may be read whose tag codes are not hashes of tags."""
    return any(map(is_system_topic, options.topics)) or bool(
        options.pattern and options.pattern.startswith(("%", SYSTEM_PREFIX))
    )


def narrow(filters: Iterable[Any], columns: Iterable[str]) -> tuple[PushedConditions, list[Any]]:
    """Takes over the conditions that the read can apply.

    Args:
        filters: Spark's filters; a row must match all of them.
        columns: the columns whose conditions the reader can apply.

    Returns:
        The limits of the read, and the filters that Spark must apply itself.
    """
    wanted = PushedConditions()
    left = []
    known = set(columns)
    for one in filters:
        column = one.attribute[0] if len(getattr(one, "attribute", ())) == 1 else ""
        kind = type(one).__name__
        if kind == "IsNotNull" and column in _NEVER_NULL:
            continue
        take = _TAKE.get(column) if column in known else None
        found = None if take is None else take(wanted, kind, getattr(one, "value", None))
        if found is None:
            left.append(one)
            continue
        wanted = found
        if column == "store_timestamp":
            left.append(one)
    return wanted, left


Take = Callable[[PushedConditions, str, Any], PushedConditions | None]


def _any_of(attribute: str, kind: type) -> Take:
    """Makes the function for equality with one value or several."""

    def take(wanted: PushedConditions, name: str, value: Any) -> PushedConditions | None:
        values: Sequence[Any] = value if name == "In" else [value]
        if name not in ("EqualTo", "EqualNullSafe", "In"):
            return None
        # In SQL nothing equals null, and true is not a number, though it is an int in Python.
        if any(type(each) is not kind for each in values):
            return None
        before = getattr(wanted, attribute)
        found = frozenset(values) if before is None else before & frozenset(values)
        changed: dict[str, Any] = {attribute: found}
        return replace(wanted, **changed)

    return take


def _offsets(wanted: PushedConditions, name: str, value: Any) -> PushedConditions | None:
    if name == "In" or type(value) is not int:
        return None
    span = _span(name, value)
    return None if span is None else _between(wanted, "first", "end", span)


def _times(wanted: PushedConditions, name: str, value: Any) -> PushedConditions | None:
    if not isinstance(value, datetime.datetime) or value.tzinfo is None:
        return None
    span = _span(name, int(value.timestamp() * 1000))
    if span is None:
        return None
    first, end = span
    first = None if first is None else max(0, first - _CLOCK_MS)
    end = None if end is None else max(0, end + _CLOCK_MS)
    return _between(wanted, "since_ms", "until_ms", (first, end))


Span = tuple[int | None, int | None]


def _span(name: str, value: int) -> Span | None:
    """The range [first, end) of values for which a comparison is true."""
    spans: dict[str, Span] = {
        "EqualTo": (value, value + 1),
        "GreaterThan": (value + 1, None),
        "GreaterThanOrEqual": (value, None),
        "LessThan": (None, value),
        "LessThanOrEqual": (None, value + 1),
    }
    return spans.get(name)


def _between(wanted: PushedConditions, first: str, end: str, span: Span) -> PushedConditions:
    firsts = [one for one in (getattr(wanted, first), span[0]) if one is not None]
    ends = [one for one in (getattr(wanted, end), span[1]) if one is not None]
    changed: dict[str, Any] = {
        first: max(firsts, default=None),
        end: min(ends, default=None),
    }
    return replace(wanted, **changed)


def _tags(wanted: PushedConditions, name: str, value: Any) -> PushedConditions | None:
    values = value if name == "In" else [value]
    # Spark applies the filter if a value would mean something else in a tag expression.
    if not all(isinstance(each, str) and is_plain(each) for each in values):
        return None
    return _any_of("tags", str)(wanted, name, value)


def is_plain(tag: str) -> bool:
    """Whether a tag expression of this text means exactly this tag."""
    return bool(tag) and tag == tag.strip() and "|" not in tag and tag != "*"


_TAKE: dict[str, Take] = {
    "topic": _any_of("topics", str),
    "broker": _any_of("brokers", str),
    "queue_id": _any_of("numbers", int),
    "queue_offset": _offsets,
    "store_timestamp": _times,
    "tag": _tags,
}
