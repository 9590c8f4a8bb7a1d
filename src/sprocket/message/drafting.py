"""Makes drafts: of a message by its properties, and of a stored one for another topic. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sprocket.message import properties as names
from sprocket.message.hashing import tag_code
from sprocket.message.properties import encode
from sprocket.message.record import Buffer, Draft, Record


def drafted(
    properties: Mapping[str, str],
    *,
    topic: str,
    queue_number: int,
    body: Buffer,
    flag: int,
    sys_flag: int,
    born_ms: int,
    born_host: bytes,
    reconsume_times: int = 0,
    prepared_offset: int = 0,
    text: bytes = b"",
) -> Draft:
    """A message with the tag, the keys and the unique key that its properties name.

    Args:
        text: the properties as they are stored; empty if it is made later.
    """
    return Draft(
        topic=topic,
        queue_number=queue_number,
        body=body,
        properties=text,
        tag_code=tag_code(properties.get(names.TAGS)),
        flag=flag,
        sys_flag=sys_flag,
        born_ms=born_ms,
        born_host=born_host,
        reconsume_times=reconsume_times,
        prepared_offset=prepared_offset,
        keys=properties.get(names.KEYS, ""),
        unique_key=properties.get(names.UNIQUE_KEY, ""),
    )


def copy_draft(
    record: Record,
    properties: Mapping[str, str],
    topic: str,
    *,
    queue_number: int,
    sys_flag: int | None = None,
    tries: int = 0,
    prepared_offset: int = 0,
) -> Draft:
    """A record's message for another place, with properties as they are now.

    Args:
        sys_flag: its new system flag; None for the record's own.
        tries: how many more times it has been offered again.
        prepared_offset: log offset of the record that it comes from, where that is to be known.
    """
    return drafted(
        properties,
        topic=topic,
        queue_number=queue_number,
        body=record.body,
        flag=record.flag,
        sys_flag=record.sys_flag if sys_flag is None else sys_flag,
        born_ms=record.born_ms,
        born_host=record.born_host,
        reconsume_times=record.reconsume_times + tries,
        prepared_offset=prepared_offset,
        text=encode(properties).encode("utf-8", "replace"),
    )
