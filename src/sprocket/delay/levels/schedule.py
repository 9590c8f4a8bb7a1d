"""What a delayed message looks like while it waits, and how far delivery has come. Pure.

A message with a delay level is stored in `SCHEDULE_TOPIC_XXXX`, in the queue of its level. Its own
topic and queue stand in the properties REAL_TOPIC and REAL_QID; the consume queue entry holds its
due time where the hash of the tag would stand.

A message that was delivered names, where a transaction's message names its half, the log offset of
the record that it waited in.

Progress, the next entry to deliver by level, lies in `delayOffset.json`:
`{"dataVersion":{...},"logOffset":offset,"offsetTable":{level:offset}}`. All deliveries that the
table does not know lie in the log behind `logOffset`, which Java does not write.
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
    """The properties of a message while it waits; a time that it asks for as well does not count.

    Args:
        level: one that exists.
        topic, queue_number: where it is to be delivered.
    """
    changed = {name: each for name, each in properties.items() if name not in names.ASK_FOR_TIME}
    changed[names.DELAY] = str(level)
    changed[names.REAL_TOPIC] = topic
    changed[names.REAL_QUEUE] = str(queue_number)
    return changed


def due_draft(record: Record) -> Draft:
    """The message that waited in a record, ready to be stored under its own topic again.

    Raises:
        CorruptRecord: it does not say where it belongs.
    """
    properties = decode_bytes(record.properties)
    topic = properties.get(names.REAL_TOPIC, "")
    queue = properties.get(names.REAL_QUEUE, "")
    if not topic or topic in (SCHEDULE, HALF) or not queue.isdecimal() or len(queue) > 9:
        raise CorruptRecord(f"the delayed message at {record.log_offset} has no place to go")
    for name in (names.DELAY, names.TIMER_DELIVER_MS, names.TIMER_DELAY_SECONDS):
        properties.pop(name, None)
    return copy_draft(
        record, properties, topic, queue_number=int(queue), prepared_offset=record.log_offset
    )


def wait_ms(due_ms: int, *, delay_ms: int, now_ms: int) -> int:
    """How long to wait for a due time; never longer than the level's delay.

    A clock that was ahead when the message was stored cannot hold it back for ever.
    """
    return max(0, min(due_ms - now_ms, delay_ms))


class Correction(NamedTuple):
    """Progress that pointed outside its queue."""

    level: int
    told: int
    used: int


class ScheduleProgress:
    """The next queue offset to deliver, by level.

    Attributes:
        is_changed: whether it moved since it was last saved.
        log_offset: behind it lie all deliveries that are not known here; None if nobody knows.
    """

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self.log_offset: int | None = None
        self.is_changed = False

    def at(self, level: int) -> int:
        """Where delivery of a level goes on."""
        return self._next.get(level, 0)

    def move(self, level: int, offset: int) -> None:
        """Sets where delivery of a level goes on. Only after what lies before is stored."""
        self._next[level] = offset
        self.is_changed = True

    def clamp(self, level: int, *, low: int, high: int) -> Correction | None:
        """Moves progress into what the queue holds.

        Progress and queue lie in different files, so a crash or a copy may part them.
        """
        told = self.at(level)
        used = min(max(told, low), high)
        if used == told:
            return None
        self.move(level, used)
        return Correction(level, told, used)

    def to_json(self) -> dict[str, Any]:
        """What the file holds of it."""
        table = {"offsetTable": dict(sorted(self._next.items()))}
        return table if self.log_offset is None else {"logOffset": self.log_offset, **table}

    def load(self, state: Mapping[str, Any]) -> None:
        """Takes over what a file holds.

        Raises:
            ValueError: it has another form.
        """
        table = state.get("offsetTable") or {}
        if not isinstance(table, dict):
            raise ValueError("offsetTable is no object")
        self._next = {int(level): int(offset) for level, offset in table.items()}
        at = state.get("logOffset")
        self.log_offset = None if at is None else int(at)
