"""The two strategies that deliver messages from windows to listeners and apply the results.

Concurrent: messages of all windows in any order. A message that succeeded is done in its window.
One that failed is sent back to the broker and then done; if it cannot be sent back, it is kept and
delivered again after a pause.

Ordered: one batch of a window at a time, from its head, and only while the queue's lease is
trusted. Messages that failed return to the head, and the window pauses before they are delivered
again. A message that failed too often becomes a dead letter, and the window continues. Without
`auto_commit` messages stay in flight until the listener returns commit or rollback, and the
position moves at a commit.

Source: ConsumeMessageConcurrentlyService, ConsumeMessageOrderlyService of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from sprocket.base.deadline import Deadline
from sprocket.client.base.subscription import Later, Listener, Outcome, Subscription
from sprocket.client.config import ConsumerConfig
from sprocket.client.delivery.redeliver import RedeliveryPolicy
from sprocket.client.delivery.verdict import Verdict, raised, verdict_on
from sprocket.client.delivery.workers import Workers, WorkerTask
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters
from sprocket.client.fetching.window import Window
from sprocket.message.message import StoredMessage
from sprocket.message.properties import RETRY_TOPIC

logger = logging.getLogger(__name__)

#: The delay level without redelivery: the message becomes a dead letter.
_NEVER = -1
#: The shortest pause of an ordered queue, as in Java.
_PAUSE_MS_MIN = 10
#: How many times a pause doubles at most.
_DOUBLINGS_MAX = 30
#: The delay level for a message whose listener took too long: 10 s.
_EXPIRED_LEVEL = 3
#: Seconds between two searches for such listeners, at most.
_LOOK_SECONDS_MAX = 60.0


class ConcurrentDelivery(Workers):
    """Delivers messages in any order, one at a time for each worker.

    If a listener takes longer than the consume timeout, its message is sent back and its result is
    ignored, so a listener that hangs does not block the position of its queue for ever.
    """

    def __init__(
        self,
        subscriptions: Mapping[str, Subscription],
        redelivery: RedeliveryPolicy,
        config: ConsumerConfig,
        *,
        counters: Counters,
        pauses: Pauses,
    ) -> None:
        """
        Args:
            pauses: redelivered messages of a paused topic are deferred until the end of the pause.
        """
        super().__init__(subscriptions, redelivery, config, counters=counters)
        self._timeout = config.consume_timeout_ms / 1000
        self._pauses = pauses
        self._expiring = asyncio.ensure_future(self._keep_expiring())

    async def stop(self, deadline: Deadline) -> None:
        """As `Workers.stop`."""
        await super().stop(deadline)
        self._expiring.cancel()
        await asyncio.wait([self._expiring])

    async def _keep_expiring(self) -> None:
        while True:
            await asyncio.sleep(min(self._timeout / 2, _LOOK_SECONDS_MAX))
            latest = self.loop.time() - self._timeout
            for turn in list(self.turns):
                if turn.window is not None and turn.began <= latest:
                    await self._expire(turn, turn.window, turn.messages)

    async def _expire(
        self, turn: WorkerTask, window: Window, messages: Sequence[StoredMessage]
    ) -> None:
        turn.window = None
        kept = []
        for message in [each for each in messages if window.holds(each)]:
            logger.warning(
                "the listener has %s at %d for more than %g s; the message is given back",
                message.queue, message.queue_offset, self._timeout,
            )  # fmt: skip
            if await self.redelivery.give_back(message, _EXPIRED_LEVEL):
                window.done(message)
                self.counters.expired(message.queue.topic, self.loop.time())
            else:
                kept.append(message)
        kept = [message for message in kept if window.holds(message)]
        if kept and turn.messages is messages:  # the next search tries again
            turn.window = window
        elif kept:
            self.deferred.defer(window, kept)

    # The hot loop of most consumers. A worker delivers up to 32 messages of a window in a row and
    # awaits the listener itself, without a task, a future or a coroutine of ours for each. From a
    # pull's reply to the end of the listener's call a message takes 3.1 µs, where it took 6.3 µs;
    # half of the gain came from decoding properties lazily. The next worker is woken before the
    # listener is awaited, so a listener that waits does not hold up the other messages.
    async def serve(self, turn: WorkerTask) -> None:
        """Delivers messages of one window, one after the other or in a batch."""
        window = self.ready.next()
        if window is None:
            return
        waiting, pauses, now = window.waiting, self._pauses, self.loop.time
        for _ in range(self.messages_in_a_row):
            if not waiting or self.is_stopped:
                return
            message = waiting.popleft()
            if not waiting:
                self.ready.drop(window)
            if not self.is_waking:
                self.wake()
            listener = self.listener_of(message)
            paused = pauses.is_any and RETRY_TOPIC in message.properties and message.queue in pauses
            if listener is None or paused:
                self.deferred.defer(window, [message])
                continue
            turn.messages = [message]
            turn.began = began = now()
            turn.window = window
            if listener.batch is not None or listener.is_blocking:
                await self._serve_batch(turn, listener, window)
                return
            # Does the same as `_serve_batch` without its calls: the path of most messages.
            try:
                result = await listener.function(message)
            except BaseException as error:  # a user's listener
                result = raised(error, message)
            if result is None:
                ended = now()
                self.counters.consumed(message.queue.topic, ended, ended - began)
                window.done(message)
                turn.window = None
            else:
                await self._conclude(turn, window, result)

    async def _serve_batch(self, turn: WorkerTask, listener: Listener, window: Window) -> None:
        """Delivers a batch; its first message has been taken from the window already."""
        messages = turn.messages
        if listener.batch is not None and listener.batch > 1:
            topic = messages[0].queue.topic
            messages += window.take_many(listener.batch - 1, topic=topic)
        await self._conclude(turn, window, await self.call(listener, messages))

    async def _conclude(self, turn: WorkerTask, window: Window, result: object) -> None:
        messages = turn.messages
        verdict = None if result is None else verdict_on(result, len(messages))
        self.count(messages, verdict, turn.began)
        if verdict is None:
            for each in messages:
                window.done(each)
        elif turn.window is not None:  # else it took too long and has been sent back already
            turn.window = None
            await self._give_back(window, messages, verdict)
        turn.window = None
        turn.messages = []

    async def _give_back(
        self, window: Window, messages: Sequence[StoredMessage], verdict: Sequence[Later | None]
    ) -> None:
        kept = []
        for message, later in zip(messages, verdict, strict=True):
            if window.is_closed:  # the queue's next holder receives it again anyway
                return
            if later is None:
                window.done(message)
            elif not window.holds(message):
                continue
            elif await self.redelivery.give_back(message, later.delay_level):
                window.done(message)
            else:
                kept.append(message)
        if kept:
            self.deferred.defer(window, kept)


class OrderedDelivery(Workers):
    """Delivers each window's messages one after the other; different windows at the same time."""

    def __init__(
        self,
        subscriptions: Mapping[str, Subscription],
        redelivery: RedeliveryPolicy,
        config: ConsumerConfig,
        *,
        counters: Counters,
    ) -> None:
        super().__init__(subscriptions, redelivery, config, counters=counters)
        self._reconsume_max = config.reconsume_max
        self._suspend_ms = config.suspend_ms
        self._suspend_longest_ms = max(config.suspend_ms, config.suspend_longest_ms)
        self._auto_commit = config.auto_commit
        #: Windows that pause because the message at their head failed.
        self._resting: set[Window] = set()
        #: By window, a future for the end of its running batch.
        self._busy: dict[Window, asyncio.Future[None]] = {}

    # Order needs one batch of a window at a time. So the worker takes the window off the ready
    # list, where no other worker finds it, and `_busy` refuses it if a fetch has offered it again
    # meanwhile. Different workers deliver different windows at the same time.
    async def serve(self, turn: WorkerTask) -> None:
        """Takes a window off the ready list, delivers some batches, and puts it back."""
        window = self.ready.take_window()
        if self.ready:
            self.wake()
        if window is None or window in self._busy or self._must_wait(window):
            return  # it is offered again after its batch, its pause, or the renewal of its lease
        ended = self._busy[window] = self.loop.create_future()
        try:
            await self._serve_window(window)
        finally:
            del self._busy[window]
            ended.set_result(None)
        if not self._must_wait(window):
            self.offer(window)

    async def _serve_window(self, window: Window) -> None:
        waiting, now = window.waiting, self.loop.time
        for _ in range(self.messages_in_a_row):
            if not waiting:
                return
            message = waiting.popleft()
            listener = self.listener_of(message)
            if listener is None:
                self._suspend(window, [message], self._suspend_ms)
                return
            if listener.batch is not None or listener.is_blocking:
                await self._deliver_batch(window, message, listener)
            else:
                # Does the same as `_deliver_batch` without its calls: the path of most messages.
                began = now()
                try:
                    result = await listener.function(message)
                except BaseException as error:  # a user's listener
                    result = raised(error, message)
                if result is None and self._auto_commit:
                    ended = now()
                    self.counters.consumed(message.queue.topic, ended, ended - began)
                    window.done(message)
                else:
                    await self._conclude(window, [message], result, began)
            if self.is_stopped or self._must_wait(window):
                return

    async def finish(self, window: Window) -> None:
        """Stops delivery of a window, and waits for the end of its running batch."""
        window.freeze()
        ended = self._busy.get(window)
        if ended is not None:
            await asyncio.wait([ended])

    def _must_wait(self, window: Window) -> bool:
        if window.is_frozen or window in self._resting:
            return True
        return self.loop.time() >= window.trusted_until

    async def _deliver_batch(
        self, window: Window, message: StoredMessage, listener: Listener
    ) -> None:
        messages = [message]
        if listener.batch is not None and listener.batch > 1:
            messages += window.take_many(listener.batch - 1, topic=message.queue.topic)
        began = self.loop.time()
        try:
            result = await self.call(listener, messages)
        except asyncio.CancelledError:
            window.note_straggler(self.outlives(listener))
            raise
        await self._conclude(window, messages, result, began)

    async def _conclude(
        self, window: Window, messages: Sequence[StoredMessage], result: object, began: float
    ) -> None:
        if isinstance(result, Outcome) and not self._auto_commit and result is not Outcome.UNKNOWN:
            self.count(messages, None, began)
            self._end(window, result)
            return
        verdict = None if result is None else verdict_on(result, len(messages))
        self.count(messages, verdict, began)
        await self._settle(window, messages, verdict)

    def _end(self, window: Window, outcome: Outcome) -> None:
        """Commits or puts back all messages that were delivered since the last commit."""
        taken = window.taken()
        if outcome is Outcome.ROLLBACK:
            self._suspend(window, taken, self._suspend_ms)
            return
        for message in taken:
            window.done(message)

    async def _settle(
        self, window: Window, messages: Sequence[StoredMessage], verdict: Verdict
    ) -> None:
        """Finishes the messages before the first failure; the others are delivered again."""
        if verdict is None:
            consumed = messages
        else:
            at = next(n for n, later in enumerate(verdict) if later is not None)
            consumed = messages[:at]
        if self._auto_commit:
            for message in consumed:
                window.done(message)
        if verdict is None:
            return
        later = verdict[at] or Later()
        is_whole = all(each == later for each in verdict)
        count = len(messages) if is_whole else at + 1
        await self._retry(window, messages[at:count], later, behind=messages[count:])

    # A later message must not be delivered before an earlier one, so a failed message is not sent
    # back: it returns to the head with those behind it, and the window pauses. The attempts are
    # counted in the message, because no broker sees them. If a dead letter cannot be stored, the
    # attempt is not counted, and the message is delivered again.
    async def _retry(
        self,
        window: Window,
        messages: Sequence[StoredMessage],
        later: Later,
        *,
        behind: Sequence[StoredMessage],
    ) -> None:
        """Makes dead letters of messages that failed too often; pauses the window for the others.

        Args:
            behind: the messages of the batch that follow those that failed.
        """
        left = []
        for message in messages:
            message.reconsume_times += 1
            too_often = (
                self._reconsume_max is not None and message.reconsume_times > self._reconsume_max
            )
            if not too_often and later.delay_level >= 0:
                left.append(message)
            elif window.is_closed or await self.redelivery.give_back(message, _NEVER):
                window.done(message)
            else:
                message.reconsume_times -= 1  # so that the count never exceeds the limit
                left.append(message)
        if left:
            self._suspend(window, [*left, *behind], self._pause_ms(left[0], later))
        else:
            window.put_back(behind)

    def _pause_ms(self, message: StoredMessage, later: Later) -> int:
        """Returns how long the queue pauses after a failure; it may double with each attempt."""
        if later.pause_ms is not None:
            return max(later.pause_ms, _PAUSE_MS_MIN)
        doublings = min(max(message.reconsume_times - 1, 0), _DOUBLINGS_MAX)
        return min(self._suspend_ms << doublings, self._suspend_longest_ms)

    def _suspend(self, window: Window, messages: Sequence[StoredMessage], pause_ms: int) -> None:
        """Puts messages back to the head of their window, and pauses it."""
        window.put_back(messages)
        self._resting.add(window)

        def go_on() -> None:
            self._resting.discard(window)
            self.offer(window)

        self.deferred.call_later(pause_ms / 1000, go_on)
