"""What brokers' replies to pops mean, and how popped messages are acknowledged. Pure.

A pop's reply has the records, and lists of their queues and offsets in its header; together they
give each message its handle. Records of a retry topic bear theirs as a property.

Source: MQClientAPIImpl.processPopResponse and batchAckMessageAsync, and
ConsumeMessagePopConcurrentlyService, of RocketMQ 5.3.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, RemoteProtocolError, UsageError
from sprocket.filter.choice import Filter
from sprocket.message.message import StoredMessage
from sprocket.message.opening import Opening
from sprocket.message.pop_handle import (
    NORMAL,
    PopHandle,
    read_offsets,
    read_order_counts,
)
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.properties import DELAY_LEVEL_MAX, DELAY_LEVELS, POP_HANDLE
from sprocket.message.record import scan
from sprocket.protocol.bodies import AckBatchBody, AckItem
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.pop import (
    AckMessage,
    ChangeInvisible,
    InvisibleReply,
    PopMessage,
    PopReply,
)

#: How long a message that failed stays invisible, by the number of failures before, s; the last
#: one is for all further failures. Source: ConsumeMessagePopConcurrentlyService.popDelayLevel.
RETRY_SECONDS = (
    10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200,
)  # fmt: skip
_UNITS = {"s": 1, "m": 60, "h": 3600}
_LEVEL_SECONDS = [int(each[:-1]) * _UNITS[each[-1]] for each in DELAY_LEVELS.split()]

#: Offsets further behind the first of their check point are acknowledged by themselves.
_BITS_MAX = 16_384


class PopStatus(Enum):
    """What a pop found.

    Members:
        FOUND: messages.
        NO_NEW: nothing.
        FULL: nothing, and too many pops wait at the broker already.
    """

    FOUND = "FOUND"
    NO_NEW = "POLLING_NOT_FOUND"
    FULL = "POLLING_FULL"


_POPPED: dict[int, PopStatus] = {
    ResponseCode.SUCCESS: PopStatus.FOUND,
    ResponseCode.PULL_NOT_FOUND: PopStatus.NO_NEW,
    ResponseCode.POLLING_TIMEOUT: PopStatus.NO_NEW,
    ResponseCode.POLLING_FULL: PopStatus.FULL,
}


class PopAnswer(NamedTuple):
    """A broker's reply to a pop. All its messages are invisible to others now.

    Attributes:
        messages: those that match, in the order of the reply.
        unwanted: those that do not match; brokers may have compared only the hashes of tags.
        unopened: those behind the bound of what may be opened at once.
    """

    status: PopStatus
    messages: list[PoppedMessage]
    unwanted: list[PoppedMessage]
    unopened: list[PoppedMessage]


def read_pop(
    reply: Command, request: PopMessage, broker: str, *, wanted: Filter, now: float
) -> PopAnswer:
    """Reads the reply to a pop.

    Args:
        request: what was asked for.
        broker: the name of the broker that replied.
        now: seconds on the loop's clock.

    Raises:
        ReplyError: the broker refused.
        RemoteProtocolError: the reply is not whole, has more messages than were asked for, or has
            some that its lists do not name.
    """
    status = _POPPED.get(reply.code)
    if status is None:
        raise reply.error()
    answer = PopAnswer(status, [], [], [])
    if status is not PopStatus.FOUND:
        return answer
    if not reply.body:
        raise RemoteProtocolError("the reply to a pop that found messages contains none")
    handles = PoppedHandles(reply.read(PopReply), request, broker)
    opening = Opening()
    for stored in _scanned(reply, broker, request, opening):
        message = PoppedMessage.of(stored, request.consumer_group, handles.of(stored), now)
        fits = wanted.is_all or wanted.matches(message.properties)
        (answer.messages if fits else answer.unwanted).append(message)
    if opening.stopped_at is not None:
        opened = len(answer.messages) + len(answer.unwanted)
        left = islice(_scanned(reply, broker, request, None), opened, None)
        answer.unopened.extend(
            PoppedMessage.of(stored, request.consumer_group, handles.of(stored), now)
            for stored in left
        )
    return answer


def _scanned(
    reply: Command, broker: str, request: PopMessage, opening: Opening | None
) -> Iterable[StoredMessage]:
    count = 0
    try:
        for count, message in enumerate(scan(reply.body, broker, opening=opening), 1):
            if count > request.max_msg_nums:
                text = f"a pop of {request.max_msg_nums} messages at most returned more"
                raise RemoteProtocolError(text)
            if message.topic != request.topic:
                text = f"a pop of topic {request.topic} returned a message of {message.topic}"
                raise RemoteProtocolError(text)
            yield message
    except CorruptRecord as error:
        raise RemoteProtocolError(f"record {count + 1} of a pop: {error}") from error


class PoppedHandles:
    """Makes the handles of a reply's messages.

    Args:
        broker: the name of the broker that replied.

    Raises:
        RemoteProtocolError: the lists in the header are none.
    """

    __slots__ = ("_broker", "_counts", "_has_retried", "_header", "_listed", "_starts")

    def __init__(self, header: PopReply, request: PopMessage, broker: str) -> None:
        self._header = header
        self._broker = broker
        counts = (header.order_count_info or "") if request.order else ""
        try:
            self._starts = read_offsets(header.start_offset_info or "")
            listed = read_offsets(header.msg_offset_info or "")
            self._counts = read_order_counts(counts) if request.order else None
        except UsageError as error:
            raise RemoteProtocolError(str(error)) from error
        self._listed = {place: set(offsets) for place, offsets in listed.items()}
        self._has_retried = any(kind != NORMAL for kind, _ in listed)

    def of(self, stored: StoredMessage) -> PopHandle:
        """The handle of a message. One that was popped in order learns how often it was before.

        Raises:
            RemoteProtocolError: the header does not list it.
        """
        queue, offset = stored.queue.number, stored.queue_offset
        handle = self._retried(stored) if self._has_retried else None
        if handle is None:
            handle = self._new(queue, offset)
        if self._counts is not None:
            other = self._counts.get((handle.kind, queue, -1), 0)
            stored.reconsume_times = self._counts.get((handle.kind, queue, offset), other)
        return handle

    def _new(self, queue: int, offset: int) -> PopHandle:
        place = (NORMAL, queue)
        start = self._starts.get(place)
        if start is None or offset not in self._listed.get(place, ()):
            raise RemoteProtocolError(f"a pop returned offset {offset} of queue {queue} unlisted")
        header = self._header
        return PopHandle(
            start[0], header.pop_time, header.invisible_time, header.revive_qid, NORMAL,
            self._broker, queue, offset,
        )  # fmt: skip

    # Only a broker sets this property, but a message of the topic itself may bear an old one.
    def _retried(self, stored: StoredMessage) -> PopHandle | None:
        """The handle that a message of a retry topic bears; None if it is of the topic itself."""
        text = stored.value(POP_HANDLE)
        if text is None:
            return None
        try:
            handle = PopHandle.parse(text)
        except UsageError as error:
            raise RemoteProtocolError(str(error)) from error
        listed = self._listed.get((handle.kind, handle.queue_number), ())
        is_this = handle.offset in listed and handle.pop_ms == self._header.pop_time
        return handle if handle.kind != NORMAL and is_this else None


def ack_of(message: PoppedMessage) -> AckMessage:
    """The request that acknowledges one message."""
    return acknowledging(message.group, message.stored_topic, message.handle)


def acknowledging(group: str, stored_topic: str, handle: PopHandle) -> AckMessage:
    """The same by the message's handle and the topic in which it lies."""
    return AckMessage(
        consumer_group=group,
        topic=stored_topic,
        queue_id=handle.queue_number,
        extra_info=handle.encode(),
        offset=handle.offset,
        bname=handle.broker,
    )


def change_of(message: PoppedMessage, invisible_ms: int) -> ChangeInvisible:
    """The request that changes for how long one message is invisible, from now on."""
    return hiding(message.group, message.stored_topic, message.handle, invisible_ms)


def hiding(group: str, stored_topic: str, handle: PopHandle, invisible_ms: int) -> ChangeInvisible:
    """The same by the message's handle and the topic in which it lies."""
    return ChangeInvisible(
        consumer_group=group,
        topic=stored_topic,
        queue_id=handle.queue_number,
        extra_info=handle.encode(),
        offset=handle.offset,
        invisible_time=invisible_ms,
        bname=handle.broker,
    )


def changed(handle: PopHandle, reply: InvisibleReply) -> PopHandle:
    """The handle of a message whose invisible time was changed: it has a check point of its own."""
    start = handle.start_offset if handle.is_in_order else handle.offset
    return handle._replace(
        start_offset=start,
        pop_ms=reply.pop_time,
        invisible_ms=reply.invisible_time,
        revive_queue=reply.revive_qid,
    )


def fits_batch(message: PoppedMessage) -> bool:
    """Whether a message can be acknowledged together with others."""
    return 0 <= message.handle.offset - message.handle.start_offset < _BITS_MAX


def batch_of(messages: Sequence[PoppedMessage], broker: str) -> AckBatchBody:
    """The body that acknowledges several messages of a broker: bits for each check point."""
    points: dict[tuple[object, ...], list[PopHandle]] = {}
    for message in messages:
        handle = message.handle
        key = (message.group, message.queue.topic, *handle[:5], handle.queue_number)
        points.setdefault(key, []).append(handle)
    items = [ack_item(str(group), str(topic), own) for (group, topic, *_), own in points.items()]
    return AckBatchBody(acks=items, broker_name=broker)


def ack_item(group: str, topic: str, handles: Sequence[PopHandle]) -> AckItem:
    """Acknowledges messages of one check point: a bit for each.

    Args:
        topic: that was popped, also where the messages came again.
    """
    first, bits = handles[0], 0
    for each in handles:
        bits |= 1 << each.offset - each.start_offset
    size = (bits.bit_length() + 7) // 8
    return AckItem(
        consumer_group=group,
        topic=topic,
        retry=first.kind,
        start_offset=first.start_offset,
        queue_id=first.queue_number,
        revive_queue_id=first.revive_queue,
        pop_time=first.pop_ms,
        invisible_time=first.invisible_ms,
        bits=base64.b64encode(bits.to_bytes(size, "little")).decode(),
    )


def retry_ms(reconsume_times: int, delay_level: int = 0) -> int:
    """For how long a message that failed stays invisible.

    Args:
        reconsume_times: how often it failed before.
        delay_level: 1 to 18: that delay; 0: one that grows with the failures.
    """
    if delay_level > 0:
        return _LEVEL_SECONDS[min(delay_level, DELAY_LEVEL_MAX) - 1] * 1000
    return RETRY_SECONDS[min(max(reconsume_times, 0), len(RETRY_SECONDS) - 1)] * 1000
