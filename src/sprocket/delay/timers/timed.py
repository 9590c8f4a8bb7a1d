"""Messages for a time that the sender chooses: their properties while they wait and after. Pure.

A sender sets one of three properties: TIMER_DELAY_SEC or TIMER_DELAY_MS (from now on), or
TIMER_DELIVER_MS (a time). Until then the message is stored in `rmq_sys_wheel_timer`, queue 0.
REAL_TOPIC and REAL_QID have its own topic and queue. TIMER_OUT_MS is the slot of the wheel in which
it waits: the last slot boundary before its time. It is due within a slot's width after that
boundary; TIMER_DELIVER_MS has the exact time.

A recall is a message that waits in the same slot and names the other one in TIMER_DEL_UNIQKEY,
`topic+uniqueKey`. A message that waits very long is rolled, that is stored anew, from time to time
(TIMER_ROLL_TIMES), so that it does not vanish with the oldest file of the log.

The delivered or rolled message has the log offset of its origin in the field in which a message of
a transaction has that of its half message. So the log itself shows what has been delivered.
Source: HookUtils.transformTimerMessage, TimerMessageStore.convert and RecallMessageProcessor of
RocketMQ 5.3, which know a message's time to the width of a slot only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, IllegalMessage
from sprocket.message import properties as names
from sprocket.message.drafting import copy_draft
from sprocket.message.hashing import tag_code
from sprocket.message.properties import encode
from sprocket.message.recall import RecallHandle, encode_handle
from sprocket.message.record import Draft, Record
from sprocket.message.topic import HALF, RETRY_PREFIX, SCHEDULE, TIMER

#: The only queue of the topic.
QUEUE = 0

_BELONGS_NOWHERE = frozenset({"", SCHEDULE, HALF, TIMER})
_RECALL_TAG = "_RECALL_TAG_"
_WAITING = encode({names.TIMER_OUT_MS: "%d", names.REAL_TOPIC: "%s", names.REAL_QUEUE: "%d"})


@dataclass(slots=True)
class TimerLimits:
    """The broker's settings for timed messages.

    Attributes:
        slot_ms: width of a slot of the wheel.
        delay_ms_max: the longest delay.
    """

    slot_ms: int
    delay_ms_max: int

    def allow(self, delay_ms_max: int) -> None:
        """Changes the longest delay."""
        self.delay_ms_max = delay_ms_max


class TimedWait(NamedTuple):
    """What a message waits for.

    Attributes:
        slot_ms: when its slot of the wheel begins.
        due_ms: its very time.
        is_recall: whether it takes another message back.
    """

    slot_ms: int
    due_ms: int
    is_recall: bool = False


def asks_for_time(topic: str, properties: Mapping[str, str]) -> bool:
    """Whether a message is to wait. A delivered one keeps them, and does not wait again."""
    if names.ASK_FOR_TIME.isdisjoint(properties):
        return False
    return names.TIMER_OUT_MS not in properties and topic != TIMER


def wait_of(properties: Mapping[str, str], limits: TimerLimits, *, now_ms: int) -> TimedWait | None:
    """What a message that asks for a time waits for; None if that time has come.

    Raises:
        IllegalMessage: the time is no number or too far away, or a recall is for a past time.
    """
    is_recall = names.TIMER_DELETE_KEY in properties
    due_ms = _asked_ms(properties, now_ms)
    if due_ms is None or due_ms - now_ms > limits.delay_ms_max:
        raise _illegal(limits)
    if due_ms <= now_ms:
        if is_recall:
            raise _illegal(limits)
        return None
    return TimedWait(slot_of(due_ms, limits.slot_ms), due_ms, is_recall)


def delay_until(
    properties: Mapping[str, str], wait: TimedWait, *, topic: str, queue_number: int
) -> dict[str, str]:
    """The properties of a message while it waits.

    Args:
        topic, queue_number: where it is to be delivered.
    """
    changed = dict(properties)
    changed[names.TIMER_DELIVER_MS] = str(wait.due_ms)
    changed[names.TIMER_OUT_MS] = str(wait.slot_ms)
    changed[names.REAL_TOPIC] = topic
    changed[names.REAL_QUEUE] = str(queue_number)
    return changed


def waiting_text(slot_ms: int, topic: str, queue_number: int) -> str:
    """The properties that `delay_until` adds to a message that asks for a time, as text."""
    return _WAITING % (slot_ms, topic, queue_number)


def slot_of(due_ms: int, slot_ms: int) -> int:
    """Begin of the slot in which a message waits that is due at a time, ms."""
    return (due_ms - 1) // slot_ms * slot_ms


def _asked_ms(properties: Mapping[str, str], now_ms: int) -> int | None:
    """The due time that is asked for. Seconds have precedence over milliseconds, then a time."""
    text, unit_ms = properties.get(names.TIMER_DELAY_SECONDS), 1000
    if text is None:
        text, unit_ms = properties.get(names.TIMER_DELAY_MS), 1
    if text is None:
        return whole_number(properties.get(names.TIMER_DELIVER_MS, ""))
    delay = whole_number(text)
    return None if delay is None else now_ms + delay * unit_ms


def whole_number(text: str) -> int | None:
    """The 64-bit number in a text; None if it is no such number."""
    if text.isdecimal() and text.isascii() and len(text) < 19:
        return int(text)
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 19:
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _illegal(limits: TimerLimits) -> IllegalMessage:
    return IllegalMessage(
        "timer message illegal, the delay time should not be bigger than the max delay "
        f"{limits.delay_ms_max}ms; or if set del msg, the delay time should be bigger than the "
        "current time"
    )


class TimerMessage(NamedTuple):
    """A message of the timer's topic, as the timers need it.

    Attributes:
        slot_ms: the slot in which it waits.
        due_ms: its due time, within the slot.
        topic: its own topic.
        is_recall: whether it recalls another message.
    """

    queue_offset: int
    log_offset: int
    record_bytes: int
    slot_ms: int
    due_ms: int
    topic: str
    is_recall: bool


def waiting(
    properties: Mapping[str, str], place: tuple[int, int, int], *, width_ms: int
) -> TimerMessage | None:
    """The message in a record of the timer's topic; None if its properties have no slot.

    Args:
        properties: the record's properties.
        place: its queue offset, log offset and size.
        width_ms: width of a slot. Records of Java have no due time, or one outside of the slot:
            they are due at its end.
    """
    slot_ms = whole_number(properties.get(names.TIMER_OUT_MS, ""))
    if slot_ms is None or slot_ms < 0:
        return None
    due_ms = whole_number(properties.get(names.TIMER_DELIVER_MS, ""))
    if due_ms is None or not slot_ms < due_ms <= slot_ms + width_ms:
        due_ms = slot_ms + width_ms
    is_recall = names.TIMER_DELETE_KEY in properties
    topic = properties.get(names.REAL_TOPIC, "")
    return TimerMessage(*place, slot_ms, due_ms, topic, is_recall)


def delete_key(topic: str, unique_key: str) -> str:
    """The key by which a recall names a message."""
    return f"{topic}+{unique_key}"


def key_of(properties: Mapping[str, str]) -> str:
    """The key by which a recall would name this message."""
    return delete_key(properties.get(names.REAL_TOPIC, ""), properties.get(names.UNIQUE_KEY, ""))


def handle_of(properties: Mapping[str, str], broker: str) -> bytes:
    """The handle for a recall of a message; empty if it does not wait, or is a retry."""
    slot_ms = whole_number(properties.get(names.TIMER_OUT_MS, ""))
    topic = properties.get(names.REAL_TOPIC)
    if slot_ms is None or not topic or topic.startswith(RETRY_PREFIX):
        return b""
    unique_key = properties.get(names.UNIQUE_KEY, "")
    return encode_handle(topic, broker, slot_ms + 1, unique_key)


def recall_of(
    handle: RecallHandle, *, group: str, born_host: bytes, now_ms: int
) -> tuple[Draft, dict[str, str]]:
    """The message that recalls another one, with its properties; it is stored like any other."""
    properties = {
        names.TAGS: _RECALL_TAG,
        names.TIMER_DELETE_KEY: delete_key(handle.topic, handle.unique_key),
        names.UNIQUE_KEY: handle.unique_key,
        names.TIMER_DELIVER_MS: handle.due_ms,
        names.BORN_MS: str(now_ms),
        names.PRODUCER_GROUP: group,
    }
    draft = Draft(
        topic=handle.topic,
        queue_number=0,
        body=b"0",
        properties=b"",
        tag_code=tag_code(_RECALL_TAG),
        flag=0,
        sys_flag=0,
        born_ms=now_ms,
        born_host=born_host,
        unique_key=handle.unique_key,
    )
    return draft, {name: value for name, value in properties.items() if value}


def delivered(record: Record, properties: dict[str, str], *, entered_ms: int, now_ms: int) -> Draft:
    """The message to store under its own topic when its time has come.

    Args:
        record: the record in which it waited.
        properties: the record's properties; they are changed.
        entered_ms: when it was put on the wheel.
        now_ms: the present time.

    Raises:
        CorruptRecord: the record does not name a valid topic and queue.
    """
    topic = properties.pop(names.REAL_TOPIC, "")
    queue = whole_number(properties.pop(names.REAL_QUEUE, ""))
    if topic in _BELONGS_NOWHERE or queue is None or not 0 <= queue < 1 << 31:
        raise CorruptRecord(f"the timed message at {record.log_offset} has no place to go")
    properties[names.TIMER_ENQUEUE_MS] = str(entered_ms)
    properties[names.TIMER_DEQUEUE_MS] = str(now_ms)
    return copy_draft(
        record, properties, topic, queue_number=queue, prepared_offset=record.log_offset
    )


def rolled(record: Record, properties: dict[str, str], *, entered_ms: int, now_ms: int) -> Draft:
    """The copy that replaces a message that has to wait longer than its log file is kept."""
    times = whole_number(properties.get(names.TIMER_ROLL_TIMES, "")) or 0
    properties[names.TIMER_ROLL_TIMES] = str(times + 1)
    properties[names.TIMER_ENQUEUE_MS] = str(entered_ms)
    properties[names.TIMER_DEQUEUE_MS] = str(now_ms)
    return copy_draft(
        record, properties, TIMER, queue_number=QUEUE, prepared_offset=record.log_offset
    )
