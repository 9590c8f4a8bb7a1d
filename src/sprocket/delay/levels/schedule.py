"""The form of a delayed message while it waits, and the progress of delivery. Pure.

A message with a delay level is stored in `SCHEDULE_TOPIC_XXXX`, in the queue of its level. The
properties REAL_TOPIC and REAL_QID contain its own topic and queue. Its consume queue entry has the
due time in place of the hash of the tag.

A delivered message contains the log offset of the record in which it waited, in the field in which
a message of a transaction has the offset of its half message.

Progress is the next queue offset to deliver of each level. It is kept in `delayOffset.json`:
`{"dataVersion":{...},"logOffset":offset,"offsetTable":{level:offset}}`. All deliveries that the
table does not contain are in the log behind `logOffset`, which Java does not write.
Source: ScheduleMessageService and HookUtils.transformDelayLevelMessage of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sprocket.base.errors import CorruptRecord, SystemFailure
from sprocket.message import properties as names
from sprocket.message.drafting import copy_draft
from sprocket.message.properties import decode_bytes
from sprocket.message.record import Draft, Record
from sprocket.message.topic import HALF, SCHEDULE


def level_in(properties: Mapping[str, str]) -> int:
    """The delay level that a message asks for; 0 or below for none.

    Raises:
        SystemFailure: it is no number.
    """
    text = properties.get(names.DELAY)
    if text is None:
        return 0
    try:
        return int(text) if len(text) <= 11 else int("x")
    except ValueError:
        raise SystemFailure(f"property {names.DELAY} is no number: {text[:40]!r}") from None


def delay_by_level(
    properties: Mapping[str, str], level: int, *, topic: str, queue_number: int
) -> dict[str, str]:
    """The properties of a message while it waits. Those that ask for a delivery time are removed:
    the level has priority.

    Args:
        level: a level that exists.
        topic, queue_number: where the message is delivered.
    """
    changed = {name: each for name, each in properties.items() if name not in names.ASK_FOR_TIME}
    changed[names.DELAY] = str(level)
    changed[names.REAL_TOPIC] = topic
    changed[names.REAL_QUEUE] = str(queue_number)
    return changed


def due_draft(record: Record) -> Draft:
    """The draft of a message that waited in a record, to be stored under its own topic.

    Raises:
        CorruptRecord: its own topic or queue is missing or invalid.
    """
    properties = decode_bytes(record.properties)
    topic = properties.get(names.REAL_TOPIC, "")
    queue = properties.get(names.REAL_QUEUE, "")
    if not topic or topic in (SCHEDULE, HALF) or not queue.isdecimal() or len(queue) > 9:
        raise CorruptRecord(f"the delayed message at {record.log_offset} has no valid destination")
    for name in (names.DELAY, names.TIMER_DELIVER_MS, names.TIMER_DELAY_SECONDS):
        properties.pop(name, None)
    return copy_draft(
        record, properties, topic, queue_number=int(queue), prepared_offset=record.log_offset
    )


def wait_ms(due_ms: int, *, delay_ms: int, now_ms: int) -> int:
    """How long to wait for a due time, ms; never longer than the level's delay.

    So a clock that was ahead when the message was stored cannot delay it without bound.
    """
    return max(0, min(due_ms - now_ms, delay_ms))


class Correction(NamedTuple):
    """A correction of progress that was outside its queue: the offset before and after."""

    level: int
    before: int
    after: int


class ScheduleProgress:
    """The next queue offset to deliver, by level.

    Attributes:
        is_changed: whether it has changed since it was last saved.
        log_offset: all deliveries not contained here are in the log behind it; None if unknown.
    """

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self.log_offset: int | None = None
        self.is_changed = False

    def at(self, level: int) -> int:
        """The next offset to deliver of a level."""
        return self._next.get(level, 0)

    def move(self, level: int, offset: int) -> None:
        """Sets the next offset of a level, after all messages before it are stored."""
        self._next[level] = offset
        self.is_changed = True

    def by_level(self) -> dict[int, int]:
        """The next offsets, by level."""
        return dict(sorted(self._next.items()))

    def copy(self, by_level: Mapping[int, int], log_offset: int | None) -> None:
        """Makes the progress as a master has it."""
        known = (self._next, self.log_offset)
        if known != (by_level, log_offset):
            self._next, self.log_offset = dict(by_level), log_offset
            self.is_changed = True

    def clamp(self, level: int, *, low: int, high: int) -> Correction | None:
        """Moves progress into the range of the queue; None if it is there already.

        Progress and queue are in different files, so a crash or a copy may make them differ.
        """
        before = self.at(level)
        after = min(max(before, low), high)
        if after == before:
            return None
        self.move(level, after)
        return Correction(level, before, after)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON for its file."""
        table = {"offsetTable": self.by_level()}
        return table if self.log_offset is None else {"logOffset": self.log_offset, **table}

    def load(self, state: Mapping[str, Any]) -> None:
        """Loads the table from the JSON of its file.

        Raises:
            ValueError: the JSON has another form.
        """
        table = state.get("offsetTable") or {}
        if not isinstance(table, dict):
            raise ValueError("offsetTable is no object")
        self._next = {int(level): int(offset) for level, offset in table.items()}
        at = state.get("logOffset")
        self.log_offset = None if at is None else int(at)
