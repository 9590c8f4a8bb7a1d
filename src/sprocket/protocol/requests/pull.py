"""Pulling messages.

Source: PullMessageRequestHeader, PullMessageResponseHeader, PullSysFlag, RocketMQ 4.9 and 5.x. `lo`
is false in a broker's request to another one for its own queue, not for a logical one.
"""

from __future__ import annotations

from typing import ClassVar

from sprocket.protocol.command import Header, Int, Long

#: Bits of `sys_flag`: the request also commits `commit_offset`; the broker may suspend it; it has
#: its own subscription; the expression is a filter class; the sender is a lite pull consumer.
COMMIT_OFFSET = 1
SUSPEND = 2
SUBSCRIPTION = 4
CLASS_FILTER = 8
LITE_PULL = 16

#: Begins the remark of a broker without such filters. Source: PullMessageProcessor.
CANNOT_FILTER = "The broker does not support consumer to filter message by"


class PullReply(Header, kw_only=True):
    """Where to continue. All replies but errors have it; the remark is the store's status.

    `suggest_which_broker_id`: 0 the master, 1 the slave.
    """

    suggest_which_broker_id: Long
    next_begin_offset: Long
    min_offset: Long
    max_offset: Long
    offset_delta: Long | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None
    forbidden_type: Int | None = None

    def to_fields(self) -> dict[str, str]:
        """The same as `Header.to_fields`, written out for speed: every pull has such a reply."""
        texts = {
            "suggestWhichBrokerId": str(self.suggest_which_broker_id),
            "nextBeginOffset": str(self.next_begin_offset),
            "minOffset": str(self.min_offset),
            "maxOffset": str(self.max_offset),
        }
        if self.offset_delta is not None:
            texts["offsetDelta"] = str(self.offset_delta)
        if self.topic_sys_flag is not None:
            texts["topicSysFlag"] = str(self.topic_sys_flag)
        if self.group_sys_flag is not None:
            texts["groupSysFlag"] = str(self.group_sys_flag)
        if self.forbidden_type is not None:
            texts["forbiddenType"] = str(self.forbidden_type)
        return texts


class ForbiddenReply(Header, kw_only=True):
    """Why reading is forbidden (code 16): 1 broker, 2 group, 3 topic, 4 broadcasting group."""

    forbidden_type: Int | None = None


class PullMessage(Header, kw_only=True):
    """Asks for messages of one queue from an offset on; reply body: records."""

    code: ClassVar[int] = 11
    reply: ClassVar[type[Header]] = PullReply

    consumer_group: str
    topic: str
    queue_id: Int
    queue_offset: Long
    max_msg_nums: Int
    sys_flag: Int = 0
    commit_offset: Long = 0
    suspend_timeout_millis: Long = 0
    subscription: str | None = None
    sub_version: Long = 0
    expression_type: str | None = None
    max_msg_bytes: Int | None = None
    request_source: Int | None = None
    bname: str | None = None
    lo: bool | None = None


class LitePullMessage(PullMessage, kw_only=True):
    """A `PullMessage` from a consumer that assigns queues to itself."""

    code: ClassVar[int] = 361
