"""Receives one queue's messages for one channel, as many as it may have."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sprocket.base.errors import (
    NoPermission,
    ReplyError,
    RequestNotSupported,
    RouteNotFound,
    SprocketError,
    TransportError,
)
from sprocket.base.troubles import Troubles
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import POP_COUNT_MAX

logger = logging.getLogger(__name__)

#: How long a broker holds a request for messages, ms.
_HOLD_MS = 15_000
#: Pauses after failures, s: the first and the longest.
_PAUSE_FIRST, _PAUSE_MAX = 0.2, 5.0

#: What a channel gets: a message, or the error that ends the feed.
Delivery = Callable[[StoredMessage | SprocketError], None]


class ChannelFeed:
    """Runs until it is closed, or until a broker refuses for good.

    Servers that are away are asked again and again: handles stay valid meanwhile, so there is no
    reason to have a worker begin anew.

    Args:
        credit: how many more messages the channel may have now.
        deliver: takes what arrives, on the event loop.
    """

    def __init__(
        self, queues: TaskQueues, topic: str, credit: Callable[[], int], deliver: Delivery
    ) -> None:
        self._queues = queues
        self.topic = topic
        self._credit = credit
        self._deliver = deliver
        self._wake = asyncio.Event()
        self._troubles = Troubles(asyncio.get_running_loop().time, logger)
        self._task = asyncio.ensure_future(self._run())

    def wake(self) -> None:
        """The channel may have more messages now."""
        self._wake.set()

    async def close(self) -> None:
        """Stops; what a broker is about to give goes back to it."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        pause, name = _PAUSE_FIRST, f"queue {self.topic}"
        while True:
            count = min(self._credit(), POP_COUNT_MAX)
            if count <= 0:
                await self._wake.wait()
                self._wake.clear()
                continue
            try:
                messages = await self._queues.receive(self.topic, count, _HOLD_MS)
            except (TransportError, RouteNotFound, ReplyError) as error:
                if isinstance(error, RequestNotSupported | NoPermission):
                    self._deliver(error)
                    return
                self._troubles.failed(name, f"nothing is received of {name}", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _PAUSE_MAX)
                continue
            except SprocketError as error:
                self._deliver(error)
                return
            pause = _PAUSE_FIRST
            self._troubles.ended(name, f"{name} is received again")
            for message in messages:
                self._deliver(message)
