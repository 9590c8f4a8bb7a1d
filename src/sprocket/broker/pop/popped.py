"""What a pop found, and its reply.

Messages from a topic go out as slices of the log. Those from a retry topic are written anew, under
the topic that the client knows and with their handle among the properties.
Source: PopMessageProcessor of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sprocket.message import properties as names
from sprocket.message.drafting import copy_draft
from sprocket.message.pop_handle import (
    PopHandle,
    PoppedSpan,
    kind_of,
    message_offsets_text,
    start_offsets_text,
)
from sprocket.message.properties import decode_bytes
from sprocket.message.record import Buffer, Encoder, parse, topic_part
from sprocket.protocol.command import Reply
from sprocket.protocol.requests.pop import PopReply
from sprocket.store.reading.queue_reader import ReadResult
from sprocket.store.writing.appender import Appended


@dataclass(slots=True)
class Popped:
    """What a pop found.

    Attributes:
        topic: the topic that was popped.
        seen: by topic and queue, where each queue that was read ended.
        rest: how many messages are left.
        last: the last record about what is given out; None if there is none.
        unlock_ms: when the first of the queues that are blocked is free again; None if none is.
        is_unfinished: whether there may be more messages that match, behind those examined.
    """

    topic: str
    broker: str
    pop_ms: int
    invisible_ms: int
    revive_queue: int
    spans: list[PoppedSpan] = field(default_factory=list)
    parts: list[Buffer] = field(default_factory=list)
    order_counts: list[str] = field(default_factory=list)
    seen: dict[tuple[str, int], int] = field(default_factory=dict)
    count: int = 0
    size: int = 0
    rest: int = 0
    last: Appended | None = None
    unlock_ms: int | None = None
    is_unfinished: bool = False

    def add(self, span: PoppedSpan, views: list[memoryview]) -> None:
        """Adds the messages of a queue."""
        self.spans.append(span)
        for offset, view in zip(span.offsets, views, strict=True):
            is_own = span.topic == self.topic
            self.parts.append(view if is_own else self._rewritten(span, offset, view))
        self.count += len(views)
        self.size += sum(map(len, views))

    def _rewritten(self, span: PoppedSpan, offset: int, view: memoryview) -> bytes:
        record = parse(view)
        handle = PopHandle(
            span.start_offset, self.pop_ms, self.invisible_ms, self.revive_queue,
            kind_of(span.topic), self.broker, span.queue_number, offset,
        )  # fmt: skip
        properties = {**decode_bytes(record.properties), names.POP_HANDLE: handle.encode()}
        draft = copy_draft(
            record, properties, self.topic, queue_number=record.queue_number,
            prepared_offset=record.prepared_offset,
        )  # fmt: skip
        return Encoder(record.store_host).encode(
            draft, topic_part(self.topic.encode()), record.log_offset, record.queue_offset,
            record.stored_ms,
        )  # fmt: skip

    def reply(self, code: int, remark: str, *, is_order: bool) -> Reply:
        """The reply with what was found."""
        header = PopReply(
            pop_time=self.pop_ms,
            invisible_time=self.invisible_ms,
            revive_qid=self.revive_queue,
            rest_num=self.rest,
            start_offset_info=start_offsets_text(self.spans),
            msg_offset_info=message_offsets_text(self.spans),
            order_count_info=";".join(self.order_counts) if is_order else None,
        )
        return Reply(header, self.parts, code, remark)


def messages_of(found: ReadResult) -> Iterator[tuple[int, memoryview]]:
    """Queue offset and record of each message of a read."""
    for part in found.parts:
        at = 0
        while at < len(part):
            record = parse(part, at)
            yield record.queue_offset, part[at : at + record.size]
            at += record.size
