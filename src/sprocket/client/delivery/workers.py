"""Workers that hand out what is ready: as many as are needed, up to a limit.

A worker awaits the listener itself, so a message costs a coroutine but no task. Workers are woken
one by one, each waking the next while there is something to take, so a listener that never waits
is served by one.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sprocket.base.deadline import Deadline
from sprocket.client.base.subscription import Listener, Subscription
from sprocket.client.base.user_code import call_contained
from sprocket.client.config import ConsumerConfig
from sprocket.client.delivery.processes import ListenerProcesses
from sprocket.client.delivery.ready_windows import DeferredMessages, ReadyWindows
from sprocket.client.delivery.redeliver import RedeliveryPolicy
from sprocket.client.delivery.verdict import Verdict, raised
from sprocket.client.fetching.statistics import Counters
from sprocket.client.fetching.window import Window
from sprocket.message.message import StoredMessage
from sprocket.message.properties import RETRY_TOPIC

logger = logging.getLogger(__name__)


class WorkerTask:
    """What one worker is at: messages of a window, since a moment of the loop's time."""

    __slots__ = ("began", "messages", "window")

    def __init__(self) -> None:
        self.window: Window | None = None
        self.messages: list[StoredMessage] = []
        self.began = 0.0


class Workers:
    """What the delivery strategies have in common; `serve` is theirs.

    Args:
        subscriptions: by topic; looked at for each message, so the owner may change it.
        redelivery: takes what failed.
        config: how many workers, and the pauses.
        counters: told of each call's end.
    """

    #: Turns that a worker takes in a row before it lets others have the loop.
    turns_in_a_row = 2
    #: Messages of one window in a row in a turn, before others have theirs.
    messages_in_a_row = 32

    def __init__(
        self,
        subscriptions: Mapping[str, Subscription],
        redelivery: RedeliveryPolicy,
        config: ConsumerConfig,
        *,
        counters: Counters,
    ) -> None:
        self.ready = ReadyWindows()
        self.deferred = DeferredMessages(config.reoffer_ms / 1000, self.offer)
        self.redelivery = redelivery
        self.loop = asyncio.get_running_loop()
        self._subscriptions = subscriptions
        self.counters = counters
        self.turns: set[WorkerTask] = set()
        self._workers_max = config.concurrency
        self._processes: ListenerProcesses | None = None
        if config.processes:
            self._workers_max = min(config.processes, config.concurrency)
            self._processes = ListenerProcesses()
        self._workers: set[asyncio.Task[None]] = set()
        #: Workers without work, each waiting to be woken.
        self._idle: list[asyncio.Future[None]] = []
        #: Whether a worker was woken, or made, that has not begun yet.
        self.is_waking = False
        self.is_stopped = False
        self._threads: ThreadPoolExecutor | None = None

    async def serve(self, turn: WorkerTask) -> None:
        """Takes something that is ready, wakes the next worker if there is more, delivers it.

        Args:
            turn: where it says what it is at.
        """
        raise NotImplementedError

    def offer(self, window: Window) -> None:
        """Takes note that a window has something to hand out."""
        self.ready.add(window)
        self.wake()

    def wake(self) -> None:
        """Has one more worker begin, if something is ready and none is about to."""
        if self.is_waking or self.is_stopped or not self.ready:
            return
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                self.is_waking = True
                return
        if len(self._workers) < self._workers_max:
            self.is_waking = True
            worker = self.loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)

    async def stop(self, deadline: Deadline) -> None:
        """Hands out nothing more, and waits for listeners under way; at the deadline no longer.

        A listener that closes its own consumer calls this from its worker: that one is not waited
        for, because it waits here itself. It ends when the listener returns.
        """
        self.is_stopped = True
        for waiting in self._idle:
            if not waiting.done():
                waiting.set_result(None)
        self.deferred.clear()
        others = self._workers - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=deadline.left())
        others &= self._workers
        for worker in others:
            worker.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._processes is not None:
            self._processes.end()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def listener_of(self, message: StoredMessage) -> Listener | None:
        """Who gets a message; None if its topic was unsubscribed: another member may want it.

        A message that came back and does not say its topic, or whose topic is not subscribed any
        more, goes to the first listener there is.
        """
        subscription = self._subscriptions.get(message.queue.topic)
        if subscription is not None and subscription.listener is not None:
            return subscription.listener
        if subscription is None and RETRY_TOPIC not in message.properties:
            return None
        listeners = (each.listener for each in self._subscriptions.values())
        return next((each for each in listeners if each is not None), None)

    async def call(self, listener: Listener, messages: list[StoredMessage]) -> Any:
        """What a listener returns for messages; whatever it raises means later."""
        payload: Any = messages[0] if listener.batch is None else messages
        try:
            if listener.is_blocking:
                return await (self._elsewhere(listener.function, payload) or self._never())
            return await listener.function(payload)
        except BaseException as error:  # a user's listener
            return raised(error, messages[0])

    def count(self, messages: Sequence[StoredMessage], verdict: Verdict, began: float) -> None:
        """Counts a listener's call that has ended."""
        ended = self.loop.time()
        self.counters.called(
            messages[0].queue.topic,
            ended,
            count=len(messages),
            failed=0 if verdict is None else sum(each is not None for each in verdict),
            seconds=ended - began,
        )

    def outlives(self, listener: Listener) -> bool:
        """Whether its calls go on though nobody waits for them: in threads they do."""
        return listener.is_blocking and self._processes is None

    def _elsewhere(
        self, function: Callable[[Any], Any], payload: Any
    ) -> asyncio.Future[Any] | None:
        """Calls a plain function in a thread, or in another process and waits in a thread.

        None if there are no threads any more, since Python is ending: nobody was called, so nobody
        has failed, and nothing may come of it.
        """
        try:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._workers_max, "sprocket-listener")
            call = functools.partial(function, payload)
            if self._processes is not None:
                call = functools.partial(self._processes.call, function, payload)
            return self.loop.run_in_executor(self._threads, call_contained, call)
        except RuntimeError:
            return None

    def _never(self) -> asyncio.Future[Any]:
        self.is_stopped = True
        return self.loop.create_future()

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and worker.exception() is not None:
            logger.error("a worker ended", exc_info=worker.exception())
            self.wake()

    async def _work(self) -> None:
        self.is_waking = False
        turn = WorkerTask()
        self.turns.add(turn)
        try:
            await self._serve_on(turn)
        finally:
            self.turns.discard(turn)

    async def _serve_on(self, turn: WorkerTask) -> None:
        turns = 0
        while not self.is_stopped:
            if not self.ready:
                waiting: asyncio.Future[None] = self.loop.create_future()
                self._idle.append(waiting)
                await waiting
                self.is_waking = False
                continue
            await self.serve(turn)
            turns += 1
            if turns % self.turns_in_a_row == 0:
                await asyncio.sleep(0)
