"""Operators' requests for the entries of a consume queue (321).

Source: AdminBrokerProcessor.queryConsumeQueue of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.base.errors import SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.tables.clients import ClientTable
from sprocket.message.hashing import tag_code
from sprocket.message.message import StoredMessage
from sprocket.message.record import scan
from sprocket.protocol.bodies import ConsumeQueueBody, QueueEntry, SubscriptionData
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.query import QueryConsumeQueue
from sprocket.remoting.transport import Peer
from sprocket.store.reading.queue_reader import ReadStatus
from sprocket.store.store import Store

#: Entries in one reply, and bytes of records in one read.
_COUNT_MAX = 1000
_BYTES_MAX = 1 << 20


class EntryRequests:
    """Shows the entries of a consume queue."""

    def __init__(self, store: Store, clients: ClientTable) -> None:
        self._store = store
        self._clients = clients

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {RequestCode.QUERY_CONSUME_QUEUE: self.show}

    def show(self, command: Command, peer: Peer) -> Reply:
        """Entries from an index on, and a group's subscription to the topic.

        Raises:
            SystemFailure: there is no such queue.
        """
        header = command.read(QueryConsumeQueue)
        topic, number = header.topic, header.queue_id
        if number not in self._store.queues().get(topic, ()):
            raise SystemFailure(f"{number}@{topic} is not exist!")
        entries = [_entry(message) for message in self._messages(header)]
        subscription: SubscriptionData | None = None
        filter_data: str | None = None
        if header.consumer_group is not None:
            group = self._clients.group(header.consumer_group)
            subscription = None if group is None else group.subscriptions.get(topic)
            is_there = subscription is not None
            filter_data = "null" if is_there else f"{header.consumer_group}@{topic} is not online!"
        answer = ConsumeQueueBody(
            filter_data=filter_data,
            max_queue_index=self._store.max_offset(topic, number),
            min_queue_index=self._store.min_offset(topic, number),
            queue_data=entries,
            subscription_data=subscription,
        )
        return Reply(body=answer.encode())

    def _messages(self, header: QueryConsumeQueue) -> Iterator[StoredMessage]:
        left = min(header.count, _COUNT_MAX)
        offset = header.index
        while left > 0:
            read = self._store.read(
                header.topic, header.queue_id, offset, count_max=left, bytes_max=_BYTES_MAX
            )
            if read.status is not ReadStatus.FOUND:
                return
            for part in read.parts:
                yield from scan(part)
            left -= read.count
            offset = read.next_offset


def _entry(message: StoredMessage) -> QueueEntry:
    return QueueEntry(
        physic_offset=message.log_offset,
        physic_size=message.record_bytes,
        tags_code=tag_code(message.tag),
    )
