"""A stored message is stored once more: due, given back, committed, parked. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.message import properties as names
from sprocket.message.hashing import tag_code
from sprocket.message.properties import encode
from sprocket.message.record import Draft, Record


def anew(
    record: Record,
    properties: Mapping[str, str],
    topic: str,
    *,
    queue_number: int,
    sys_flag: int | None = None,
    reconsume_times: int | None = None,
    prepared_offset: int = 0,
) -> Draft:
    """The draft of a record's message for another place, with properties as they are now.

    Args:
        sys_flag: its new system flag; None for the record's own.
        reconsume_times: how often it has been offered again; None for the record's own.
        prepared_offset: log offset of the record that it comes from, where that is to be known.
    """
    return Draft(
        topic=topic,
        queue_number=queue_number,
        body=record.body,
        properties=encode(properties).encode("utf-8", "replace"),
        tag_code=tag_code(properties.get(names.TAGS)),
        flag=record.flag,
        sys_flag=record.sys_flag if sys_flag is None else sys_flag,
        born_ms=record.born_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times if reconsume_times is None else reconsume_times,
        prepared_offset=prepared_offset,
        keys=properties.get(names.KEYS, ""),
        unique_key=properties.get(names.UNIQUE_KEY, ""),
    )
