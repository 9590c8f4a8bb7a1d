"""Acknowledgements that wait to be sent: one request at a time to each broker, with all of them.

So their number in a request grows with the load, and an idle consumer's acknowledgement leaves at
once.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.deadline import Deadline
from sprocket.base.errors import HandleExpired
from sprocket.client.popping.pop_client import PopClient
from sprocket.message.popped_message import PoppedMessage

logger = logging.getLogger(__name__)

#: For how long acknowledgements are tried at least, s.
_SECONDS_MIN = 1.0


class AckQueue:
    """The acknowledgements of one consumer.

    Args:
        pops: sends them.
    """

    def __init__(self, pops: PopClient) -> None:
        self._pops = pops
        #: By broker, the messages whose acknowledgements wait for the one under way.
        self._waiting: dict[str, list[PoppedMessage]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: How many came too late, or could not be sent.
        self.failed = 0

    def add(self, message: PoppedMessage) -> None:
        """Has a message acknowledged soon."""
        broker = message.handle.broker
        waiting = self._waiting.get(broker)
        if waiting is None:
            waiting = self._waiting[broker] = []
        waiting.append(message)
        if broker not in self._tasks:
            self._tasks[broker] = asyncio.ensure_future(self._send(broker))

    async def close(self, deadline: Deadline) -> None:
        """Waits until all are sent; what is not sent by then comes again."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=deadline.left())
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, broker: str) -> None:
        try:
            while messages := self._waiting.pop(broker, None):
                await self._acknowledge(messages)
        except Exception:  # root of a task: what is left comes again after its time
            logger.exception("%s: acknowledging at %s failed", self._pops.group, broker)
        finally:
            del self._tasks[broker]

    async def _acknowledge(self, messages: list[PoppedMessage]) -> None:
        now = asyncio.get_running_loop().time()
        until = max(message.invisible_until for message in messages)
        failures = await self._pops.acknowledge(messages, Deadline(max(until, now + _SECONDS_MIN)))
        self.failed += len(failures)
        for message, error in failures:
            level = logging.DEBUG if isinstance(error, HandleExpired) else logging.INFO
            logger.log(
                level, "%s at %d is done and may come again: %s",
                message.queue, message.queue_offset, error,
            )  # fmt: skip
