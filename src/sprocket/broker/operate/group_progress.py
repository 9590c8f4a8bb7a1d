"""How far consumer groups are, queue by queue."""

from __future__ import annotations

from collections.abc import Iterable

from sprocket.broker.operate.listings import in_turns
from sprocket.broker.operate.queues import TopicQueueOffsets
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.bodies import Queue, QueueProgress


class GroupProgress:
    """Reads the progress of groups from the tables of a broker."""

    def __init__(
        self, queues: TopicQueueOffsets, offsets: ConsumerOffsets, clients: ClientTable
    ) -> None:
        self._queues = queues
        self._offsets = offsets
        self._clients = clients

    # Messages that are popped and not acknowledged lie before the offset, and may come again: they
    # are a part of the lag, and the difference to the pull offset.
    async def table(self, group: str, topics: Iterable[str]) -> dict[Queue, QueueProgress]:
        """The progress of a group in each queue of these topics, in turns of the event loop; a
        topic that the group has left is not in it."""
        online = self._clients.group(group)
        table: dict[Queue, QueueProgress] = {}
        for topic in topics:
            is_left = online is not None and online.subscriptions and not is_retry_topic(topic)
            if is_left and online is not None and topic not in online.subscriptions:
                continue
            async for queue in in_turns(self._queues.readable(topic)):
                offset = max(self._offsets.committed(group, topic, queue.queue_id) or 0, 0)
                pulled = self._offsets.pulled_at(group, topic, queue.queue_id)
                popped = self._offsets.popped.in_flight(group, topic, queue.queue_id)
                table[queue] = QueueProgress(
                    broker_offset=self._queues.high(queue),
                    consumer_offset=max(offset - popped, 0),
                    last_timestamp=max(self._queues.time_of(queue, offset - 1), 0),
                    pull_offset=max(offset, pulled or 0),
                )
        return table
