"""Offsets of a consumer group at brokers: committed ones, and where a new group starts.

A group without a committed offset in a queue starts as configured: at the `first` message, at the
`last` one (only messages that are sent from now on), or at a time. Java's broker returns offset 0
to a new group as long as the queue still has its first message, so "last" would read the whole
history. Our requests tell it not to, so "last" keeps its meaning.

A queue may appear after the consumer has started: its topic is new, or its broker comes back. With
"last" such a queue is read from the time of the consumer's start, so that the first messages of a
new topic are not skipped.

While a broker has no master, its slave with the lowest number is asked, as by Java clients. What it
knows may be some seconds old. That a slave knows no offset does not mean that there is none.

Source: RebalancePushImpl.computePullFromWhere, RemoteBrokerOffsetStore of RocketMQ 5.x.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ConnectFailed, QueryNotFound, SprocketError, UsageError
from sprocket.client.base.arguments import moment_ms
from sprocket.client.base.world import CLOCKS_APART_MS
from sprocket.client.session.session import Session
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.offset import (
    MaxOffset,
    MinOffset,
    OffsetReply,
    QueryOffset,
    SearchOffset,
    UpdateOffset,
)

#: Where a group starts: `"last"`, `"first"`, or a time (a number is ms since 1970 UTC).
Start = Literal["last", "first"] | datetime | int


@dataclass(frozen=True, slots=True)
class StartPosition:
    """A valid `Start`.

    Attributes:
        where: its name in RocketMQ, as in heartbeats.
        at_ms: the time, in ms since 1970 UTC, for a start at a time.
    """

    where: str
    at_ms: int = 0

    @property
    def is_last(self) -> bool:
        """Whether the group starts with messages that are stored from now on."""
        return self.where == "CONSUME_FROM_LAST_OFFSET"

    @property
    def is_first(self) -> bool:
        """Whether the group starts with the oldest message of the queue."""
        return self.where == "CONSUME_FROM_FIRST_OFFSET"

    @classmethod
    def of(cls, start: Start) -> StartPosition:
        """Converts the user's argument.

        Raises:
            UsageError: it has none of the allowed forms.
        """
        if start == "last":
            return cls("CONSUME_FROM_LAST_OFFSET")
        if start == "first":
            return cls("CONSUME_FROM_FIRST_OFFSET")
        if isinstance(start, datetime):
            return cls("CONSUME_FROM_TIMESTAMP", moment_ms(start))
        if isinstance(start, int) and not isinstance(start, bool) and 0 <= start < 2**63:
            return cls("CONSUME_FROM_TIMESTAMP", moment_ms(start))
        raise UsageError(f"a start is 'last', 'first', a datetime or ms since 1970, not {start!r}")


class BrokerOffsets:
    """Reads and commits offsets at brokers.

    All methods raise `TransportError` if the broker does not reply in time, and `ReplyError` if it
    refuses.

    Args:
        session: connections and routes.
        group: the consumer group.
        timeout_ms: how long one request may take.
        is_patient: whether a request that fails is repeated until then, at the next master too.
    """

    def __init__(
        self, session: Session, group: str, timeout_ms: int, *, is_patient: bool = False
    ) -> None:
        self._session = session
        self._is_patient = is_patient
        self._group = group
        self._timeout_ms = timeout_ms

    def place(self, queue: QueueId) -> str:
        """The address of the broker that is asked about a queue now; empty if none is known."""
        where = self._session.routes.nearest(queue.place, MASTER)
        return "" if where is None else where[1]

    async def committed(self, queue: QueueId) -> QueueOffset | None:
        """Returns the group's committed offset, or None if it has none."""
        header = QueryOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.number,
            set_zero_if_not_found=False,
            bname=queue.broker,
        )
        try:
            return QueueOffset(max(0, await self._offset(queue, header)))
        except QueryNotFound:
            if self._session.routes.address(queue.place) is None:
                raise ConnectFailed(
                    f"the position in {queue} is not known while {queue.broker} has no master"
                ) from None
            return None

    async def commit(self, queue: QueueId, offset: int) -> None:
        """Commits the offset of the first message that the group has not consumed.

        Raises:
            GroupNotFound: the broker does not know the group, because it has never pulled there.
        """
        header = UpdateOffset(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.number,
            commit_offset=offset,
            bname=queue.broker,
        )
        await self._ask(queue, header)

    async def first(self, queue: QueueId) -> QueueOffset:
        """Returns the offset of the oldest message in the queue."""
        header = MinOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)
        return await self._offset(queue, header)

    async def end(self, queue: QueueId) -> QueueOffset:
        """Returns the offset after the newest message."""
        header = MaxOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)
        return await self._offset(queue, header)

    async def at(self, queue: QueueId, at_ms: int) -> QueueOffset:
        """Returns the offset of the first message stored at `at_ms` or later, else the end."""
        header = SearchOffset(
            topic=queue.topic, queue_id=queue.number, timestamp=at_ms, bname=queue.broker
        )
        return await self._offset(queue, header)

    async def beginning(
        self, queue: QueueId, beginning: StartPosition, *, began_ms: int, is_late: bool
    ) -> QueueOffset:
        """Returns the offset at which a group without a committed one starts.

        Args:
            began_ms: when the consumer started, in ms since 1970 UTC.
            is_late: whether the queue appeared after that.
        """
        if beginning.is_first or is_retry_topic(queue.topic):
            return await self.first(queue)
        if beginning.is_last:
            if is_late:
                return await self.at(queue, began_ms - CLOCKS_APART_MS)
            return await self.end(queue)
        return await self.at(queue, beginning.at_ms)

    async def _offset(self, queue: QueueId, header: Header) -> QueueOffset:
        reply = await self._ask(queue, header)
        return QueueOffset(reply.offset)

    async def _ask(self, queue: QueueId, header: Header) -> OffsetReply:
        deadline = Deadline.after_ms(self._timeout_ms)
        session = self._session

        async def ask(address: str) -> Command:
            return await session.pool.ask(address, header, deadline=deadline)

        where = session.routes.nearest(queue.place, MASTER)
        if self._is_patient and (where is None or where[0] == MASTER):
            reply = await session.search.call(queue.place, queue.topic, ask, deadline)
        else:
            try:
                reply = await ask(session.address_of(queue) if where is None else where[1])
            except SprocketError as error:
                session.search.failed(queue.place, error, queue.topic)
                raise
        return reply.read(OffsetReply) if header.reply is not None else OffsetReply(offset=0)
