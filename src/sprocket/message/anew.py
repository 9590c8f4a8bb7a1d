"""Copies a stored message to another topic: one that is due, sent back, committed, parked. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.message import properties as names
from sprocket.message.hashing import tag_code
from sprocket.message.properties import encode
from sprocket.message.record import Draft, Record


def anew(record: Record, properties: Mapping[str, str], topic: str, *, queue_number: int) -> Draft:
    """Returns a draft of a record's message for another topic and queue, with the given properties.

    Its offset of a half message is 0.
    """
    return Draft(
        topic=topic,
        queue_number=queue_number,
        body=record.body,
        properties=encode(properties).encode("utf-8", "replace"),
        tag_code=tag_code(properties.get(names.TAGS)),
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_ms=record.born_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times,
        keys=properties.get(names.KEYS, ""),
        unique_key=properties.get(names.UNIQUE_KEY, ""),
    )
