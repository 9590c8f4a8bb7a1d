"""Which queues a consumer has paused, and waiting for the end of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from sprocket.client.base.arguments import queues_of
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_topic


class Pauses:
    """Pauses of everything, of topics, and of queues; each is taken back by itself."""

    def __init__(self) -> None:
        #: Whether anything may be paused.
        self.is_any = False
        self._is_all = False
        self._topics: set[str] = set()
        self._queues: set[QueueId] = set()
        #: Set and replaced whenever something is resumed.
        self._resumed = asyncio.Event()

    def __contains__(self, queue: QueueId) -> bool:
        return self._is_all or queue.topic in self._topics or queue in self._queues

    def pause_all(self) -> None:
        """Everything rests."""
        self._is_all = self.is_any = True

    def resume_all(self) -> None:
        """Nothing rests any more, topics and queues included."""
        self._is_all = False
        self._topics.clear()
        self._queues.clear()
        self._wake()

    def pause_topic(self, topic: str) -> None:
        """All queues of a topic rest."""
        check_topic(topic)
        self._topics.add(topic)
        self.is_any = True

    def resume_topic(self, topic: str) -> None:
        """They go on, unless they rest for another reason."""
        check_topic(topic)
        self._topics.discard(topic)
        self._wake()

    def pause_queues(self, queues: Iterable[QueueId]) -> None:
        """Some queues rest, also if they are held only later."""
        self._queues.update(queues_of(queues))
        self.is_any = True

    def resume_queues(self, queues: Iterable[QueueId]) -> None:
        """They go on, unless they rest for another reason."""
        self._queues.difference_update(queues_of(queues))
        self._wake()

    async def wait_resumed(self, queue: QueueId) -> None:
        """Returns when the queue does not rest, or no longer."""
        while queue in self:
            await self._resumed.wait()

    def _wake(self) -> None:
        self.is_any = self._is_all or bool(self._topics or self._queues)
        self._resumed.set()
        self._resumed = asyncio.Event()
