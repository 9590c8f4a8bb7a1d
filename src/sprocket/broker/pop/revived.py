"""The message that a group gets again, or its dead letter. Pure.

Source: PopReviveService.reviveRetry of RocketMQ 5.3, where only clients make dead letters.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.message import properties as names
from sprocket.message.drafting import copy_draft
from sprocket.message.ids import offset_id
from sprocket.message.properties import decode_bytes
from sprocket.message.record import Draft, Record
from sprocket.message.topic import (
    dead_letter_topic,
    is_retry_topic,
    pop_retry_topic,
    popped_topic,
)


class RevivalRules(NamedTuple):
    """How a group's messages come again.

    Attributes:
        times_max: how often at most; then they are dead letters.
        is_v2: whether through the second form of its retry topic.
    """

    times_max: int
    is_v2: bool


def revived(record: Record, group: str, *, pop_ms: int, rules: RevivalRules) -> Draft:
    """The draft of a message that was popped and not acknowledged in time.

    Args:
        record: the record that was popped, which may itself be a retry.
        pop_ms: when it was popped.
    """
    properties = decode_bytes(record.properties)
    if record.reconsume_times == 0 or names.FIRST_POP_MS not in properties:
        properties[names.FIRST_POP_MS] = str(pop_ms)
    topic = record.topic
    if record.reconsume_times >= rules.times_max:
        properties.setdefault(names.RETRY_TOPIC, popped_topic(topic, group))
        properties.setdefault(names.ORIGIN_ID, offset_id(record.store_host, record.log_offset))
        topic = dead_letter_topic(group)
    elif not is_retry_topic(topic):
        topic = pop_retry_topic(topic, group, is_v2=rules.is_v2)
    return copy_draft(record, properties, topic, queue_number=0, tries=1)
