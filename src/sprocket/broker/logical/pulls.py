"""Pulls from logical queues: from a queue of this broker, or of the one that holds an older part.

Source: PullMessageProcessor.rewriteRequestForStaticTopic of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec.structs import replace

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ReplyError, SystemFailure
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.logical.mapped import MappedQueues
from sprocket.broker.logical.parts import PartRequests
from sprocket.broker.logical.pulled import READ, PartRead, shown
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.clientcore.logical_queues import ends, part_at, physical
from sprocket.protocol.bodies import MappingItem
from sprocket.protocol.codes import RequestCode, ResponseCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.pull import (
    COMMIT_OFFSET,
    SUSPEND,
    LitePullMessage,
    PullMessage,
    PullReply,
)
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.transport import Peer

#: How long a pull is held at most while it is not decided where its queue goes on, ms.
_UNDECIDED_MS = 1_000


class LogicalPulls:
    """Answers pulls from static topics."""

    def __init__(
        self,
        queues: MappedQueues,
        parts: PartRequests,
        mappings: QueueMappings,
        offsets: ConsumerOffsets,
    ) -> None:
        self._queues = queues
        self._parts = parts
        self._mappings = mappings
        self._offsets = offsets

    def around(self, inner: Endpoints) -> Endpoints:
        """The endpoints of pulls, for static topics and for all others."""
        kinds = {
            RequestCode.PULL_MESSAGE: PullMessage,
            RequestCode.LITE_PULL_MESSAGE: LitePullMessage,
        }
        return {
            code: self._queues.routed(inner[code], kind, self._pull) for code, kind in kinds.items()
        }

    def _pull(self, header: PullMessage, command: Command, peer: Peer) -> EventualResponse:
        parts = list(self._queues.parts(header.topic, header.queue_id))
        item = part_at(parts, header.queue_offset)
        if item is None:
            raise SystemFailure(f"no part of {header.topic}-{header.queue_id} can be read yet")
        if header.sys_flag & COMMIT_OFFSET and header.commit_offset >= 0:
            self._commit(header, parts, peer)
        read = PartRead(parts, item, physical(item, header.queue_offset))
        asked = replace(
            header,
            queue_id=item.queue_id,
            queue_offset=read.offset,
            sys_flag=header.sys_flag & ~COMMIT_OFFSET & (~0 if read.is_last else ~SUSPEND),
        )
        if ends(item):
            left = max(1, item.end_offset - read.offset)
            asked = replace(asked, max_msg_nums=min(header.max_msg_nums, left))
        if not read.is_last:
            return self._older(read, asked, header, command, peer)
        outcome = self._parts.local(asked, command, peer)
        return _shown(read, outcome) if isinstance(outcome, Reply) else self._later(read, outcome)

    def _commit(self, header: PullMessage, parts: list[MappingItem], peer: Peer) -> None:
        """Commits the offset that a pull brings, if this broker holds its part: the consumer
        commits it again by a request of its own."""
        item = part_at(parts, header.commit_offset)
        if item is not None and self._parts.is_here(item):
            self._offsets.commit(
                header.consumer_group,
                header.topic,
                queue_number=item.queue_id,
                offset=max(0, physical(item, header.commit_offset)),
                address=peer.address,
            )

    async def _later(self, read: PartRead, outcome: Awaitable[Reply]) -> Reply:
        return _shown(read, await outcome)

    # A new master shows less than it has until it knows where its queues end, so a part is over
    # only when its broker says where it ends: else the messages between would be skipped.
    async def _older(
        self, read: PartRead, asked: PullMessage, header: PullMessage, command: Command, peer: Peer
    ) -> Reply:
        """A pull from a part to which nothing is added any more."""
        moves = self._mappings.moves.value
        reply = await self._parts.ask(read.item, asked, command, peer)
        if reply.code not in READ or not isinstance(reply.header, PullReply):
            raise ReplyError.of(reply.code or ResponseCode.SYSTEM_ERROR, reply.remark or "")
        if read.is_over(reply.header, reply.code):
            end = await self._parts.end_of(read.item, header.topic, command, peer)
            reply.header = replace(reply.header, max_offset=max(end, reply.header.max_offset))
        answered = _shown(read, reply)
        if answered.code == ResponseCode.PULL_NOT_FOUND and header.sys_flag & SUSPEND:
            wait_ms = min(header.suspend_timeout_millis, _UNDECIDED_MS)
            await self._mappings.moves.reach(moves + 1, Deadline.after_ms(wait_ms))
        return answered


def _shown(read: PartRead, reply: Reply) -> Reply:
    """The reply with logical offsets; unchanged if it is an error."""
    if reply.code not in READ or not isinstance(reply.header, PullReply):
        return reply
    header, code = shown(read, reply.header, reply.code)
    return Reply(header, reply.body, code, reply.remark)
