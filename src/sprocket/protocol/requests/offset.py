"""Requests about offsets of queues and of consumer groups.

Source: the headers Get…OffsetRequestHeader, SearchOffset…, Query…, UpdateConsumerOffset…,
ResetOffset…, CloneGroupOffset…, TopicRequestHeader of RocketMQ 4.9 and 5.x. `lo` is false in the
requests of a broker to another one for its own queues, not for logical ones.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Int, Long

#: A broker commits this at another one that holds a part of a logical queue, with `lo` false: the
#: group has no offset there any more.
NO_OFFSET = -1
#: Values of `SearchOffset.boundary_type`.
LOWER = "LOWER"
UPPER = "UPPER"


class OffsetReply(Header, kw_only=True):
    """One offset."""

    offset: Long


class TimestampReply(Header, kw_only=True):
    """One time, ms since 1970 UTC; -1 for none."""

    timestamp: Long


class QueryOffset(Header, kw_only=True):
    """Asks for a group's committed offset in a queue.

    `set_zero_if_not_found`: with False the reply is code 22 where it would be offset 0 otherwise.
    """

    code: ClassVar[int] = 14
    reply: ClassVar[type[Header]] = OffsetReply

    consumer_group: str
    topic: str
    queue_id: Int
    set_zero_if_not_found: bool | None = None
    bname: str | None = None
    lo: bool | None = None


class UpdateOffset(Header, kw_only=True):
    """Commits a group's offset in a queue. Without an offset the reply is code 29."""

    code: ClassVar[int] = 15

    consumer_group: str
    topic: str
    queue_id: Int
    commit_offset: Long | None = None
    bname: str | None = None
    lo: bool | None = None


class SearchOffset(Header, kw_only=True):
    """Asks for the offset at a time (ms since 1970 UTC). No boundary means `LOWER`."""

    code: ClassVar[int] = 29
    reply: ClassVar[type[Header]] = OffsetReply

    topic: str
    queue_id: Int
    timestamp: Long
    boundary_type: str | None = None
    bname: str | None = None
    lo: bool | None = None


class MaxOffset(Header, kw_only=True):
    """Asks for the offset after a queue's last message."""

    code: ClassVar[int] = 30
    reply: ClassVar[type[Header]] = OffsetReply

    topic: str
    queue_id: Int
    committed: bool | None = None
    bname: str | None = None
    lo: bool | None = None


class MinOffset(Header, kw_only=True):
    """Asks for the offset of a queue's first message."""

    code: ClassVar[int] = 31
    reply: ClassVar[type[Header]] = OffsetReply

    topic: str
    queue_id: Int
    bname: str | None = None
    lo: bool | None = None


class EarliestTime(Header, kw_only=True):
    """Asks when a queue's first message was stored."""

    code: ClassVar[int] = 32
    reply: ClassVar[type[Header]] = TimestampReply

    topic: str
    queue_id: Int
    bname: str | None = None
    lo: bool | None = None


class AllOffsets(Header, kw_only=True):
    """Asks for all committed offsets of the broker, for its slaves."""

    code: ClassVar[int] = 43


class ResetClientOffset(Header, kw_only=True):
    """Broker to client: sets its offsets; request body: `ResetOffsetBody`."""

    code: ClassVar[int] = 220

    topic: str
    group: str
    queue_id: Int = -1
    offset: Long | None = None
    timestamp: Long = 0
    is_force: bool = False


class ResetOffset(ResetClientOffset, kw_only=True):
    """Moves a group to a time or an offset; reply body: `ResetOffsetBody`."""

    code: ClassVar[int] = 222


class ClientConsumeStatus(Header, kw_only=True):
    """Broker to client: asks for its offsets of a topic; reply body: `ConsumeStatusBody`."""

    code: ClassVar[int] = 221

    topic: str
    group: str
    client_addr: str | None = None


class ConsumeStatus(ClientConsumeStatus, kw_only=True):
    """Asks for the offsets of all clients of a group; reply body: `ConsumeStatusBody`."""

    code: ClassVar[int] = 223


class QueryCorrectionOffset(Header, kw_only=True):
    """Compares offsets of a group with those of others; reply body: a map."""

    code: ClassVar[int] = 308

    topic: str | None = None
    filter_groups: str | None = None
    compare_group: str | None = None


class CloneOffset(Header, kw_only=True):
    """Copies the offsets of a group to another group."""

    code: ClassVar[int] = 314

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False
