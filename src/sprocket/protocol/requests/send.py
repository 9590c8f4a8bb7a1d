"""Sending messages, sending them back, replying to request messages, recalling.

Source: SendMessageRequestHeader, SendMessageRequestHeaderV2, ConsumerSendMsgBackRequestHeader,
ReplyMessageRequestHeader, RecallMessageRequestHeader and their replies, RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sprocket.protocol.command import Header, Int, Long


class SendReply(Header, kw_only=True):
    """Where a message was stored. `msg_id` is the offset id, `transaction_id` the unique key.

    For a batch, both contain one id for each message, joined by commas.
    """

    msg_id: str
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
    msg_region: str | None = msgspec.field(default=None, name="MSG_REGION")
    trace_on: str | None = msgspec.field(default=None, name="TRACE_ON")

    def to_wire(self) -> msgspec.Struct:
        """The same as `Header.to_wire`, as a struct for speed: every send has such a reply."""
        return _SendReplyTexts(
            self.msg_id,
            str(self.queue_id),
            str(self.queue_offset),
            self.transaction_id,
            self.batch_uniq_id,
            self.recall_handle,
            self.msg_region,
            self.trace_on,
        )


class _SendReplyTexts(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """The fields of a `SendReply` as texts."""

    msg_id: str
    queue_id: str
    queue_offset: str
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
    msg_region: str | None = msgspec.field(default=None, name="MSG_REGION")
    trace_on: str | None = msgspec.field(default=None, name="TRACE_ON")


class SendMessage(Header, kw_only=True):
    """Sends one message, or a batch if `batch`. Only the queue and its topic must be given."""

    code: ClassVar[int] = 10
    reply: ClassVar[type[Header]] = SendReply

    producer_group: str = ""
    topic: str
    default_topic: str = "TBW102"
    default_topic_queue_nums: Int = 4
    queue_id: Int
    sys_flag: Int = 0
    born_timestamp: Long = 0
    flag: Int = 0
    properties: str | None = None
    reconsume_times: Int = 0
    unit_mode: bool = False
    batch: bool = False
    max_reconsume_times: Int | None = None
    bname: str | None = None


class SendMessageV2(Header, kw_only=True):
    """A `SendMessage` with names of one letter, which is what clients send."""

    code: ClassVar[int] = 310
    reply: ClassVar[type[Header]] = SendReply

    producer_group: str = msgspec.field(default="", name="a")
    topic: str = msgspec.field(name="b")
    default_topic: str = msgspec.field(default="TBW102", name="c")
    default_topic_queue_nums: Int = msgspec.field(default=4, name="d")
    queue_id: Int = msgspec.field(name="e")
    sys_flag: Int = msgspec.field(default=0, name="f")
    born_timestamp: Long = msgspec.field(default=0, name="g")
    flag: Int = msgspec.field(default=0, name="h")
    properties: str | None = msgspec.field(default=None, name="i")
    reconsume_times: Int = msgspec.field(default=0, name="j")
    unit_mode: bool = msgspec.field(default=False, name="k")
    max_reconsume_times: Int | None = msgspec.field(default=None, name="l")
    batch: bool = msgspec.field(default=False, name="m")
    bname: str | None = msgspec.field(default=None, name="n")

    def to_fields(self) -> dict[str, str]:
        """The same as `Header.to_fields`, written out for speed: every send has such a header."""
        texts = {
            "a": self.producer_group,
            "b": self.topic,
            "c": self.default_topic,
            "d": str(self.default_topic_queue_nums),
            "e": str(self.queue_id),
            "f": str(self.sys_flag),
            "g": str(self.born_timestamp),
            "h": str(self.flag),
            "j": str(self.reconsume_times),
            "k": "true" if self.unit_mode else "false",
            "m": "true" if self.batch else "false",
        }
        if self.properties is not None:
            texts["i"] = self.properties
        if self.max_reconsume_times is not None:
            texts["l"] = str(self.max_reconsume_times)
        if self.bname is not None:
            texts["n"] = self.bname
        return texts


class SendBatch(SendMessageV2, kw_only=True):
    """Sends a batch; request body: see `sprocket.message.batch`."""

    code: ClassVar[int] = 320


class SendReplyMessage(SendMessage, kw_only=True):
    """Sends the reply to a request message, which the broker pushes to the requester."""

    code: ClassVar[int] = 324


class SendReplyMessageV2(SendMessageV2, kw_only=True):
    """A `SendReplyMessage` with names of one letter."""

    code: ClassVar[int] = 325


class PushReplyMessage(Header, kw_only=True):
    """Broker to client: the reply to its request message."""

    code: ClassVar[int] = 326

    producer_group: str
    topic: str
    default_topic: str = ""
    default_topic_queue_nums: Int = 0
    queue_id: Int = 0
    sys_flag: Int = 0
    born_timestamp: Long = 0
    flag: Int = 0
    properties: str | None = None
    reconsume_times: Int = 0
    unit_mode: bool = False
    born_host: str = ""
    store_host: str = ""
    store_timestamp: Long = 0


class SendBack(Header, kw_only=True):
    """Sends a message back, to be consumed again later or to become a dead letter.

    `delay_level`: below 0 a dead letter at once, 0 the broker decides, above 0 that level.
    """

    code: ClassVar[int] = 36

    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int | None = None
    bname: str | None = None


class RecallReply(Header, kw_only=True):
    """The unique key of the recalled message."""

    msg_id: str | None = None
    msg_region: str | None = msgspec.field(default=None, name="MSG_REGION")


class RecallMessage(Header, kw_only=True):
    """Recalls a delayed message before it is due."""

    code: ClassVar[int] = 370
    reply: ClassVar[type[Header]] = RecallReply

    producer_group: str | None = None
    topic: str
    recall_handle: str
    bname: str | None = None
