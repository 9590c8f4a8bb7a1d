"""Positions of a consumer group: asked of brokers, committed at brokers, and where to begin.

A group that has committed nothing for a queue begins where it was told: at the `first` message, at
the `last` (only what is sent from now on), or at a time. Java's broker answers 0 to a new group as
long as the queue still has its first message, which makes "from last" read all history; we ask it
not to, so the promise is kept.

A queue that appears after the consumer began (a topic made later, a broker that comes back) holds
nothing but newer messages as far as "last" is concerned: there it begins at the time it began
itself, so that the first messages of a new topic are not skipped.

Source: RebalancePushImpl.computePullFromWhere, RemoteBrokerOffsetStore of RocketMQ 5.x.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sprocket.base.deadline import Deadline
from sprocket.base.errors import QueryNotFound, UsageError
from sprocket.client.session.session import Session
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.command import Header
from sprocket.protocol.requests.offset import (
    MaxOffset,
    MinOffset,
    OffsetReply,
    QueryOffset,
    SearchOffset,
    UpdateOffset,
)

#: Where a group begins: `"last"`, `"first"`, or a moment (ms since 1970 UTC if it is a number).
Start = Literal["last", "first"] | datetime | int

#: How far the broker's clock may be ahead of ours before a message of a new queue is missed.
_CLOCKS_APART_MS = 10_000


@dataclass(frozen=True, slots=True)
class StartPosition:
    """A checked `Start`.

    Attributes:
        where: RocketMQ's word for it, as heartbeats say it.
        at_ms: the moment, for a start at a time.
    """

    where: str
    at_ms: int = 0

    @property
    def is_last(self) -> bool:
        """Whether only what comes from now on counts."""
        return self.where == "CONSUME_FROM_LAST_OFFSET"

    @property
    def is_first(self) -> bool:
        """Whether everything counts that is still there."""
        return self.where == "CONSUME_FROM_FIRST_OFFSET"

    @classmethod
    def of(cls, start: Start) -> StartPosition:
        """Reads what a user wrote.

        Raises:
            UsageError: it is none of the allowed forms.
        """
        if start == "last":
            return cls("CONSUME_FROM_LAST_OFFSET")
        if start == "first":
            return cls("CONSUME_FROM_FIRST_OFFSET")
        if isinstance(start, datetime):
            return cls("CONSUME_FROM_TIMESTAMP", int(start.timestamp() * 1000))
        if isinstance(start, int) and not isinstance(start, bool) and 0 <= start < 2**63:
            return cls("CONSUME_FROM_TIMESTAMP", start)
        raise UsageError(f"a start is 'last', 'first', a datetime or ms since 1970, not {start!r}")


class BrokerOffsets:
    """Asks and tells brokers about positions.

    All methods raise `TransportError` if the broker does not answer in time, and `ReplyError` if
    it refuses.

    Args:
        session: connections and routes.
        group: the consumer group.
        timeout_ms: how long one question may take.
    """

    def __init__(self, session: Session, group: str, timeout_ms: int) -> None:
        self._session = session
        self._group = group
        self._timeout_ms = timeout_ms

    async def committed(self, queue: QueueId) -> QueueOffset | None:
        """The group's committed offset, or None if it has none."""
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
            return None

    async def commit(self, queue: QueueId, offset: int) -> None:
        """Commits: the group goes on at `offset`, the first message it has not consumed.

        Raises:
            GroupNotFound: the broker does not know the group: nobody has pulled for it yet.
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
        """The offset of the first message that is still there."""
        header = MinOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)
        return await self._offset(queue, header)

    async def end(self, queue: QueueId) -> QueueOffset:
        """The offset after the last message."""
        header = MaxOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)
        return await self._offset(queue, header)

    async def at(self, queue: QueueId, at_ms: int) -> QueueOffset:
        """The offset of the first message stored at `at_ms` or later; the end if there is none."""
        header = SearchOffset(
            topic=queue.topic, queue_id=queue.number, timestamp=at_ms, bname=queue.broker
        )
        return await self._offset(queue, header)

    async def beginning(
        self, queue: QueueId, beginning: StartPosition, *, began_ms: int, is_late: bool
    ) -> QueueOffset:
        """Where a group begins that has committed nothing.

        Args:
            began_ms: when the consumer began.
            is_late: whether the queue appeared after that.
        """
        if beginning.is_first or is_retry_topic(queue.topic):
            return await self.first(queue)
        if beginning.is_last:
            if is_late:
                return await self.at(queue, began_ms - _CLOCKS_APART_MS)
            return await self.end(queue)
        return await self.at(queue, beginning.at_ms)

    async def _offset(self, queue: QueueId, header: Header) -> QueueOffset:
        reply = await self._ask(queue, header)
        return QueueOffset(reply.offset)

    async def _ask(self, queue: QueueId, header: Header) -> OffsetReply:
        deadline = Deadline.after_ms(self._timeout_ms)
        address = self._session.address(queue.broker)
        reply = await self._session.pool.ask(address, header, deadline=deadline)
        return reply.read(OffsetReply) if header.reply is not None else OffsetReply(offset=0)
