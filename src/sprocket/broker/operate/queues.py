"""The queues of a topic, for the requests of operators."""

from __future__ import annotations

from sprocket.broker.tables.topics import Topics
from sprocket.protocol.bodies import Queue
from sprocket.store.reading.by_time import Boundary
from sprocket.store.store import Store


class TopicQueueOffsets:
    """Lists a topic's queues with their first and last offsets and times."""

    def __init__(self, topics: Topics, store: Store, *, broker_name: str) -> None:
        self._topics = topics
        self._store = store
        self._broker_name = broker_name

    def has(self, topic: str) -> bool:
        """Whether there is such a topic, even one without queues."""
        return self._topics.get(topic) is not None

    def queues_of(self, topic: str) -> list[Queue]:
        """Queues that can be read or written; none if there is no such topic."""
        config = self._topics.get(topic)
        if config is None:
            return []
        return self._named(topic, max(config.read_queue_nums, config.write_queue_nums))

    def readable(self, topic: str) -> list[Queue]:
        """Queues that can be read; none if there is no such topic."""
        config = self._topics.get(topic)
        return [] if config is None else self._named(topic, config.read_queue_nums)

    def _named(self, topic: str, count: int) -> list[Queue]:
        return [
            Queue(broker_name=self._broker_name, queue_id=number, topic=topic)
            for number in range(count)
        ]

    def low(self, queue: Queue) -> int:
        """The offset of the first message that is still stored."""
        return self._store.min_offset(queue.topic, queue.queue_id)

    def high(self, queue: Queue) -> int:
        """The offset that the next message gets."""
        return self._store.max_offset(queue.topic, queue.queue_id)

    def time_of(self, queue: Queue, offset: int) -> int:
        """When a message was stored, ms since 1970; -1 if there is no such message."""
        return self._store.time_of(queue.topic, queue.queue_id, offset)

    async def load_times(self, queue: Queue, *offsets: int) -> None:
        """Loads into memory what `time_of` reads for these offsets."""
        for offset in offsets:
            await self._store.cold.load_time(queue.topic, queue.queue_id, offset)

    async def load_search(self, queue: Queue, time_ms: int) -> None:
        """Loads into memory what `offset_at` reads for this time."""
        await self._store.cold.load_search(queue.topic, queue.queue_id, time_ms)

    def offset_at(self, queue: Queue, time_ms: int) -> int:
        """The offset of the first message stored at a time or after."""
        return self._store.offset_at_time(queue.topic, queue.queue_id, time_ms, Boundary.LOWER)
