"""Delivers messages from windows to loops that iterate over a consumer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from sprocket.base.deadline import Deadline
from sprocket.base.errors import UsageError
from sprocket.client.base.subscription import Later
from sprocket.client.delivery.ready_windows import DeferredMessages, ReadyWindows
from sprocket.client.delivery.redeliver import RedeliveryPolicy
from sprocket.client.fetching.statistics import Counters
from sprocket.client.fetching.window import Window
from sprocket.message.message import StoredMessage


class IteratedDelivery:
    """Delivers messages to loops that iterate over them, one at a time to each loop.

    A message is done when the loop requests the next one. If the loop ends before that, by a break
    or an error, the message is delivered again.
    """

    def __init__(
        self, redelivery: RedeliveryPolicy, reoffer_seconds: float, *, counters: Counters
    ) -> None:
        self._redelivery = redelivery
        self._counters = counters
        self._ready = ReadyWindows()
        self._deferred = DeferredMessages(reoffer_seconds, self.offer)
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_stopped = False
        #: By `id`, the messages in flight: the `Later` of those that are marked, else None.
        self._later: dict[int, Later | None] = {}

    def offer(self, window: Window) -> None:
        """Is called with a window that has messages to deliver."""
        self._ready.add(window)
        self._wake()

    def mark(self, message: StoredMessage, later: Later) -> None:
        """Marks a message in flight for redelivery.

        Raises:
            UsageError: the message is not in flight, or the level is not a whole number.
        """
        if id(message) not in self._later:
            raise UsageError("a message is marked before the next one is requested")
        if not later.is_right:
            raise UsageError(f"a delay level is a whole number, not {later.delay_level!r}")
        self._later[id(message)] = later

    async def stop(self, deadline: Deadline) -> None:
        """Stops delivery; the loops end."""
        self._is_stopped = True
        self._deferred.clear()
        while self._waiting:
            self._wake()

    def _wake(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                return

    async def iterate(self) -> AsyncGenerator[StoredMessage, None]:
        """Yields messages until delivery is stopped."""
        while not self._is_stopped:
            taken = self._ready.take()
            if taken is None:
                waiting = asyncio.get_running_loop().create_future()
                self._waiting.append(waiting)
                await waiting
                continue
            window, message = taken
            is_finished = False
            began = asyncio.get_running_loop().time()
            self._later[id(message)] = None
            try:
                yield message
                is_finished = True
            finally:
                if not is_finished:
                    self._later.pop(id(message), None)
                    window.put_back([message])
                    self.offer(window)
            await self._finish(window, message, began)

    async def _finish(self, window: Window, message: StoredMessage, began: float) -> None:
        later = self._later.pop(id(message), None)
        now, failed = asyncio.get_running_loop().time(), int(later is not None)
        self._counters.called(message.queue.topic, now, count=1, failed=failed, seconds=now - began)
        if later is None:
            window.done(message)
        elif window.is_closed:
            return  # the queue's next holder receives it again anyway
        elif await self._redelivery.give_back(message, later.delay_level):
            window.done(message)
        else:
            self._deferred.defer(window, [message])
