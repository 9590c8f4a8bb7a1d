"""Receives one queue's messages for a worker, which outlasts servers that are away.

Servers that are away are asked again and again: handles stay valid meanwhile, so there is no reason
to have a worker begin anew.
"""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.errors import (
    NoPermission,
    ReplyError,
    RequestNotSupported,
    RouteNotFound,
    TransportError,
)
from sprocket.base.troubles import Troubles
from sprocket.integrations.queues.task_queues import TaskQueues
from sprocket.message.popped_message import PoppedMessage

logger = logging.getLogger(__name__)

#: How long a broker holds a request for messages, ms.
_HOLD_MS = 15_000
#: Pauses after failures, s: the first and the longest.
_PAUSE_FIRST, _PAUSE_MAX = 0.2, 5.0


class QueueReceiver:
    """One queue, as one worker receives it; made on the event loop that uses it."""

    def __init__(self, queues: TaskQueues, topic: str) -> None:
        self._queues = queues
        self._topic = topic
        self._pause = _PAUSE_FIRST
        self._troubles = Troubles(asyncio.get_running_loop().time, logger)

    async def receive(self, count: int) -> list[PoppedMessage]:
        """Receives and holds messages; an empty list if none come in time.

        Servers that are away are logged. Then there is a pause and an empty list.

        Raises:
            RequestNotSupported, NoPermission: a broker refuses for good.
            SprocketError: other faults that trying again does not mend.
        """
        name = f"queue {self._topic}"
        try:
            messages = await self._queues.receive(self._topic, count, _HOLD_MS)
        except (TransportError, RouteNotFound, ReplyError) as error:
            if isinstance(error, RequestNotSupported | NoPermission):
                raise
            self._troubles.failed(name, f"nothing is received of {name}", error)
            await asyncio.sleep(self._pause)
            self._pause = min(self._pause * 2, _PAUSE_MAX)
            return []
        self._pause = _PAUSE_FIRST
        self._troubles.ended(name, f"{name} is received again")
        return messages
