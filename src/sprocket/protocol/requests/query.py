"""Requests that find messages and read queue entries.

Source: QueryMessageRequestHeader, ViewMessage…, QueryConsumeQueue… of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.command import Header, Int, Long


class QueryReply(Header, kw_only=True):
    """The progress of the key index."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


class QueryMessage(Header, kw_only=True):
    """Asks for messages with a key, stored between two times; reply body: records.

    `unique_key_query`: the key is a unique key.
    """

    code: ClassVar[int] = 12
    reply: ClassVar[type[Header]] = QueryReply

    topic: str
    key: str | None = None
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long
    unique_key_query: bool | None = msgspec.field(default=None, name="_UNIQUE_KEY_QUERY")


class ViewMessage(Header, kw_only=True):
    """Asks for the message at an offset of the log; reply body: its record."""

    code: ClassVar[int] = 33

    topic: str | None = None
    offset: Long


class QueryConsumeQueue(Header, kw_only=True):
    """Asks for entries of a queue; reply body: `ConsumeQueueBody`."""

    code: ClassVar[int] = 321

    topic: str
    queue_id: Int
    index: Long = 0
    count: Int = 0
    consumer_group: str | None = None
