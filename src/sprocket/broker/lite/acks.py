"""Acknowledgements (200051) of messages of lite topics, and changes of their invisible times
(200053): the requests of pop consumption, with the name of a lite topic. All others go on to that.

Source: AckMessageProcessor.ackLite, ChangeInvisibleTimeProcessor of RocketMQ 5.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from sprocket.base.errors import InvalidParameter, ReplyError, TopicNotFound
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import FAQ, Endpoints
from sprocket.broker.lite.held import HeldLitePops
from sprocket.broker.lite.ready import ReadyLites
from sprocket.broker.lite.rules import LiteRules
from sprocket.broker.lite.taking import QUEUE, LiteTaking
from sprocket.broker.pop.access import PopAccess
from sprocket.broker.pop.journal import PopJournal
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderedPop, OrderTable
from sprocket.message.lite import LiteName
from sprocket.message.pop_handle import ORDER_QUEUE, PopHandle
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pop import AckMessage, ChangeInvisible, InvisibleReply
from sprocket.remoting.endpoints import Endpoint, EventualResponse
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: The field with a message's lite topic, as text and as it is in a header.
_FIELD, _BYTES = "liteTopic", b"liteTopic"
_Header = AckMessage | ChangeInvisible


class LiteAckRequests:
    """Answers acknowledgements and changes of invisible times.

    Args:
        others: the endpoints of pop consumption.
        alarm: is set when something is due earlier than all before.
    """

    def __init__(
        self,
        store: Store,
        journal: PopJournal,
        orders: OrderTable,
        *,
        offsets: ConsumerOffsets,
        rules: LiteRules,
        ready: ReadyLites,
        taking: LiteTaking,
        held: HeldLitePops,
        access: PopAccess,
        acknowledgement: Acknowledgement,
        clock: Clock,
        alarm: asyncio.Event,
        others: Endpoints,
    ) -> None:
        self._store = store
        self._journal = journal
        self._orders = orders
        self._offsets = offsets
        self._rules = rules
        self._ready = ready
        self._taking = taking
        self._held = held
        self._access = access
        self._acknowledgement = acknowledgement
        self._clock = clock
        self._alarm = alarm
        self._others = others

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        ack, hide = RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME
        return {
            ack: _by_topic(self.ack, self._others[ack], AckMessage),
            hide: _by_topic(self.hide, self._others[hide], ChangeInvisible),
        }

    def ack(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Acknowledges a message. One that is acknowledged already is as good.

        Raises:
            TopicNotFound: there is no such topic.
            InvalidParameter: the group is not bound to it, or the handle is none of a lite topic.
            ReplyError: code 208, there is no such message, or the handle is void.
            UsageError: it is no handle.
            DiskFull, StoreError: it cannot be noted.
        """
        header = command.read(AckMessage)
        name, handle = self._checked(header)

        def change() -> int:
            group = header.consumer_group
            if header.offset < (self._offsets.committed(group, name.queue, QUEUE) or 0):
                return 0
            row = self._orders.acknowledged(
                group, name.queue, QUEUE, [header.offset], handle.pop_ms
            )
            if row is None:
                raise _gone(f"the handle is void: {group} popped {name.queue} again")
            end = self._journal.keep_order(group, name.queue, QUEUE, row).end
            self._offsets.pop_from(group, name.queue, queue_number=QUEUE, offset=row.next_offset())
            self._look_again(group, name)
            return end

        return self._changed(change, Reply())

    def hide(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """Changes when a message becomes visible again; its handle stays. A suspended one is not
        counted as given out, and those that were popped with it come again at the same time.

        Raises:
            TopicNotFound, InvalidParameter, ReplyError, UsageError: see `ack`.
            DiskFull, StoreError: as `ack`.
        """
        header = command.read(ChangeInvisible)
        header.invisible_time = header.invisible_time or 1
        self._access.check_invisible(header.invisible_time)
        name, handle = self._checked(header)
        group, now_ms = header.consumer_group, self._clock.now_ms()
        visible_ms = max(now_ms + header.invisible_time, handle.pop_ms)
        reply = InvisibleReply(
            pop_time=handle.pop_ms,
            invisible_time=visible_ms - handle.pop_ms,
            revive_qid=ORDER_QUEUE,
        )

        def change() -> int:
            if header.offset < (self._offsets.committed(group, name.queue, QUEUE) or 0):
                return 0
            row = self._orders.hidden(
                group, name.queue, QUEUE, header.offset, pop_ms=handle.pop_ms,
                visible_ms=visible_ms,
            )  # fmt: skip
            if row is None:
                raise _gone(f"the handle is void: {group} popped {name.queue} again")
            if header.suspend:
                row = _suspended(row, visible_ms)
            end = self._journal.keep_order(group, name.queue, QUEUE, row).end
            self._look_again(group, name)
            return end

        return self._changed(change, Reply(reply))

    def _checked(self, header: AckMessage | ChangeInvisible) -> tuple[LiteName, PopHandle]:
        if not self._rules.is_parent(header.topic):
            raise TopicNotFound(f"topic[{header.topic}] not exist, apply first please! {FAQ}")
        if self._rules.bound_to(header.consumer_group) != header.topic:
            raise InvalidParameter("group type or bind topic not match.")
        name = LiteName(header.topic, header.lite_topic or "")
        if header.offset >= self._store.lite.max_offset(name) or header.offset < 0:
            raise _gone("ack offset illegal.")
        handle = PopHandle.parse(header.extra_info)
        if header.queue_id != QUEUE or not handle.is_in_order:
            raise InvalidParameter("ack queue illegal.")
        group = header.consumer_group
        if handle.pop_ms <= self._offsets.popped.void_ms(group, name.queue, QUEUE):
            raise _gone(f"the handle is void: {group} was reset in {name.queue} after it popped")
        return name, handle

    def _changed(self, change: Callable[[], int], reply: Reply) -> Reply | Awaitable[Reply]:
        """The reply to a change, when what was noted of it is safe."""
        if not self._journal.has_orders:
            return self._begun(change, reply)
        end = change()
        return self._acknowledgement.up_to(end, reply) if end else reply

    async def _begun(self, change: Callable[[], int], reply: Reply) -> Reply:
        await self._journal.begin_orders()
        answer = self._changed(change, reply)
        return await answer if isinstance(answer, Awaitable) else answer

    def _look_again(self, group: str, name: LiteName) -> None:
        """Makes a lite topic ready if it has messages that may be given out, or notes when."""
        until_ms = self._taking.blocked_ms(group, name)
        if until_ms is None:
            self._ready.unblock(group, name)
            if self._taking.has_rest(group, name):
                self._held.wake(self._ready.mark(group, name))
        elif self._ready.block(group, name, until_ms):
            self._alarm.set()


def _suspended(row: OrderedPop, visible_ms: int) -> OrderedPop:
    """A row whose messages all come again at a time, as if they had not been given out now."""
    offsets = [offset for place, offset in enumerate(row.offsets()) if not row.is_done(place)]
    counts = row.counts or {}
    return replace(
        row,
        visible_ms=dict.fromkeys(offsets, visible_ms),
        counts={**counts, **{offset: counts.get(offset, 0) - 1 for offset in offsets}},
    )


# Consumers that pop send more acknowledgements than anything else, and few have lite topics: the
# field is searched for in the bytes, so that no header is read twice.
def _by_topic(own: Endpoint, other: Endpoint, header: type[_Header]) -> Endpoint:
    """The endpoint for messages of lite topics, or for others."""

    def answer(command: Command, peer: Peer) -> EventualResponse:
        source = command.source
        if command.header is None and not (
            _FIELD in source if isinstance(source, dict) else _BYTES in bytes(source)
        ):
            return other(command, peer)
        return (own if command.read(header).lite_topic else other)(command, peer)

    return answer


def _gone(remark: str) -> ReplyError:
    return ReplyError.of(ResponseCode.NO_MESSAGE, remark)
