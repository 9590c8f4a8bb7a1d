"""Which queues of a consumer are paused, and the wait until one is resumed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from sprocket.client.base.arguments import queues_of
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_topic


class Pauses:
    """Pauses of all queues, of topics and of single queues; each kind is resumed separately."""

    def __init__(self) -> None:
        #: Whether any queue may be paused.
        self.is_any = False
        self._is_all = False
        self._topics: set[str] = set()
        self._queues: set[QueueId] = set()
        #: Set and replaced whenever something is resumed.
        self._resumed = asyncio.Event()

    def __contains__(self, queue: QueueId) -> bool:
        return self._is_all or queue.topic in self._topics or queue in self._queues

    def pause_all(self) -> None:
        """Pauses all queues."""
        self._is_all = self.is_any = True

    def resume_all(self) -> None:
        """Resumes everything, including paused topics and queues."""
        self._is_all = False
        self._topics.clear()
        self._queues.clear()
        self._wake()

    def pause_topic(self, topic: str) -> None:
        """Pauses all queues of a topic."""
        check_topic(topic)
        self._topics.add(topic)
        self.is_any = True

    def resume_topic(self, topic: str) -> None:
        """Resumes a topic's queues, except those that are paused for another reason."""
        check_topic(topic)
        self._topics.discard(topic)
        self._wake()

    def pause_queues(self, queues: QueueId | Iterable[QueueId]) -> None:
        """Pauses these queues; the consumer need not hold them yet."""
        self._queues.update(_listed(queues))
        self.is_any = True

    def resume_queues(self, queues: QueueId | Iterable[QueueId]) -> None:
        """Resumes these queues, except those that are paused for another reason."""
        self._queues.difference_update(_listed(queues))
        self._wake()

    async def wait_resumed(self, queue: QueueId) -> None:
        """Returns as soon as the queue is not paused."""
        while queue in self:
            await self._resumed.wait()

    def _wake(self) -> None:
        self.is_any = self._is_all or bool(self._topics or self._queues)
        self._resumed.set()
        self._resumed = asyncio.Event()


def _listed(queues: QueueId | Iterable[QueueId]) -> list[QueueId]:
    """Queues as a list, each checked; one queue is a list of one."""
    return queues_of([queues] if isinstance(queues, QueueId) else queues)
