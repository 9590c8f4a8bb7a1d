"""Popping messages, acknowledging them, changing when they become visible again.

Source: PopMessageRequestHeader, AckMessage…, ChangeInvisibleTime…, Notification…, PollingInfo…,
PeekMessage… of RocketMQ 5.x.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Int, Long


class PopReply(Header, kw_only=True):
    """When and where popped messages become visible again. The texts list queues and offsets."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int
    rest_num: Long
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class PopMessage(Header, kw_only=True):
    """Takes messages of a topic and hides them from others for a time; reply body: records."""

    code: ClassVar[int] = 200050
    reply: ClassVar[type[Header]] = PopReply

    consumer_group: str
    topic: str
    queue_id: Int
    max_msg_nums: Int
    invisible_time: Long
    poll_time: Long
    born_time: Long
    init_mode: Int
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None
    bname: str | None = None


class AckMessage(Header, kw_only=True):
    """Acknowledges a popped message."""

    code: ClassVar[int] = 200051

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    lite_topic: str | None = None
    bname: str | None = None


class PeekMessage(Header, kw_only=True):
    """Reads messages without taking them; the reply is that of a pop."""

    code: ClassVar[int] = 200052
    reply: ClassVar[type[Header]] = PopReply

    consumer_group: str
    topic: str
    queue_id: Int
    max_msg_nums: Int


class InvisibleReply(Header, kw_only=True):
    """When and for how long the message is hidden now."""

    pop_time: Long
    invisible_time: Long
    revive_qid: Int


class ChangeInvisible(Header, kw_only=True):
    """Changes how long a popped message is hidden."""

    code: ClassVar[int] = 200053
    reply: ClassVar[type[Header]] = InvisibleReply

    consumer_group: str
    topic: str
    queue_id: Int
    extra_info: str
    offset: Long
    invisible_time: Long
    lite_topic: str | None = None
    suspend: bool = False
    bname: str | None = None


class NotificationReply(Header, kw_only=True):
    """Whether there are messages to pop."""

    has_msg: bool
    polling_full: bool = False


class Notification(Header, kw_only=True):
    """Waits until there are messages to pop."""

    code: ClassVar[int] = 200054
    reply: ClassVar[type[Header]] = NotificationReply

    consumer_group: str
    topic: str
    queue_id: Int
    poll_time: Long
    born_time: Long
    order: bool = False
    attempt_id: str | None = None
    bname: str | None = None


class PollingReply(Header, kw_only=True):
    """The number of pops that wait at the broker."""

    polling_num: Int


class PollingInfo(Header, kw_only=True):
    """Asks how many pops of a queue wait at the broker."""

    code: ClassVar[int] = 200055
    reply: ClassVar[type[Header]] = PollingReply

    consumer_group: str
    topic: str
    queue_id: Int
    bname: str | None = None


class AckMessages(Header, kw_only=True):
    """Acknowledges several popped messages; request body: `AckBatchBody`."""

    code: ClassVar[int] = 200151


class PopRollback(Header, kw_only=True):
    """Has RocketMQ's records about popped messages moved from RocksDB to the log."""

    code: ClassVar[int] = 200056
