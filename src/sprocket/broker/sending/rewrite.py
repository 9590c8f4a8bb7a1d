"""How a message is changed on its way into the log. Pure.

A draft and its properties come in and are changed in place; nothing is stored here. The order of
the steps is `ingress`'s.
Source: SendMessageProcessor, AbstractSendMessageProcessor.consumerSendMsgBack of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.delay.levels import schedule
from sprocket.delay.levels.levels import DelayLevels
from sprocket.delay.levels.schedule import level_in
from sprocket.delay.timers.timed import ASKING, asks_for_time, put_off
from sprocket.message import properties as names
from sprocket.message.anew import anew
from sprocket.message.ids import offset_id
from sprocket.message.record import Draft, Record
from sprocket.message.topic import dead_letter_topic, retry_topic
from sprocket.transaction.half import prepare

__all__ = [
    "asks_for_time",
    "delay",
    "given_up",
    "is_given_up",
    "prepare",
    "put_off",
    "retried",
]

#: What an ordinary first retry waits: level 3, and one more with each further try.
_FIRST_RETRY_LEVEL = 3


def delay(draft: Draft, properties: dict[str, str], *, levels: DelayLevels, now_ms: int) -> bool:
    """Lets a message that asks for a delay level wait in the schedule topic; whether it does.

    A time that it asks for as well does not count.

    Raises:
        SystemFailure: its delay level is no number.
    """
    level = level_in(properties)
    if level <= 0:
        return False
    for name in ASKING:
        properties.pop(name, None)
    schedule.put_off(draft, properties, level, levels=levels, now_ms=now_ms)
    return True


def is_given_up(record: Record, *, level: int, times_max: int) -> bool:
    """Whether a message that comes back goes to the dead letters instead of another retry."""
    return level < 0 or record.reconsume_times >= times_max


def retried(
    record: Record, properties: dict[str, str], *, group: str, level: int, queue_number: int
) -> Draft:
    """The message that offers a record to its group again, after a delay.

    Args:
        level: the delay level, or 0 for the usual one, which rises with each try.
    """
    level = level or _FIRST_RETRY_LEVEL + record.reconsume_times
    properties[names.DELAY] = str(level)
    return _returned(record, properties, topic=retry_topic(group), queue_number=queue_number)


def given_up(record: Record, properties: dict[str, str], *, group: str) -> Draft:
    """The message that keeps a record as its group's dead letter, without a further delay."""
    properties[names.DELAY] = "0"
    return _returned(record, properties, topic=dead_letter_topic(group), queue_number=0)


def _returned(
    record: Record, properties: dict[str, str], *, topic: str, queue_number: int
) -> Draft:
    properties.setdefault(names.RETRY_TOPIC, record.topic)
    properties.setdefault(names.ORIGIN_ID, offset_id(record.store_host, record.log_offset))
    properties[names.WAIT] = "false"
    draft = anew(record, properties, topic, queue_number=queue_number)
    draft.reconsume_times += 1
    return draft
