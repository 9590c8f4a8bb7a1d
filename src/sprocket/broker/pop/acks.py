"""Requests by the handle of a popped message: acknowledge it (200051), or several (200151), and
change how long it stays invisible (200053).

A handle is not known here, it is believed: its record in the log counts if there is such a check
point. A handle from before a reset of its group is void. The reply to an acknowledgement comes when
its record is as safe as the reply to a send would be.
Source: AckMessageProcessor, ChangeInvisibleTimeProcessor of RocketMQ 5.3.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Iterator, Sequence

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
from sprocket.broker.pop.changed_handles import ChangedHandles
from sprocket.broker.pop.held import HeldPops
from sprocket.broker.pop.journal import OrderRow, PopJournal
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderedPop, OrderTable
from sprocket.broker.tables.topics import Topics
from sprocket.message.pop_handle import ORDER_QUEUE, POP_COUNT_MAX, PopHandle, topic_of
from sprocket.message.topic import popped_topic
from sprocket.protocol.bodies import AckBatchBody, AckItem
from sprocket.protocol.bodies.pop import AckRecord
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pop import AckMessage, ChangeInvisible, InvisibleReply
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended

#: Items of a batch at most, and how far the bits of one reach: filters may skip messages between.
_ITEMS_MAX = 4096
_BITS_BYTES_MAX = 8192
#: Items that are acknowledged before others run on the loop.
_ITEMS_AT_ONCE = 32


class AckRequests:
    """Answers acknowledgements and changes of invisible times."""

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
        self._changed = ChangedHandles()

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
        handle = self.checked(header, peer)
        if handle.is_in_order:
            place = (header.consumer_group, header.topic, handle.queue_number)
            return self._in_order(lambda: self.ack_in_order(place, handle.pop_ms, [header.offset]))
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

    def checked(
        self, header: AckMessage | ChangeInvisible, peer: Peer, handle: PopHandle | None = None
    ) -> PopHandle:
        """The handle of a request, which may be acknowledged or changed; the newest one for a
        handle that was used for a change before.

        Args:
            handle: the same, if it is parsed already.

        Raises:
            TopicNotFound, IllegalMessage, ReplyError, UsageError: see `ack`.
        """
        self._check_place(header, peer)
        if handle is None:
            handle = PopHandle.parse(header.extra_info)
        group, topic = header.consumer_group, header.topic
        self._check_handle(group, topic, header.queue_id, handle)
        if self._changed:
            place = handle._replace(queue_number=header.queue_id, offset=header.offset)
            return self._changed.newest(group, topic, place)
        return handle

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

    def _check_handle(self, group: str, topic: str, number: int, handle: PopHandle) -> None:
        if not handle.is_in_order and not self._journal.has_queue(handle.revive_queue):
            raise UsageError(f"there is no revive queue {handle.revive_queue}")
        if handle.pop_ms <= self._offsets.popped.void_ms(group, topic, number):
            raise _gone(f"the handle is void: {group} was reset in {topic} after it popped")

    def _in_order(
        self, change: Callable[[], Appended | None], reply: Reply | None = None
    ) -> Reply | Awaitable[Reply]:
        """The reply to a change of what was popped in order, when its record is safe."""
        if not self._journal.has_orders:
            return self._begun_in_order(change, reply)
        appended = change()
        if appended is None:
            return reply or Reply()
        return self._acknowledgement.up_to(appended.end, reply)

    async def _begun_in_order(
        self, change: Callable[[], Appended | None], reply: Reply | None
    ) -> Reply:
        await self._journal.begin_orders()
        answer = self._in_order(change, reply)
        return await answer if isinstance(answer, Awaitable) else answer

    # An acknowledgement that is repeated, since its reply was lost, is as good as the first.
    def ack_in_order(
        self, place: tuple[str, str, int], pop_ms: int, offsets: Sequence[int]
    ) -> Appended | None:
        """Acknowledges messages of one pop; returns what was stored last, if anything was.

        Raises:
            ReplyError: code 208, their handle is void.
        """
        group, topic, number = place
        done = self._offsets.committed(group, topic, number) or 0
        offsets = [offset for offset in offsets if offset >= done]
        if not offsets:
            return None
        row = self._orders.acknowledged(group, topic, number, offsets, pop_ms)
        if row is None:
            raise _gone(f"the handle is void: {group} popped {topic} {number} again")
        return self.keep_rows([OrderRow(group, topic, number, row)])

    def keep_rows(self, rows: Sequence[OrderRow]) -> Appended:
        """Writes rows of pops in order of which more is done, and moves their groups' offsets.

        Raises:
            ReplyError, DiskFull, StoreError: they cannot be stored; nothing has changed.
        """
        appended = self._journal.keep_orders(rows)
        for group, topic, number, row in rows:
            if row is not None:
                following = row.next_offset()
                self._offsets.pop_from(group, topic, queue_number=number, offset=following)
            self._held.wake(topic, group, number)
        return appended

    def row_of_those(
        self, place: tuple[str, str, int], pop_ms: int, offsets: Sequence[int]
    ) -> OrderedPop | None:
        """The row of a pop in order when messages are done; None if one of them is none of its."""
        found = self._orders.find(*place)
        if found is None or found.pop_ms != pop_ms:
            return None
        if min(offsets) < (self._offsets.committed(*place) or 0):
            return None
        if not set(offsets) <= set(found.offsets()):
            return None
        return self._orders.acknowledged(*place, offsets, pop_ms)

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
        end = 0
        for number, item in enumerate(body.acks, 1):
            if number % _ITEMS_AT_ONCE == 0:
                await asyncio.sleep(0)
            for offsets, handle in self._items(item, body.broker_name or self._journal.broker):
                if not handle.is_in_order:
                    for some, its in self._newest_of(item, handle, offsets):
                        end = self._ack_item(item, its, some)
                    continue
                if not self._journal.has_orders:
                    await self._journal.begin_orders()
                end = self._ack_item_in_order(item, handle, offsets) or end
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

    def _newest_of(
        self, item: AckItem, handle: PopHandle, offsets: list[int]
    ) -> list[tuple[list[int], PopHandle]]:
        """The offsets of an item by the handle that counts now."""
        if not self._changed:
            return [(offsets, handle)]
        group = item.consumer_group or ""
        topic = topic_of(item.topic or "", group, handle.kind)
        found: dict[PopHandle, list[int]] = {}
        for offset in offsets:
            newest = self._changed.newest(group, topic, handle._replace(offset=offset))
            found.setdefault(newest._replace(offset=0), []).append(offset)
        return [(some, its) for its, some in found.items()]

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

    def _ack_item_in_order(self, item: AckItem, handle: PopHandle, offsets: list[int]) -> int:
        place = (item.consumer_group or "", item.topic or "", handle.queue_number)
        try:
            appended = self.ack_in_order(place, handle.pop_ms, offsets)
        except ReplyError:
            return 0
        return 0 if appended is None else appended.end

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
        handle = self.checked(header, peer)
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
        old = handle._replace(queue_number=header.queue_id, offset=header.offset)
        new = old._replace(
            start_offset=header.offset, pop_ms=pop_ms, invisible_ms=header.invisible_time
        )
        self._changed.note(header.consumer_group, header.topic, old, new, now_ms=now_ms)
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

        def change() -> Appended:
            row = self._orders.hidden(
                group, topic, number, header.offset, pop_ms=handle.pop_ms,
                visible_ms=handle.pop_ms + reply.invisible_time,
            )  # fmt: skip
            if row is None:
                raise _gone(f"the handle is void: {group} popped {topic} {number} again")
            appended = self._journal.keep_order(group, topic, number, row)
            self._held.wake(topic, group, number)
            return appended

        return self._in_order(change, Reply(reply))


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
    if int.from_bytes(raw, "little").bit_count() > POP_COUNT_MAX:
        raise UsageError(f"a check point has at most {POP_COUNT_MAX} messages")
    start = item.start_offset
    return [
        start + at * 8 + bit for at, byte in enumerate(raw) for bit in range(8) if byte >> bit & 1
    ]
