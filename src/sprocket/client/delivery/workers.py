"""Workers that deliver ready messages: as many as are needed, up to a limit.

A worker awaits the listener itself, so a message costs one coroutine but no task. Workers wake one
by one: each wakes the next while there are messages to take. So a listener that never waits is
served by one worker.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sprocket.base.deadline import Deadline
from sprocket.client.base.subscription import Listener, Subscription
from sprocket.client.base.threads import DaemonThreads
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
    """The current task of a worker: messages of a window, and when they were delivered."""

    __slots__ = ("began", "messages", "window")

    def __init__(self) -> None:
        self.window: Window | None = None
        self.messages: list[StoredMessage] = []
        self.began = 0.0


class Workers:
    """The common part of the delivery strategies, which implement `serve`.

    Args:
        subscriptions: by topic; read for each message, so the owner may change them.
        redelivery: takes messages that failed.
        config: the number of workers, and the pauses.
        counters: count the listener calls.
    """

    #: How many turns a worker takes in a row before it yields to the loop.
    turns_in_a_row = 2
    #: How many messages of one window a worker delivers in one turn.
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
        #: The futures on which idle workers wait.
        self._idle: list[asyncio.Future[None]] = []
        #: Whether a worker was woken or created and has not started yet.
        self.is_waking = False
        self.is_stopped = False
        self._threads: DaemonThreads | None = None

    async def serve(self, turn: WorkerTask) -> None:
        """Takes ready messages, wakes the next worker if there are more, and delivers them.

        Args:
            turn: where it records its current messages.
        """
        raise NotImplementedError

    def offer(self, window: Window) -> None:
        """Is called with a window that has messages to deliver."""
        self.ready.add(window)
        self.wake()

    # At most one worker is waking at any time. A worker that starts takes messages and then wakes
    # the next one, so their number grows only while listeners wait; waking all of them at once
    # would cost a future and a switch for each, although one may be able to do all the work.
    def wake(self) -> None:
        """Wakes or creates one more worker, if messages are ready and no worker is waking."""
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
        """Stops delivery, and waits for running listeners until the deadline; then cancels them.

        A listener may close its own consumer, which calls this from its worker. This worker is not
        waited for, because it waits here itself; it ends when the listener returns.
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
            self._threads.shutdown(cancel_futures=True)

    def listener_of(self, message: StoredMessage) -> Listener | None:
        """Returns the listener of a message; None if its topic is not subscribed any more.

        A redelivered message without its topic, or whose topic is not subscribed any more, goes to
        the first listener.
        """
        subscription = self._subscriptions.get(message.queue.topic)
        if subscription is not None and subscription.listener is not None:
            return subscription.listener
        if subscription is None and RETRY_TOPIC not in message.properties:
            return None
        listeners = (each.listener for each in self._subscriptions.values())
        return next((each for each in listeners if each is not None), None)

    async def call(self, listener: Listener, messages: list[StoredMessage]) -> Any:
        """Calls a listener with messages; returns its result, or a `Later` for an exception."""
        payload: Any = messages[0] if listener.batch is None else messages
        try:
            if listener.is_blocking:
                return await (self._elsewhere(listener.function, payload) or self._never())
            return await listener.function(payload)
        except BaseException as error:  # a user's listener
            return raised(error, messages[0])

    def count(self, messages: Sequence[StoredMessage], verdict: Verdict, began: float) -> None:
        """Counts a listener call that has ended."""
        ended = self.loop.time()
        self.counters.called(
            messages[0].queue.topic,
            ended,
            count=len(messages),
            failed=0 if verdict is None else sum(each is not None for each in verdict),
            seconds=ended - began,
        )

    def outlives(self, listener: Listener) -> bool:
        """Whether a call of the listener continues after its cancellation: in threads it does."""
        return listener.is_blocking and self._processes is None

    def _elsewhere(
        self, function: Callable[[Any], Any], payload: Any
    ) -> asyncio.Future[Any] | None:
        """Calls a plain function in a thread, or from a thread in another process.

        Returns None if Python is exiting and starts no more threads: then nothing was called, so
        nothing has failed, and the message must stay as it is.
        """
        try:
            if self._threads is None:
                self._threads = DaemonThreads(self._workers_max, "sprocket-listener")
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
