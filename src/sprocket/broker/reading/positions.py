"""Requests for offsets: a group's committed offset (14, 15), the first and last offset of a queue
(30, 31, 32), and the offset at a time (29).

Source: ConsumerManageProcessor, AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sprocket.base.errors import (
    GroupNotFound,
    InvalidParameter,
    QueryNotFound,
    ServiceNotAvailable,
    TopicNotFound,
)
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.topics import Topics
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import (
    NO_OFFSET,
    UPPER,
    EarliestTime,
    MaxOffset,
    MinOffset,
    OffsetReply,
    QueryOffset,
    SearchOffset,
    TimestampReply,
    UpdateOffset,
)
from sprocket.remoting.transport import Peer
from sprocket.store.reading.by_time import Boundary
from sprocket.store.store import Store


class OffsetRequests:
    """Answers requests for offsets.

    Args:
        is_slave: whether the broker is a slave now.
        settling: see `Replication`.
    """

    def __init__(
        self,
        store: Store,
        offsets: ConsumerOffsets,
        *,
        topics: Topics,
        groups: Groups,
        clients: ClientTable,
        is_slave: Callable[[], bool],
        settling: Callable[[], Awaitable[bool] | None],
    ) -> None:
        self._settling = settling
        self._is_slave = is_slave
        self._store = store
        self._offsets = offsets
        self._topics = topics
        self._groups = groups
        self._clients = clients

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.QUERY_CONSUMER_OFFSET: self.query,
            RequestCode.UPDATE_CONSUMER_OFFSET: self.update,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self.search,
            RequestCode.GET_MAX_OFFSET: self.maximum,
            RequestCode.GET_MIN_OFFSET: self.minimum,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self.earliest,
        }

    def query(self, command: Command, peer: Peer) -> Reply:
        """A group's committed offset.

        A group without one gets 0 if the queue has messages and still begins at 0, unless the
        client asks not to; for such clients the start that they configure applies.

        Raises:
            QueryNotFound: the group has no offset in the queue.
        """
        header = command.read(QueryOffset)
        self._groups.find(header.consumer_group)
        group, topic, number = header.consumer_group, header.topic, header.queue_id
        offset = self._offsets.committed(group, topic, number)
        if offset is not None and offset >= 0:
            self._offsets.note_query(group, topic, queue_number=number, address=peer.address)
            return _offset(offset)
        if header.set_zero_if_not_found is False:
            raise QueryNotFound("Not found, do not set to zero, maybe this group boot first")
        low = self._store.min_offset(header.topic, header.queue_id)
        if low == 0 and self._store.max_offset(header.topic, header.queue_id) > 0:
            return _offset(0)
        raise QueryNotFound("Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")

    def update(self, command: Command, peer: Peer) -> Reply:
        """Commits a group's offset, in a queue of the topic or in one that still has messages.

        Java takes commits to any queue. Here they are refused, since each commit is kept in memory
        and in every save of the table. An offset beyond the end is taken: the group knows best.
        At a slave it is taken as the end: the messages before it were read at a master and may be
        lost with it, and whoever promotes the slave would have the group skip others.

        Raises:
            GroupNotFound, TopicNotFound: there is no such group or topic.
            InvalidParameter: the offset is missing or below 0, or there is no such queue.
        """
        header = command.read(UpdateOffset)
        group, topic = header.consumer_group, header.topic
        if self._groups.find(group) is None:
            raise GroupNotFound(f"Group {group} not exist!")
        config = self._topics.get(topic)
        if config is None:
            raise TopicNotFound(f"Topic {topic} not exist!")
        if header.commit_offset is None:
            raise InvalidParameter(f"Offset is null, topic is {topic}")
        is_taken_back = header.commit_offset == NO_OFFSET and header.lo is False
        if (header.commit_offset < 0 and not is_taken_back) or header.queue_id < 0:
            raise InvalidParameter(
                f"offset {header.commit_offset} of queue {header.queue_id} cannot be"
            )
        # The number of queues may have been lowered while members still consume the others.
        queues = max(config.read_queue_nums, config.write_queue_nums)
        if header.queue_id >= queues and not self._store.stored.max_offset(topic, header.queue_id):
            raise InvalidParameter(
                f"queue {header.queue_id} of topic {topic} does not exist, it has {queues} queues"
            )
        offset = header.commit_offset
        if self._is_slave():
            offset = min(offset, self._store.stored.max_offset(topic, header.queue_id))
        was_taken = self._offsets.commit(
            group,
            topic,
            queue_number=header.queue_id,
            offset=offset,
            address=peer.address,
            is_member=self._clients.is_member(group, peer),
        )
        return Reply(remark=None if was_taken else "Offset has been previously reset")

    async def search(self, command: Command, peer: Peer) -> Reply:
        """The offset at a time."""
        header = command.read(SearchOffset)
        boundary = Boundary.UPPER if header.boundary_type == UPPER else Boundary.LOWER
        # The last message at or before a time is found as the one before the first later message.
        first_ms = header.timestamp + (boundary is Boundary.UPPER)
        await self._store.cold.load_search(header.topic, header.queue_id, first_ms)
        return _offset(
            self._store.offset_at_time(header.topic, header.queue_id, header.timestamp, boundary)
        )

    def maximum(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """The offset that the next message of a queue gets; 0 if there is no such queue.

        Raises:
            ServiceNotAvailable: a new master does not know in time what readers have seen before.
        """
        header = command.read(MaxOffset)
        settling = self._settling()
        return self._maximum(header) if settling is None else self._settled(settling, header)

    def _maximum(self, header: MaxOffset) -> Reply:
        return _offset(self._store.max_offset(header.topic, header.queue_id))

    async def _settled(self, settling: Awaitable[bool], header: MaxOffset) -> Reply:
        if not await settling:
            raise ServiceNotAvailable(
                "this broker is a new master and does not know yet where its queues end: its "
                "in-sync set has not confirmed what it began with"
            )
        return self._maximum(header)

    def minimum(self, command: Command, peer: Peer) -> Reply:
        """The offset of the first message that a queue still has; 0 if there is no such queue."""
        header = command.read(MinOffset)
        return _offset(self._store.min_offset(header.topic, header.queue_id))

    async def earliest(self, command: Command, peer: Peer) -> Reply:
        """When the first message of a queue was stored, ms since 1970; -1 if there is none."""
        header = command.read(EarliestTime)
        low = self._store.min_offset(header.topic, header.queue_id)
        await self._store.cold.load_time(header.topic, header.queue_id, low)
        timestamp = self._store.time_of(header.topic, header.queue_id, low)
        return Reply(TimestampReply(timestamp=timestamp))


def _offset(offset: int) -> Reply:
    return Reply(OffsetReply(offset=offset))
