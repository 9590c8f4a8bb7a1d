"""Finds single messages: by log offset (33), by key or unique key (12).

Source: QueryMessageProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from sprocket.base.errors import OffsetOutOfRange, QueryNotFound, SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.query import QueryMessage, QueryReply, ViewMessage
from sprocket.remoting.transport import Peer
from sprocket.store.store import Store

#: Messages and bytes in one reply; a single larger message is sent alone.
#: Source: maxMsgsNumBatch.
_COUNT_MAX = 64
_BYTES_MAX = 8 << 20


class QueryRequests:
    """Answers queries for messages."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.VIEW_MESSAGE_BY_ID: self.view,
            RequestCode.QUERY_MESSAGE: self.by_key,
        }

    async def view(self, command: Command, peer: Peer) -> Reply:
        """The record that begins at a log offset.

        Raises:
            SystemFailure: no record begins there.
        """
        header = command.read(ViewMessage)
        await self._store.cold.load_record(header.offset)
        try:
            record = self._store.lookup(header.offset)
        except OffsetOutOfRange:
            record = None
        if record is None or header.offset + len(record) > self._store.readable_end:
            raise SystemFailure(f"can not find message by the offset, {header.offset}")
        return Reply(body=record)

    async def by_key(self, command: Command, peer: Peer) -> Reply:
        """Messages of a topic that have a key, stored between two times, newest first.

        Raises:
            QueryNotFound: there are no such messages.
        """
        header = command.read(QueryMessage)
        count_max = min(header.max_num, _COUNT_MAX)
        found: list[memoryview] = []
        if header.key and count_max > 0:
            await self._store.cold.load_found(
                header.topic,
                header.key,
                count_max=count_max,
                begin_ms=header.begin_timestamp,
                end_ms=header.end_timestamp,
            )
            found = self._store.find(
                header.topic,
                header.key,
                count_max=count_max,
                begin_ms=header.begin_timestamp,
                end_ms=header.end_timestamp,
                end=self._store.readable_end,
            )
        if not found:
            raise QueryNotFound("can not find message, maybe time range not correct")
        end_ms, end_offset = self._store.index_end
        reply = QueryReply(
            index_last_update_timestamp=end_ms, index_last_update_phyoffset=end_offset
        )
        return Reply(reply, _within(found))


def _within(found: list[memoryview]) -> list[memoryview]:
    """As many records as one reply may hold, at least one."""
    total = 0
    for count, record in enumerate(found):
        total += len(record)
        if total > _BYTES_MAX and count:
            return found[:count]
    return found
