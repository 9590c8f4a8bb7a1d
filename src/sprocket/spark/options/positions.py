"""Parses where a read begins and ends: from words, JSON of offsets, or times. Pure.

    "earliest"                                        every queue
    "group:billing"                                   the committed offsets of a group
    "checkpoint:/data/checkpoint"                     where another query stands
    {"orders": {"broker-a": {"0": 17, "1": -1}}}      offsets; -2 is earliest, -1 is latest
    {"orders": 1700000000000}                         a time for a whole topic, ms since 1970
    {"orders": {"broker-a": {"0": 1700000000000}}}    a time for each queue

The JSON is that of Spark's Kafka source with one more level for the broker, since a RocketMQ queue
is identified by topic, broker and number.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from sprocket.base.errors import UsageError
from sprocket.base.suggestions import shown
from sprocket.base.whole_numbers import whole_number
from sprocket.clientcore.witness import Witness
from sprocket.message.offsets import LONG_MAX
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_consumer_group
from sprocket.spark.options.checkpoint import (
    ANEW,
    READ,
    StreamOffsets,
    read_witnesses,
    shape_checkpoint,
)

logger = logging.getLogger(__name__)

#: Times of the years 1973 to 2286 in seconds; as ms they are in the first months of 1970.
_SECONDS_OF_TODAY = range(100_000_000, 10_000_000_000)

#: Without zeros in front, so that no queue has two names.
_QUEUE_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_QUEUE_NUMBER_MAX = (1 << 31) - 1

EARLIEST_NUMBER = -2
LATEST_NUMBER = -1


class PositionKind(Enum):
    """The kinds of a position."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    OFFSET = "offset"
    TIME = "time"


class Position(NamedTuple):
    """A place in a queue: its begin or end, an offset, a time, or a group's committed offset.

    Attributes:
        value: the offset, or ms since 1970 for the first message stored then or later.
    """

    kind: PositionKind
    value: int = 0


EARLIEST = Position(PositionKind.EARLIEST)
LATEST = Position(PositionKind.LATEST)
COMMITTED = Position(PositionKind.COMMITTED)
_WORDS = {"earliest": EARLIEST, "latest": LATEST, "committed": COMMITTED}


@dataclass(frozen=True)
class QueuePositions:
    """A position for every queue.

    Attributes:
        option: name of the option, for errors.
        everywhere: position in queues that are not named; None if all must be named.
        topics: positions in all queues of a topic.
        queues: positions in single queues.
        witnesses: messages that were read before them, by which their queues are recognised.
        group: the group whose committed offsets are meant, if it is named.
        checkpoint: the folder of the query whose offsets are meant; `everywhere` holds for queues
            that it does not read.
    """

    option: str
    everywhere: Position | None = None
    topics: Mapping[str, Position] = field(default_factory=dict)
    queues: Mapping[QueueId, Position] = field(default_factory=dict)
    witnesses: Mapping[QueueId, Witness] = field(default_factory=dict)
    group: str | None = None
    checkpoint: str | None = None

    def of(self, queue: QueueId) -> Position:
        """The position in one queue.

        Raises:
            UsageError: the option names queues, and this queue is not among them.
        """
        found = self.queues.get(queue) or self.topics.get(queue.topic) or self.everywhere
        if found is None:
            raise UsageError(
                f"option {self.option} has no position for queue {queue}: name every queue of its "
                f'topic, with {EARLIEST_NUMBER} for "earliest" and {LATEST_NUMBER} for "latest"'
            )
        return found

    def check_names(self, queues: set[QueueId]) -> None:
        """Raises UsageError if the option names a queue or topic that is not read."""
        strangers = sorted(set(self.queues) - queues)
        if strangers:
            raise UsageError(f"option {self.option} names {strangers[0]}, which is not read")
        lost = sorted(set(self.topics) - {queue.topic for queue in queues})
        if lost:
            raise UsageError(f"option {self.option} names topic {lost[0]}, which is not read")


def parse_offsets(option: str, text: str, *, words: tuple[str, ...]) -> QueuePositions:
    """Parses "earliest", "latest", "committed" or a JSON of offsets, also from a checkpoint.

    Where "committed" is allowed, "group:NAME" and "checkpoint:FOLDER" are too.

    Args:
        option: name of the option, for errors.
        text: its value.
        words: the words of the three that this option allows.
    """
    word = text.strip().lower()
    if word in words:
        return QueuePositions(option, _WORDS[word])
    kind, _, name = text.strip().partition(":")
    if COMMITTED.kind.value in words and name.strip():
        if kind.lower() == "group":
            check_consumer_group(name.strip())
            return QueuePositions(option, COMMITTED, group=name.strip())
        if kind.lower() == "checkpoint":
            return QueuePositions(option, EARLIEST, checkpoint=name.strip())
    if not word.startswith("{"):
        taken = ", ".join(f'"{one}"' for one in words)
        if COMMITTED.kind.value in words:
            taken += ', "group:NAME", "checkpoint:FOLDER"'
        raise UsageError(f"option {option} takes {taken} or a JSON of offsets, not {shown(text)}")
    queues = {}
    shape = _object(option, text)
    witnesses = _witnesses(option, shape.pop(READ, {}))
    shape.pop(ANEW, None)
    for topic, entry in shape.items():
        for queue, number in _queues(option, topic, entry):
            queues[queue] = _offset(option, queue, number, words)
    return QueuePositions(option, queues=queues, witnesses=witnesses)


def _witnesses(option: str, shape: Any) -> dict[QueueId, Witness]:
    try:
        return read_witnesses(shape)
    except (AttributeError, TypeError, ValueError):
        raise UsageError(
            f"option {option}: {READ} does not have the shape of a checkpoint"
        ) from None


def _offset(option: str, queue: QueueId, number: int, words: tuple[str, ...]) -> Position:
    if 0 <= number <= LONG_MAX:
        return Position(PositionKind.OFFSET, number)
    if number == LATEST_NUMBER:
        return LATEST
    if number == EARLIEST_NUMBER and "earliest" in words:
        return EARLIEST
    raise UsageError(f"option {option}: {number} is no offset (queue {queue})")


def parse_time(option: str, text: str) -> QueuePositions:
    """Parses one time for every queue, ms since 1970."""
    number = whole_number(text)
    if number is None:
        raise UsageError(f"option {option} takes ms since 1970, not {shown(text)}")
    return QueuePositions(option, Position(PositionKind.TIME, _time(option, number)))


def parse_times(option: str, text: str) -> QueuePositions:
    """Parses a JSON of times (ms since 1970), by topic or by queue."""
    topics = {}
    queues = {}
    for topic, entry in _object(option, text).items():
        if isinstance(entry, int):
            topics[topic] = Position(PositionKind.TIME, _time(option, entry))
            continue
        for queue, number in _queues(option, topic, entry):
            queues[queue] = Position(PositionKind.TIME, _time(option, number))
    return QueuePositions(option, topics=topics, queues=queues)


def parse_queues(option: str, text: str) -> frozenset[QueueId]:
    """Parses a JSON of queue numbers: `{"orders": {"broker-a": [0, 1]}}`."""
    queues: set[QueueId] = set()
    for topic, brokers in _object(option, text).items():
        for broker, numbers in _nested(option, topic, brokers).items():
            if not isinstance(numbers, list):
                raise _misshapen(option)
            queues.update(QueueId(topic, broker, _number(option, number)) for number in numbers)
    if not queues:
        raise UsageError(f"option {option} names no queue")
    return frozenset(queues)


def format_offsets(
    offsets: Mapping[QueueId, int], witnesses: Mapping[QueueId, Witness] | None = None
) -> str:
    """Offsets as JSON for `startingOffsets`, sorted; with what recognises their queues."""
    whole = StreamOffsets(dict(offsets), dict(witnesses or {}))
    return json.dumps(shape_checkpoint(whole), separators=(",", ":"))


def _queues(option: str, topic: str, entry: Any) -> Iterator[tuple[QueueId, int]]:
    for broker, numbers in _nested(option, topic, entry).items():
        for number, value in _nested(option, topic, numbers).items():
            if isinstance(value, bool) or not isinstance(value, int):
                raise _misshapen(option)
            yield QueueId(topic, broker, _number(option, number)), value


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"option {option} is no JSON: {error}") from None
    return _nested(option, "", found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; of a name that is there twice, one value would be passed over."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"{shown(twice)} is in it twice")
    return found


def _nested(option: str, topic: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _misshapen(option)
    return value


def _number(option: str, value: Any) -> int:
    number = value if type(value) is int else None
    if isinstance(value, str) and _QUEUE_NUMBER.fullmatch(value):
        number = int(value)
    if number is None or not 0 <= number <= _QUEUE_NUMBER_MAX:
        raise UsageError(f"option {option}: {shown(str(value))} is no queue number")
    return number


def _time(option: str, value: int) -> int:
    if isinstance(value, bool) or not 0 <= value <= LONG_MAX:
        raise UsageError(f"option {option} takes ms since 1970, not {value}")
    if value in _SECONDS_OF_TODAY:
        logger.warning(
            "option %s is %d, a time in 1970: the unit is milliseconds, not seconds", option, value
        )
    return value


def _misshapen(option: str) -> UsageError:
    shape = '["0", …]' if option == "assign" else '{"0": 17, …}'
    return UsageError(
        f'option {option} has the wrong shape; right: {{"topic": {{"broker": {shape}}}}}'
    )
