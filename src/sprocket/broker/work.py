"""The tasks that a broker runs by itself."""

from __future__ import annotations

import asyncio
import logging

from sprocket.base.cancelling import end_all
from sprocket.broker.tables.files import Work

logger = logging.getLogger(__name__)


class RunningWork:
    """Tasks that run until they are ended together.

    Args:
        failure: gets the error with which one ends by itself.

    Attributes:
        tasks: they, until they are ended.
    """

    def __init__(self, failure: asyncio.Future[None]) -> None:
        self._failure = failure
        self.tasks: list[asyncio.Task[None]] = []

    def run(self, name: str, work: Work) -> None:
        """Begins a task; `name` is for people."""
        self.tasks.append(asyncio.create_task(self._watched(name, work), name=name))

    async def _watched(self, name: str, work: Work) -> None:
        try:
            await work()
        except Exception as error:  # root of a task
            logger.critical("the broker's %s ended", name, exc_info=error)
            if not self._failure.done():
                self._failure.set_exception(error)

    async def end(self) -> None:
        """Cancels all, and forgets them once they have ended."""
        await end_all(self.tasks)
