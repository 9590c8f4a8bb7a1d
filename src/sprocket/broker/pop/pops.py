"""Requests for messages of pop consumers: pop (200050), peek (200052), notification (200054), and
how many pops wait (200055).

Source: PopMessageProcessor, PeekMessageProcessor, NotificationProcessor, PollingInfoProcessor of
RocketMQ 5.3. A client's own clock counts for nothing here: a pop is held for the time that it asks
for, from its arrival on.
"""

from __future__ import annotations

import asyncio

from sprocket.base.deadline import Deadline
from sprocket.base.ports import Clock
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.pop.access import PopAccess
from sprocket.broker.pop.held import ALL_QUEUES, HeldPops, PopPlace
from sprocket.broker.pop.popped import Popped
from sprocket.broker.pop.taking import FROM_FIRST, PopAsk, Taking
from sprocket.broker.sending.acknowledgement import Acknowledgement
from sprocket.broker.settings import BrokerSettings
from sprocket.message.pop_handle import POP_COUNT_MAX
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Buffer, Command, Reply
from sprocket.protocol.requests.pop import (
    Notification,
    NotificationReply,
    PeekMessage,
    PollingInfo,
    PollingReply,
    PopMessage,
    PopReply,
)
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store
from sprocket.store.writing.appender import Appended

#: No pop is held longer, whatever its client asks for, ms.
HOLD_MS_MAX = 300_000
#: With less time left, s, nothing is waited for any more: a timer may fire that much too early, and
#: whoever then waited for the rest would look again and again.
_NO_TIME = 0.000_1
_FOUND, _NOT_FOUND = "FOUND", "NO_MESSAGE_IN_QUEUE"


class PopRequests:
    """Answers pops.

    Args:
        held, notified: the pops, and the notifications, that wait.
    """

    def __init__(
        self,
        store: Store,
        access: PopAccess,
        taking: Taking,
        acknowledgement: Acknowledgement,
        *,
        held: HeldPops,
        notified: HeldPops,
        settings: BrokerSettings,
        clock: Clock,
    ) -> None:
        self._store = store
        self._access = access
        self._taking = taking
        self._acknowledgement = acknowledgement
        self._held = held
        self._notified = notified
        self._settings = settings
        self._clock = clock

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.POP_MESSAGE: self.pop,
            RequestCode.PEEK_MESSAGE: self.peek,
            RequestCode.NOTIFICATION: self.notify,
            RequestCode.POLLING_INFO: self.polling,
            RequestCode.POP_ROLLBACK: self.roll_back,
        }

    # What a held pop may do can change while it waits: so each look begins with the checks.
    async def pop(self, command: Command, peer: Peer) -> Reply:
        """Gives messages out, at once or when there are some.

        Raises:
            NoPermission, TopicNotFound, GroupNotFound, InvalidParameter: see `PopAccess`.
            SubscriptionInvalid, SystemFailure: its filter is invalid or switched off.
            SystemFailure: timers are switched off.
            DiskFull, StoreError: a record about what is given out cannot be stored.
        """
        header = command.read(PopMessage)
        deadline = Deadline.after_ms(min(header.poll_time, HOLD_MS_MAX))
        place = PopPlace(header.topic, header.consumer_group, max(header.queue_id, ALL_QUEUES))
        while True:
            found = await self._taking.take(self._asked(header, peer))
            if found.count:
                return await self._answer(header, place, found)
            if found.is_unfinished:
                await asyncio.sleep(0)
                continue
            if deadline.left() < _NO_TIME or self._held.is_stopped:
                return self._empty(header, found, ResponseCode.POLLING_TIMEOUT)
            if self._held.is_full(place):
                return self._empty(header, found, ResponseCode.POLLING_FULL)
            await self._held.wait(place, found.seen, self._look_at(found, deadline))

    def _asked(self, header: PopMessage, peer: Peer) -> PopAsk:
        topic = self._access.topic(header, peer)
        self._access.check_numbers(header)
        return PopAsk(
            header.topic,
            header.consumer_group,
            header.queue_id,
            topic.read_queue_nums,
            header.max_msg_nums,
            header.invisible_time,
            header.init_mode,
            self._access.wants(header),
            header.order,
            header.attempt_id,
            self._access.by_priority(topic, header.consumer_group),
        )

    def _look_at(self, found: Popped, deadline: Deadline) -> Deadline:
        """When the next look is due, though no message arrives: a blocked queue is free then."""
        if found.unlock_ms is None:
            return deadline
        return deadline.sooner(max(0, found.unlock_ms - self._clock.now_ms()) / 1000 + 0.001)

    async def _answer(self, header: PopMessage, place: PopPlace, found: Popped) -> Reply:
        if found.rest:
            self._held.wake(*place)
        if found.last is not None and not await self._is_safe(found.last):
            found = Popped(found.topic, found.broker, found.pop_ms, found.invisible_ms, 0)
            return self._empty(header, found, ResponseCode.POLLING_TIMEOUT)
        return found.reply(0, _FOUND, is_order=header.order)

    # What readers do not see may be lost with this broker, and with it that the messages are given
    # out. They come again after their time, or before it at another master.
    async def _is_safe(self, last: Appended) -> bool:
        """Whether the record about what is given out is as safe as messages that are read."""
        await self._acknowledgement.safe_up_to(last.end)
        if self._store.readable_end >= last.end:
            return True
        arrivals = self._store.arrivals(last.topic, last.queue_number)
        wait_ms = self._settings.config.slave_timeout_ms
        return await arrivals.reach(last.queue_offset + 1, Deadline.after_ms(wait_ms))

    def _empty(self, header: PopMessage, found: Popped, code: int) -> Reply:
        return found.reply(code, _NOT_FOUND, is_order=header.order)

    async def peek(self, command: Command, peer: Peer) -> Reply:
        """The next messages, which nobody takes.

        Raises:
            NoPermission, TopicNotFound, GroupNotFound, InvalidParameter: see `PopAccess`.
        """
        header = command.read(PeekMessage)
        ask = self._of_any(header, self._access.topic(header, peer).read_queue_nums)
        parts: list[Buffer] = []
        count, size, rest = max(1, min(header.max_msg_nums, POP_COUNT_MAX)), 0, 0
        size_max = self._settings.config.pull_bytes_max
        for topic, number in self._taking.queues_of(ask):
            offset = self._taking.offset(ask, topic, number)
            rest += max(0, self._store.max_offset(topic, number) - offset)
            if count > 0 and size < size_max:
                await self._store.load(topic, number, offset, count=count, bytes_max=size_max)
                found = self._store.read(
                    topic, number, offset, count_max=count, bytes_max=size_max - size
                )
                parts += map(bytes, found.parts)
                count, size = count - found.count, size + found.bytes
        reply = PopReply(pop_time=0, invisible_time=0, revive_qid=0, rest_num=rest)
        if not parts:
            return Reply(reply, code=ResponseCode.PULL_NOT_FOUND, remark=_NOT_FOUND)
        return Reply(reply, parts, 0, _FOUND)

    def _of_any(self, header: PeekMessage | Notification, queues: int) -> PopAsk:
        return PopAsk(
            header.topic, header.consumer_group, header.queue_id, queues, 1, 0, FROM_FIRST, None
        )

    async def notify(self, command: Command, peer: Peer) -> Reply:
        """Waits until there are messages to pop.

        Raises:
            NoPermission, TopicNotFound, GroupNotFound, InvalidParameter: see `PopAccess`.
        """
        header = command.read(Notification)
        deadline = Deadline.after_ms(min(header.poll_time, HOLD_MS_MAX))
        place = PopPlace(header.topic, header.consumer_group, max(header.queue_id, ALL_QUEUES))
        while True:
            queues = self._access.topic(header, peer).read_queue_nums
            ask = self._of_any(header, queues)._replace(
                is_order=header.order, attempt=header.attempt_id
            )
            found = await self._taking.waiting(ask)
            if found.rest:
                return Reply(NotificationReply(has_msg=True))
            if deadline.left() < _NO_TIME or self._notified.is_stopped:
                return Reply(NotificationReply(has_msg=False))
            if self._notified.is_full(place):
                return Reply(NotificationReply(has_msg=False, polling_full=True))
            await self._notified.wait(place, found.seen, self._look_at(found, deadline))

    def roll_back(self, command: Command, peer: Peer) -> Reply:
        """Success: RocketMQ's broker moves the records about popped messages from its RocksDB way
        (`popConsumerKVServiceEnable`) to the log, where they all are here. Source:
        AdminBrokerProcessor.transferPopToFsStore."""
        return Reply()

    def polling(self, command: Command, peer: Peer) -> Reply:
        """How many pops wait at a queue.

        Raises:
            NoPermission, TopicNotFound, GroupNotFound, InvalidParameter: see `PopAccess`.
        """
        header = command.read(PollingInfo)
        self._access.topic(header, peer)
        place = PopPlace(header.topic, header.consumer_group, max(header.queue_id, ALL_QUEUES))
        return Reply(PollingReply(polling_num=self._held.waiting(place)))
