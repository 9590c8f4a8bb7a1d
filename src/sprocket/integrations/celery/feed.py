"""Receives one queue's messages for one channel, as many as it may have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sprocket.base.errors import SprocketError
from sprocket.integrations.queues.queue_receiver import QueueReceiver
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import POP_COUNT_MAX

#: What a channel gets: a message, or the error that ends the feed.
Delivery = Callable[[StoredMessage | SprocketError], None]


class ChannelFeed:
    """Runs until it is closed, or until a broker refuses for good.

    Args:
        credit: how many more messages the channel may have now.
        deliver: takes what arrives, on the event loop.
    """

    def __init__(
        self, queues: TaskQueues, topic: str, credit: Callable[[], int], deliver: Delivery
    ) -> None:
        self.topic = topic
        self._receiver = QueueReceiver(queues, topic)
        self._credit = credit
        self._deliver = deliver
        self._wake = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    def wake(self) -> None:
        """The channel may have more messages now."""
        self._wake.set()

    async def close(self) -> None:
        """Stops; what a broker is about to give goes back to it."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            count = min(self._credit(), POP_COUNT_MAX)
            if count <= 0:
                await self._wake.wait()
                self._wake.clear()
                continue
            try:
                messages = await self._receiver.receive(count)
            except SprocketError as error:
                self._deliver(error)
                return
            for message in messages:
                self._deliver(message)
