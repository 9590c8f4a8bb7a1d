"""Requests by the handle of a popped message: acknowledge it (200051), or several (200151), and
change how long it stays invisible (200053).

A handle is not known here, it is believed: its record in the log counts if there is such a check
point. A handle from before a reset of its group is void. The reply to an acknowledgement comes when
its record is as safe as the reply to a send would be.
Source: AckMessageProcessor, ChangeInvisibleTimeProcessor of RocketMQ 5.3.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterator

from sprocket.base.errors import (
    IllegalMessage,
    InvalidParameter,
    ReplyError,
    TopicNotFound,
    UsageError,
)
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import FAQ, Endpoints
from sprocket.broker.pop.access import PopAccess
from sprocket.broker.pop.held import HeldPops
from sprocket.broker.pop.journal import PopJournal
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.broker.tables.topics import Topics
from sprocket.message.pop_handle import ORDER_QUEUE, PopHandle, topic_of
from sprocket.message.topic import popped_topic
from sprocket.protocol.bodies import AckBatchBody, AckItem
from sprocket.protocol.bodies.pop import AckRecord
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pop import AckMessage, ChangeInvisible, InvisibleReply
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: Items of a batch at most, and bits of one item: a check point has 32 messages at most.
_ITEMS_MAX = 4096
_BITS_BYTES_MAX = 8192


class AckRequests:
    """Answers acknowledgements and changes of invisible times.

    Args:
        orders_saved: returns when the pops in order are in their file; raises `StoreError`.
    """

    def __init__(
        self,
        store: Store,
        access: PopAccess,
        journal: PopJournal,
        orders: OrderTable,
        *,
        acknowledgement: Acknowledgement,
        offsets: ConsumerOffsets,
        topics: Topics,
        held: HeldPops,
        clock: Clock,
        orders_saved: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._access = access
        self._journal = journal
        self._orders = orders
        self._acknowledgement = acknowledgement
        self._offsets = offsets
        self._topics = topics
        self._held = held
        self._clock = clock
        self._orders_saved = orders_saved

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.ACK_MESSAGE: self.ack,
            RequestCode.BATCH_ACK_MESSAGE: self.ack_all,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME: self.hide,
        }

    def ack(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Acknowledges a message.

        Raises:
            TopicNotFound: there is no such topic.
            IllegalMessage: there is no such queue.
            ReplyError: code 208, there is no such message, or the handle is void.
            UsageError: it is no handle.
            DiskFull, StoreError: its record cannot be stored.
        """
        header = command.read(AckMessage)
        self._check_place(header, peer)
        handle = self._handle(header)
        if handle.is_in_order:
            self._ack_in_order(header.consumer_group, header.topic, handle, header.offset)
            return self._once_orders_saved(Reply())
        record = self._record(header, handle)
        appended = self._journal.acknowledge(record, handle.revive_queue, due_ms=handle.due_ms)
        return self._acknowledgement.without_header(appended)

    def _record(self, header: AckMessage | ChangeInvisible, handle: PopHandle) -> AckRecord:
        return AckRecord(
            offset=header.offset,
            broker=handle.broker,
            group=header.consumer_group,
            pop_ms=handle.pop_ms,
            queue_number=header.queue_id,
            start_offset=handle.start_offset,
            topic=header.topic,
        )

    def _check_place(self, header: AckMessage | ChangeInvisible, peer: Peer) -> None:
        topic = self._topics.get(header.topic)
        if topic is None:
            raise TopicNotFound(f"topic[{header.topic}] not exist, apply first please! {FAQ}")
        if not 0 <= header.queue_id < topic.read_queue_nums:
            raise IllegalMessage(
                f"queueId[{header.queue_id}] is illegal, topic:[{header.topic}] "
                f"topicConfig.readQueueNums:[{topic.read_queue_nums}] consumer:[/{peer.address}]"
            )
        low = self._store.min_offset(header.topic, header.queue_id)
        high = self._store.stored.max_offset(header.topic, header.queue_id)
        if not low <= header.offset < high:
            raise _gone(
                f"offset is illegal, key:{header.topic}@{header.queue_id}, "
                f"commit:{header.offset}, store:{low}~{high}"
            )

    def _handle(self, header: AckMessage | ChangeInvisible) -> PopHandle:
        handle = PopHandle.parse(header.extra_info)
        self._check_handle(header.consumer_group, header.topic, header.queue_id, handle)
        return handle

    def _check_handle(self, group: str, topic: str, number: int, handle: PopHandle) -> None:
        if not handle.is_in_order and handle.revive_queue not in self._journal.queues():
            raise UsageError(f"there is no revive queue {handle.revive_queue}")
        if handle.pop_ms <= self._offsets.popped.void_ms(group, topic, number):
            raise _gone(f"the handle is void: {group} was reset in {topic} after it popped")

    # An acknowledgement that is repeated, since its reply was lost, is as good as the first.
    def _ack_in_order(self, group: str, topic: str, handle: PopHandle, offset: int) -> None:
        number = handle.queue_number
        if offset < (self._offsets.committed(group, topic, number) or 0):
            return
        following = self._orders.acknowledge(group, topic, number, offset, handle.pop_ms)
        if following is None:
            raise _gone(f"the handle is void: {group} popped {topic} {number} again")
        self._offsets.pop_from(group, topic, queue_number=number, offset=following)
        self._held.wake(topic, group, number)

    async def _once_orders_saved(self, reply: Reply) -> Reply:
        await self._orders_saved()
        return reply

    async def ack_all(self, command: Command, peer: Peer) -> Reply:
        """Acknowledges several messages. Those that are gone are passed over, as in Java.

        Raises:
            ReplyError: code 208, the body names none.
            InvalidParameter: it names too many.
            UsageError: an item is no acknowledgement.
            DiskFull, StoreError: a record cannot be stored.
        """
        body = AckBatchBody.of_request(command.body) if command.body else AckBatchBody()
        if not body.acks:
            raise _gone("no acknowledgements")
        if len(body.acks) > _ITEMS_MAX:
            raise InvalidParameter(f"a batch has at most {_ITEMS_MAX} acknowledgements")
        end, is_in_order = 0, False
        for item in body.acks:
            for offsets, handle in self._items(item, body.broker_name or self._journal.broker):
                if handle.is_in_order:
                    is_in_order = True
                    self._ack_item_in_order(item, handle, offsets)
                else:
                    end = self._ack_item(item, handle, offsets)
        if is_in_order:
            await self._orders_saved()
        await self._acknowledgement.safe_up_to(end)
        return Reply()

    def _items(self, item: AckItem, broker: str) -> Iterator[tuple[list[int], PopHandle]]:
        """The offsets that an item acknowledges, with the handle that it stands for."""
        if not item.consumer_group or not item.topic:
            raise UsageError("an acknowledgement names no group or topic")
        handle = PopHandle(
            item.start_offset, item.pop_time, item.invisible_time, item.revive_queue_id,
            item.retry or "0", broker, item.queue_id, item.start_offset,
        )  # fmt: skip
        topic = topic_of(item.topic, item.consumer_group, handle.kind)
        low = self._store.min_offset(topic, item.queue_id)
        high = self._store.stored.max_offset(topic, item.queue_id)
        offsets = [each for each in _bits(item) if low <= each < high]
        if offsets and self._topics.get(popped_topic(topic, item.consumer_group)) is not None:
            try:
                self._check_handle(item.consumer_group, topic, item.queue_id, handle)
            except ReplyError:
                return  # it is void
            yield offsets, handle

    def _ack_item(self, item: AckItem, handle: PopHandle, offsets: list[int]) -> int:
        group = item.consumer_group or ""
        record = AckRecord(
            offset=-1,
            offsets=offsets,
            broker=handle.broker,
            group=group,
            pop_ms=handle.pop_ms,
            queue_number=handle.queue_number,
            start_offset=handle.start_offset,
            topic=topic_of(item.topic or "", group, handle.kind),
        )
        appended = self._journal.acknowledge(record, handle.revive_queue, due_ms=handle.due_ms)
        return appended.end

    def _ack_item_in_order(self, item: AckItem, handle: PopHandle, offsets: list[int]) -> None:
        for offset in offsets:
            try:
                self._ack_in_order(item.consumer_group or "", item.topic or "", handle, offset)
            except ReplyError:
                continue

    # Both records are stored or none. The new check point comes before the acknowledgement of the
    # old one: if the power fails between the two, the message may come twice, but is not lost.
    def hide(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Changes when a message becomes visible again; its handle is a new one then.

        Raises:
            TopicNotFound, IllegalMessage, ReplyError, UsageError, DiskFull, StoreError: see `ack`.
            ReplyError: code 208 too, it is visible again already.
            InvalidParameter: the time is out of bounds.
        """
        header = command.read(ChangeInvisible)
        self._access.check_invisible(header.invisible_time)
        self._check_place(header, peer)
        handle = self._handle(header)
        if handle.is_in_order:
            return self._hide_in_order(header, handle)
        now_ms = self._clock.now_ms()
        if now_ms >= handle.due_ms:  # it comes again, and would come twice
            raise _gone(f"the message became visible again {now_ms - handle.due_ms} ms ago")
        pop_ms = max(now_ms, handle.pop_ms + 1)
        appended = self._journal.give_out(
            header.topic, header.consumer_group, header.queue_id, [header.offset],
            start=header.offset, pop_ms=pop_ms, invisible_ms=header.invisible_time,
            revive_queue=handle.revive_queue, instead_of=self._record(header, handle),
            instead_due_ms=handle.due_ms,
        )  # fmt: skip
        reply = InvisibleReply(
            pop_time=pop_ms, invisible_time=header.invisible_time, revive_qid=handle.revive_queue
        )
        return self._settled(appended.end, reply)

    async def _settled(self, end: int, reply: InvisibleReply) -> Reply:
        await self._acknowledgement.safe_up_to(end)
        return Reply(reply)

    def _hide_in_order(
        self, header: ChangeInvisible, handle: PopHandle
    ) -> Reply | Awaitable[Reply]:
        group, topic, number = header.consumer_group, header.topic, header.queue_id
        reply = InvisibleReply(
            pop_time=handle.pop_ms,
            invisible_time=max(0, self._clock.now_ms() + header.invisible_time - handle.pop_ms),
            revive_qid=ORDER_QUEUE,
        )
        if header.offset < (self._offsets.committed(group, topic, number) or 0):
            return Reply(reply)
        was_hidden = self._orders.hide(
            group, topic, number, header.offset, pop_ms=handle.pop_ms,
            visible_ms=handle.pop_ms + reply.invisible_time,
        )  # fmt: skip
        if not was_hidden:
            raise _gone(f"the handle is void: {group} popped {topic} {number} again")
        self._held.wake(topic, group, number)
        return self._once_orders_saved(Reply(reply))


def _gone(remark: str) -> ReplyError:
    return ReplyError.of(ResponseCode.NO_MESSAGE, remark)


def _bits(item: AckItem) -> list[int]:
    """The offsets in an item."""
    try:
        raw = base64.b64decode(item.bits or "", validate=True)
    except (binascii.Error, ValueError):
        raise UsageError("the bits of an acknowledgement are no base64") from None
    if len(raw) > _BITS_BYTES_MAX:
        raise UsageError(f"the bits of an acknowledgement have at most {_BITS_BYTES_MAX} bytes")
    start = item.start_offset
    return [
        start + at * 8 + bit for at, byte in enumerate(raw) for bit in range(8) if byte >> bit & 1
    ]
