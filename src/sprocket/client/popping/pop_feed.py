"""Pops one topic at one broker into windows: one task that pops, one that renews invisible times.

In no order there is one window. In order there is one for each queue, which the broker gives to
nobody else while any of its messages is unfinished here; its messages are delivered only while
that is certain.

Source: DefaultMQPushConsumerImpl.popMessage of RocketMQ 5.x, which renews nothing.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    HandleExpired,
    ReplyError,
    SprocketError,
    TransportError,
)
from sprocket.client.base.subscription import Subscription
from sprocket.client.config import ConsumerConfig
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters, WindowStatistics
from sprocket.client.fetching.window import FetchLimits, Window
from sprocket.client.popping.ack_queue import AckQueue
from sprocket.client.popping.pop_client import ALL_QUEUES, PopClient, PopWish
from sprocket.client.popping.popped_window import PoppedWindow
from sprocket.client.session.session import Session
from sprocket.clientcore.attempts import is_refusal
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.queue import QueueId

logger = logging.getLogger(__name__)

#: A reply without messages within this time was not held by the broker, s. After `_IN_VAIN_MAX`
#: such replies in a row, pops pause, or they would never end.
_SOON_SECONDS = 0.1
_IN_VAIN_MAX = 3
#: How many parts of the invisible time pass between two searches for messages to renew; those are
#: renewed of whose time less than half is left.
_SEARCHES = 4
#: Renewals at the same time.
_RENEWALS_AT_ONCE = 32


@dataclasses.dataclass(frozen=True, slots=True)
class PopFeedParts:
    """What the feeds of one popping consumer share.

    Attributes:
        pops, acks: ask the brokers, and acknowledge.
        offer: is called with a window that has messages to deliver.
        counters: count what pops return.
        pauses: the topics that are not popped.
        init_mode: where a group without offsets begins.
        finish: in order: waits until no message of a window is in flight; else None.
    """

    session: Session
    config: ConsumerConfig
    pops: PopClient
    acks: AckQueue
    offer: Callable[[Window], None]
    counters: Counters
    pauses: Pauses
    init_mode: int
    finish: Callable[[Window], Awaitable[None]] | None = None

    @property
    def limits(self) -> FetchLimits:
        """When popping stops."""
        return FetchLimits(self.config.pop_unfinished_max, self.config.window_bytes_max)


class PopFeed:
    """Pops from a broker.

    Args:
        queue: a queue, or with the number -1 all queues of the topic at the broker.
    """

    def __init__(self, queue: QueueId, subscription: Subscription, parts: PopFeedParts) -> None:
        self.queue = queue
        self.subscription = subscription
        self._parts = parts
        #: In order by number of the queue, else a single one.
        self._windows: dict[int, PoppedWindow] = {}
        #: Windows that were replaced, until their last batch has ended.
        self._former: set[PoppedWindow] = set()
        self._attempt = ""
        self._in_vain = 0
        self._popping = asyncio.ensure_future(self._guarded(self._pop_loop))
        self._renewing = asyncio.ensure_future(self._guarded(self._renew_loop))
        self._replacing: set[asyncio.Task[None]] = set()

    @property
    def windows(self) -> list[PoppedWindow]:
        """The windows that may hold messages."""
        return [*self._windows.values(), *self._former]

    @property
    def count(self) -> int:
        """Messages that are not finished."""
        return sum(window.count for window in self._windows.values())

    @property
    def statistics(self) -> list[WindowStatistics]:
        """Statistics of its windows."""
        return [
            WindowStatistics.of(self.queue._replace(number=number), window)
            for number, window in sorted(self._windows.items())
        ]

    def subscribe(self, subscription: Subscription) -> None:
        """Pops by another subscription from the next pop on."""
        self.subscription = subscription

    async def stop(self) -> None:
        """Pops no more; what was not delivered yet becomes visible again at once."""
        self._popping.cancel()
        await asyncio.wait([self._popping])
        for window in self._windows.values():
            waiting = [each for each in window.waiting if isinstance(each, PoppedMessage)]
            for message in waiting:
                window.lost(message)
            await self._parts.pops.give_back(waiting)

    async def finished(self) -> None:
        """Returns when a message was finished since, after a while at the latest."""
        room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for window in self._windows.values():
            window.call_with_room(partial(_wake, room))
        await asyncio.wait([room], timeout=1.0)

    async def close(self) -> None:
        """Gives everything up that is not finished, and has it visible again."""
        self._popping.cancel()
        self._renewing.cancel()
        await asyncio.wait([self._popping, self._renewing, *self._replacing])
        for window in self.windows:
            unfinished = [] if window.has_straggler else window.unfinished
            window.close()
            await self._parts.pops.give_back(unfinished)

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception:  # root of a task: whatever happened, the broker is asked again
                logger.exception("popping from %s failed", self.queue)
                await asyncio.sleep(1.0)

    # Popping.

    async def _pop_loop(self) -> None:
        longest = self._parts.config.pull_retry_ms / 1000
        entropy = self._parts.session.world.entropy
        retry_pauses = None
        while True:
            await self._room()
            await self._parts.pauses.wait_resumed(self.queue)
            former = self._parts.session.routes.address(self.queue.broker)
            is_lost = False
            try:
                await self._pop()
            except SprocketError as error:
                self._complain(error)
                is_lost = isinstance(error, TransportError) or is_refusal(error)
            else:
                if self._in_vain < _IN_VAIN_MAX:
                    retry_pauses = None
                    continue
            retry_pauses = retry_pauses or pauses(longest / 10, longest, entropy=entropy)
            seconds = self._parts.session.reachability.pause(next(retry_pauses))
            if is_lost:  # at another master there is nothing to wait for
                moved = self._parts.session.routes.moved
                await moved(self.queue.broker, former, Deadline.after(seconds))
            else:
                await asyncio.sleep(seconds)

    def _complain(self, error: SprocketError) -> None:
        if isinstance(error, ReplyError):
            self._parts.session.reachability.refused(*self._reading(), error)
        logger.debug("%s: pop: %s", self.queue, error)

    def _reading(self) -> tuple[str, str]:
        group, queue = self._parts.pops.group, self.queue
        return f"group {group}", f"pop topic {queue.topic} of {queue.broker}"

    async def _room(self) -> None:
        limits = self._parts.limits
        windows = self._windows.values()
        loop = asyncio.get_running_loop()
        is_first = True
        while (
            self.count >= limits.count_max
            or sum(window.bytes for window in windows) >= limits.bytes_max
        ):
            if is_first:
                by = "count" if self.count >= limits.count_max else "bytes"
                self._parts.counters.throttled(self.queue.topic, loop.time(), by)
                is_first = False
            room: asyncio.Future[None] = loop.create_future()
            for window in windows:
                window.call_with_room(partial(_wake, room))
            await room

    # If the reply is lost, the messages of a pop in order are got by the same attempt again; those
    # of another pop come again after their time.
    async def _pop(self) -> None:
        parts, loop = self._parts, asyncio.get_running_loop()
        config, is_ordered = parts.config, parts.finish is not None
        if is_ordered and not self._attempt:
            self._attempt = parts.session.world.entropy.token(8).hex()
        wish = PopWish(
            min(config.pop_batch, parts.limits.count_max - self.count),
            config.invisible_ms,
            config.hold_ms,
            parts.init_mode,
            self._attempt if is_ordered else None,
        )
        began = loop.time()
        try:
            messages = await parts.pops.pop(self.queue, self.subscription, wish)
        except TransportError:
            raise
        except SprocketError:
            self._attempt = ""
            raise
        self._attempt = ""
        if parts.session.reachability.troubles.is_any:
            parts.session.reachability.succeeded(*self._reading())
        now = loop.time()
        if not messages:
            soon = min(_SOON_SECONDS, config.hold_ms / 2000)
            self._in_vain = self._in_vain + 1 if now - began < soon else 0
            return
        self._in_vain = 0
        parts.counters.pulled(self.queue.topic, now, count=len(messages), seconds=now - began)
        if is_ordered:
            self._arrived_in_order(messages)
        else:
            self._arrived(ALL_QUEUES, messages)

    def _arrived(self, number: int, messages: Sequence[PoppedMessage]) -> None:
        window = self._windows.get(number)
        if window is None:
            window = self._windows[number] = self._new_window()
        window.arrived(messages)
        self._trust(window)
        self._parts.offer(window)

    def _arrived_in_order(self, messages: Sequence[PoppedMessage]) -> None:
        by_queue: dict[int, list[PoppedMessage]] = {}
        for message in messages:
            by_queue.setdefault(message.queue.number, []).append(message)
        for number, of_queue in by_queue.items():
            former = self._windows.get(number)
            if former is None or not former.count:
                self._arrived(number, of_queue)
                continue
            # The broker gives the queue out again, so what is unfinished here was visible again.
            logger.warning("queue %d of %s was given out again", number, self.queue)
            task = asyncio.ensure_future(self._replace(number, former, of_queue))
            self._replacing.add(task)
            task.add_done_callback(self._replacing.discard)

    async def _replace(
        self, number: int, former: PoppedWindow, messages: Sequence[PoppedMessage]
    ) -> None:
        """Delivers the messages of a queue once the batch of its former window has ended."""
        former.close()
        self._former.add(former)
        window = self._windows[number] = self._new_window()
        window.arrived(messages)
        try:
            if self._parts.finish is not None:
                await self._parts.finish(former)
        finally:
            self._former.discard(former)
        self._trust(window)
        self._parts.offer(window)

    def _new_window(self) -> PoppedWindow:
        return PoppedWindow(self._parts.limits, self._parts.acks.add)

    def _trust(self, window: PoppedWindow) -> None:
        """In order: permits delivery until the first message may be visible to others."""
        if self._parts.finish is not None and window.count:
            window.trust(min(message.invisible_until for message in window.unfinished))

    # Renewing.

    async def _renew_loop(self) -> None:
        seconds = self._parts.config.invisible_ms / 1000
        while True:
            await asyncio.sleep(seconds / _SEARCHES)
            latest = asyncio.get_running_loop().time() + seconds / 2
            due = [
                (window, message)
                for window in self._windows.values()
                for message in window.unfinished
                if message.invisible_until < latest and window.changing(message) is None
            ]
            for at in range(0, len(due), _RENEWALS_AT_ONCE):
                some = due[at : at + _RENEWALS_AT_ONCE]
                await asyncio.gather(*(self._renew(window, each) for window, each in some))
            for window in {window for window, _ in due}:
                self._trust(window)
                self._parts.offer(window)

    async def _renew(self, window: PoppedWindow, message: PoppedMessage) -> None:
        if not window.holds(message) or window.changing(message) is not None:
            return
        config = self._parts.config
        end = window.begin_change(message)
        try:
            deadline = Deadline.after_ms(config.call_timeout_ms)
            await self._parts.pops.hide(message, config.invisible_ms, deadline)
        except HandleExpired as error:
            logger.warning(
                "%s at %d was visible again before it was finished, so it comes again: %s",
                message.queue, message.queue_offset, error,
            )  # fmt: skip
            lost = [message] if self._parts.finish is None else window.unfinished
            for each in lost:
                window.lost(each)
        except SprocketError as error:  # the next search tries again
            logger.debug("%s at %d: renew: %s", message.queue, message.queue_offset, error)
        finally:
            end()


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
