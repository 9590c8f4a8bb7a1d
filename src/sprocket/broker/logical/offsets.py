"""Requests for offsets of logical queues: a group's, the first and the last, and by time.

A group's offset is kept where the part in which it lies is kept, as an offset of that queue; so
RocketMQ's brokers and ours can share a static topic. It is looked for from the newest part on.

Source: ConsumerManageProcessor and AdminBrokerProcessor of RocketMQ 5.3. There a group cannot go
back to an older part, since its offset in the newer one stays; and the end of a queue whose newest
part is not decided is asked for in the wrong queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from sprocket.base.errors import QueryNotFound, ReplyError, SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.logical.mapped import MappedQueues
from sprocket.broker.logical.parts import PartRequests
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.clientcore.logical_queues import decided, logical, part_at, physical
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
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.transport import Peer

#: Instead of an offset that a group has no more.
_NONE = -1


class LogicalOffsets:
    """Answers requests for offsets in static topics."""

    def __init__(self, queues: MappedQueues, parts: PartRequests, offsets: ConsumerOffsets) -> None:
        self._queues = queues
        self._parts = parts
        self._offsets = offsets

    def around(self, inner: Endpoints) -> Endpoints:
        """The endpoints of requests for offsets, for static topics and for all others."""
        answers: dict[type[Any], Any] = {
            QueryOffset: self._query,
            UpdateOffset: self._update,
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

    def _query(self, header: QueryOffset, command: Command, peer: Peer) -> EventualResponse:
        parts = self._queues.parts(header.topic, header.queue_id)
        if len(parts) == 1 and parts[0].logic_offset == 0:
            return self._parts.local(replace(header, queue_id=parts[0].queue_id), command, peer)
        return self._newest(header, command, peer)

    async def _newest(self, header: QueryOffset, command: Command, peer: Peer) -> Reply:
        asked = replace(header, set_zero_if_not_found=False)
        for item in reversed(self._readable(header)):
            try:
                found: OffsetReply = await self._parts.asked(item, asked, command, peer)
            except QueryNotFound:
                continue
            return _offset(logical(item, found.offset))
        raise QueryNotFound("Not found, maybe this group consumer boot first")

    def _update(self, header: UpdateOffset, command: Command, peer: Peer) -> EventualResponse:
        parts = self._queues.parts(header.topic, header.queue_id)
        offset = _NONE if header.commit_offset is None else header.commit_offset
        item = part_at(parts, offset) or parts[-1]
        if offset >= 0:
            offset = max(0, physical(item, offset))
            header = replace(header, commit_offset=offset)
        later = self._later_offsets(header, parts, item)
        if self._parts.is_here(item):
            asked = replace(header, queue_id=item.queue_id)
            outcome = self._parts.local(asked, command, peer)
            self._forget(header, later)
            return outcome
        return self._update_there(item, header, later, command, peer)

    async def _update_there(
        self,
        item: MappingItem,
        header: UpdateOffset,
        later: dict[int, int],
        command: Command,
        peer: Peer,
    ) -> Reply:
        reply = await self._parts.ask(item, header, command, peer)
        if reply.code:
            raise ReplyError.of(reply.code, reply.remark or "")
        self._forget(header, later)
        return reply

    # A group that goes back to an older part has an offset in the newer one still, which would be
    # found first. One that was committed meanwhile is newer than this request, and stays.
    def _later_offsets(
        self, header: UpdateOffset, parts: Sequence[MappingItem], item: MappingItem
    ) -> dict[int, int]:
        """The group's offsets in newer parts at this broker, by queue."""
        found = {}
        for part in parts:
            if part.gen > item.gen and self._parts.is_here(part):
                known = self._offsets.committed(header.consumer_group, header.topic, part.queue_id)
                if known is not None and known >= 0:
                    found[part.queue_id] = known
        return found

    def _forget(self, header: UpdateOffset, later: dict[int, int]) -> None:
        group, topic = header.consumer_group, header.topic
        for number, offset in later.items():
            if self._offsets.committed(group, topic, number) == offset:
                self._offsets.put(group, topic, queue_number=number, offset=_NONE)

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
