"""Requests for offsets of logical queues: the first and the last, and by time.

Source: AdminBrokerProcessor of RocketMQ 5.3. There the end of a queue whose newest part is not
decided is asked for in the wrong queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sprocket.base.errors import SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.logical.group_offsets import LogicalGroupOffsets
from sprocket.broker.logical.mapped import MappedQueues
from sprocket.broker.logical.parts import PartRequests
from sprocket.clientcore.logical_queues import decided, logical
from sprocket.protocol.bodies import MappingItem
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import (
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


class LogicalOffsets:
    """Answers requests for offsets in static topics."""

    def __init__(
        self, queues: MappedQueues, parts: PartRequests, groups: LogicalGroupOffsets
    ) -> None:
        self._queues = queues
        self._parts = parts
        self._groups = groups

    def around(self, inner: Endpoints) -> Endpoints:
        """The endpoints of requests for offsets, for static topics and for all others."""
        answers: dict[type[Any], Any] = {
            QueryOffset: self._groups.query,
            UpdateOffset: self._groups.update,
            SearchOffset: self._search,
            MaxOffset: self._maximum,
            MinOffset: self._minimum,
            EarliestTime: self._earliest,
        }
        routed = self._queues.routed
        return {
            kind.code: routed(inner[kind.code], kind, answer) for kind, answer in answers.items()
        }

    def _readable(self, header: Any) -> list[MappingItem]:
        """The parts that can be read, oldest first.

        Raises:
            NotLeaderForQueue: another broker leads the queue.
            SystemFailure: no part is decided.
        """
        found = decided(self._queues.parts(header.topic, header.queue_id))
        if not found:
            raise SystemFailure(f"no part of {header.topic}-{header.queue_id} can be read yet")
        return found

    async def _search(self, header: SearchOffset, command: Command, peer: Peer) -> Reply:
        parts = self._readable(header)
        if header.boundary_type == UPPER:
            return await self._last_until(header, parts, command, peer)
        for item in parts:
            found: OffsetReply = await self._parts.asked(item, header, command, peer)
            end = await self._parts.end_of(item, header.topic, command, peer)
            if found.offset < end or item is parts[-1]:
                return _offset(logical(item, found.offset))
        raise AssertionError("there is a part")

    async def _last_until(
        self, header: SearchOffset, parts: Sequence[MappingItem], command: Command, peer: Peer
    ) -> Reply:
        """The offset of the last message that was stored at a time or before."""
        first = EarliestTime(topic=header.topic, queue_id=0)
        for item in reversed(parts):
            began: TimestampReply = await self._parts.asked(item, first, command, peer)
            if 0 <= began.timestamp <= header.timestamp or item is parts[0]:
                found: OffsetReply = await self._parts.asked(item, header, command, peer)
                return _offset(logical(item, found.offset))
        raise AssertionError("there is a part")

    async def _maximum(self, header: MaxOffset, command: Command, peer: Peer) -> Reply:
        item = self._readable(header)[-1]
        return _offset(logical(item, await self._parts.end_of(item, header.topic, command, peer)))

    async def _minimum(self, header: MinOffset, command: Command, peer: Peer) -> Reply:
        parts = self._readable(header)
        for item in parts:
            found: OffsetReply = await self._parts.asked(item, header, command, peer)
            if item is parts[-1]:
                break
            if found.offset < await self._parts.end_of(item, header.topic, command, peer):
                break
        return _offset(logical(item, found.offset))

    async def _earliest(self, header: EarliestTime, command: Command, peer: Peer) -> Reply:
        found = TimestampReply(timestamp=-1)
        for item in self._readable(header):
            found = await self._parts.asked(item, header, command, peer)
            if found.timestamp >= 0:
                break
        return Reply(found)


def _offset(offset: int) -> Reply:
    return Reply(OffsetReply(offset=offset))
