"""Hands messages from windows to listeners, and says how it ended.

Concurrent: a fixed number of workers takes messages from all windows in turn. A worker awaits the
listener itself, so a message costs a coroutine but no task; workers are woken one by one, each
waking the next while there is something to take, so a listener that never waits is served by one.

What succeeded is done in its window; what failed is given back to the broker and then done; what
cannot be given back is kept, and offered again after a pause.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from sprocket.base.deadline import Deadline
from sprocket.client.config import ConsumerConfig
from sprocket.client.ready import Ready, Shelf
from sprocket.client.redeliver import Redelivery
from sprocket.client.subscription import Later, Listener, Subscription
from sprocket.client.window import Window
from sprocket.message.message import StoredMessage
from sprocket.message.properties import RETRY_TOPIC

logger = logging.getLogger(__name__)

#: Messages that a worker delivers in a row before it lets others have the loop.
_TURNS = 64


class Concurrent:
    """Delivers messages in any order, as many at once as there are workers.

    Args:
        subscriptions: by topic; looked at for each message, so the owner may change it.
        redelivery: takes what failed.
        config: how many workers, and the pauses.
    """

    def __init__(
        self,
        subscriptions: Mapping[str, Subscription],
        redelivery: Redelivery,
        config: ConsumerConfig,
    ) -> None:
        self._subscriptions = subscriptions
        self._redelivery = redelivery
        self._workers_max = config.concurrency
        self._loop = asyncio.get_running_loop()
        self._ready = Ready()
        self._shelf = Shelf(config.reoffer_ms / 1000, self.offer)
        self._workers: set[asyncio.Task[None]] = set()
        #: Workers without work, each waiting to be woken.
        self._idle: list[asyncio.Future[None]] = []
        #: Whether a worker was woken, or made, that has not begun yet.
        self._is_waking = False
        self._is_stopped = False
        self._threads: Executor | None = None

    def offer(self, window: Window) -> None:
        """Takes note that a window has something to hand out."""
        self._ready.add(window)
        if self._ready:
            self._wake()

    async def stop(self, deadline: Deadline) -> None:
        """Hands out nothing more, and waits for listeners under way; at the deadline no longer."""
        self._is_stopped = True
        for waiting in self._idle:
            if not waiting.done():
                waiting.set_result(None)
        self._shelf.clear()
        if self._workers:
            await asyncio.wait(self._workers, timeout=deadline.left())
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if isinstance(self._threads, ThreadPoolExecutor):
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _wake(self) -> None:
        if self._is_waking or self._is_stopped:
            return
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                self._is_waking = True
                return
        if len(self._workers) < self._workers_max:
            self._is_waking = True
            worker = self._loop.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._ended)

    def _ended(self, worker: asyncio.Task[None]) -> None:
        self._workers.discard(worker)
        if not worker.cancelled() and worker.exception() is not None:
            logger.error("a worker ended", exc_info=worker.exception())
            self._wake()

    async def _work(self) -> None:
        self._is_waking = False
        turns = 0
        while not self._is_stopped:
            taken = self._ready.take()
            if taken is None:
                waiting: asyncio.Future[None] = self._loop.create_future()
                self._idle.append(waiting)
                await waiting
                self._is_waking = False
                continue
            if self._ready:
                self._wake()
            await self._deliver(*taken)
            turns += 1
            if turns % _TURNS == 0:
                await asyncio.sleep(0)

    async def _deliver(self, window: Window, message: StoredMessage) -> None:
        subscription = self._subscriptions.get(message.queue.topic)
        listener = subscription.listener if subscription is not None else None
        if listener is None and (RETRY_TOPIC in message.properties or subscription is not None):
            listener = self._first_listener()
        if listener is None:  # its topic was unsubscribed: another member may want it
            self._shelf.keep(window, [message])
        elif listener.batch is None and not listener.is_blocking:
            try:
                later = await listener.function(message)
            except Exception as error:  # a user's listener
                later = _failed(error, message)
            except asyncio.CancelledError as error:
                later = _cancelled(error, message)
            if later is None:
                window.done(message)
            else:
                await self._give_back(window, [message], later)
        else:
            await self._deliver_many(window, message, listener)

    def _first_listener(self) -> Listener | None:
        """Who gets a message that came back and does not say, or no longer has, its topic."""
        listeners = (each.listener for each in self._subscriptions.values())
        return next((each for each in listeners if each is not None), None)

    async def _deliver_many(
        self, window: Window, message: StoredMessage, listener: Listener
    ) -> None:
        """The rarer ways: lists of messages, and functions that block."""
        messages = [message]
        if listener.batch is not None and listener.batch > 1:
            messages += window.take_many(listener.batch - 1, topic=message.queue.topic)
        payload: Any = message if listener.batch is None else messages
        try:
            if listener.is_blocking:
                later = await self._loop.run_in_executor(self._pool(), listener.function, payload)
            else:
                later = await listener.function(payload)
        except Exception as error:  # a user's listener
            later = _failed(error, message)
        except asyncio.CancelledError as error:
            later = _cancelled(error, message)
        if later is None:
            for each in messages:
                window.done(each)
        else:
            await self._give_back(window, messages, later)

    def _pool(self) -> Executor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._workers_max, "sprocket-listener")
        return self._threads

    async def _give_back(
        self, window: Window, messages: Sequence[StoredMessage], later: object
    ) -> None:
        if not isinstance(later, Later):
            logger.error("a listener returns None or Later, not %r; taken as Later()", later)
            later = Later()
        kept = []
        for message in messages:
            if window.is_closed:  # the queue's next holder gets it again anyway
                return
            if await self._redelivery.give_back(message, later.delay_level):
                window.done(message)
            else:
                kept.append(message)
        if kept:
            self._shelf.keep(window, kept)


def _failed(error: BaseException, message: StoredMessage) -> Later:
    logger.warning(
        "the listener failed at %s, offset %d; it comes again later",
        message.queue,
        message.queue_offset,
        exc_info=error,
    )
    return Later()


def _cancelled(error: asyncio.CancelledError, message: StoredMessage) -> Later:
    """Tells whether the worker is to end, or only the listener let something be cancelled."""
    worker = asyncio.current_task()
    if worker is not None and worker.cancelling():
        raise error
    return _failed(error, message)
