"""The offsets of groups in logical queues: committed and asked for.

A group's offset is kept where the part in which it lies is kept, as an offset of that queue; so
RocketMQ's brokers and ours can share a static topic. It is looked for from the newest part on.

A group that goes on to a newer part has done with the older ones, which get their ends as its
offsets: else it would seem to lag there for ever. One that goes back loses its offsets in the newer
ones, which would be found first.

Source: ConsumerManageProcessor of RocketMQ 5.3, where neither happens: a group cannot go back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from msgspec.structs import replace

from sprocket.base.errors import QueryNotFound, ReplyError, SystemFailure
from sprocket.broker.logical.mapped import MappedQueues
from sprocket.broker.logical.parts import PartRequests
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.clientcore.logical_queues import decided, logical, part_at, physical
from sprocket.protocol.bodies import MappingItem
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import NO_OFFSET, OffsetReply, QueryOffset, UpdateOffset
from sprocket.remoting.endpoints import EventualResponse
from sprocket.remoting.transport import Peer

#: Groups and queues whose newest part is remembered at most.
_REMEMBERED_MAX = 100_000
#: Instead of a generation, of a group that has committed nothing that is known.
_NOWHERE = -1


class LogicalGroupOffsets:
    """Answers queries and commits of groups in static topics."""

    def __init__(self, queues: MappedQueues, parts: PartRequests, offsets: ConsumerOffsets) -> None:
        self._queues = queues
        self._parts = parts
        self._offsets = offsets
        #: By group, topic and logical queue, the generation of the part of the last commit.
        self._last: dict[tuple[str, str, int], int] = {}

    def query(self, header: QueryOffset, command: Command, peer: Peer) -> EventualResponse:
        """A group's committed offset.

        Raises:
            QueryNotFound: it has none in any part.
        """
        parts = self._queues.parts(header.topic, header.queue_id)
        if len(parts) == 1 and parts[0].logic_offset == 0:
            return self._parts.local(replace(header, queue_id=parts[0].queue_id), command, peer)
        return self._newest(header, decided(parts), command, peer)

    async def _newest(
        self, header: QueryOffset, parts: Sequence[MappingItem], command: Command, peer: Peer
    ) -> Reply:
        asked = replace(header, set_zero_if_not_found=False)
        for item in reversed(parts):
            try:
                found: OffsetReply = await self._parts.asked(item, asked, command, peer)
            except QueryNotFound:
                continue
            return Reply(OffsetReply(offset=logical(item, found.offset)))
        raise QueryNotFound("Not found, maybe this group consumer boot first")

    def update(self, header: UpdateOffset, command: Command, peer: Peer) -> EventualResponse:
        """Commits a group's offset.

        Raises:
            SystemFailure: no part can be read yet.
            SprocketError: as the commit in a usual queue; or the broker of the part is away.
        """
        parts = self._queues.parts(header.topic, header.queue_id)
        offset = header.commit_offset
        if offset is None or offset < 0:  # which is refused as anywhere
            return self._parts.local(replace(header, queue_id=parts[-1].queue_id), command, peer)
        item = part_at(parts, offset)
        if item is None:
            raise SystemFailure(f"no part of {header.topic}-{header.queue_id} can be read yet")
        last = self._move(header, parts[-1], item)
        asked = replace(header, commit_offset=max(0, physical(item, offset)))
        outcome: Reply | Awaitable[Reply]
        if self._parts.is_here(item):
            local = replace(asked, queue_id=item.queue_id)
            outcome = self._parts.local(local, command, peer)
        else:
            outcome = self._parts.ask(item, asked, command, peer)
        if isinstance(outcome, Reply) and last == item.gen:
            return outcome
        earlier = [each for each in decided(parts) if last <= each.gen < item.gen]
        later = [each for each in decided(parts) if item.gen < each.gen <= last]
        return self._rest(outcome, asked, earlier, later, command, peer)

    def _move(self, header: UpdateOffset, lead: MappingItem, item: MappingItem) -> int:
        """Remembers in which part a group is now; returns the one in which it was."""
        group, topic = header.consumer_group, header.topic
        key = (group, topic, header.queue_id)
        last = self._last.get(key)
        if last is None:
            known = self._offsets.committed(group, topic, lead.queue_id)
            last = _NOWHERE if known is None or known < 0 else lead.gen
            if len(self._last) >= _REMEMBERED_MAX:
                self._last.clear()
        self._last[key] = item.gen
        return last

    async def _rest(
        self,
        outcome: Reply | Awaitable[Reply],
        asked: UpdateOffset,
        earlier: Sequence[MappingItem],
        later: Sequence[MappingItem],
        command: Command,
        peer: Peer,
    ) -> Reply:
        """Waits for the commit, and then sets the group's offsets in other parts."""
        reply = outcome if isinstance(outcome, Reply) else await outcome
        if reply.code:
            raise ReplyError.of(reply.code, reply.remark or "")

        async def passed(item: MappingItem) -> None:
            end = await self._parts.end_of(item, asked.topic, command, peer)
            await self._parts.ask(item, replace(asked, commit_offset=end), command, peer)

        async def forgotten(item: MappingItem) -> None:
            await self._parts.ask(item, replace(asked, commit_offset=NO_OFFSET), command, peer)

        # A broker that is away keeps what it has: that shows a lag, or brings messages again.
        await asyncio.gather(*map(passed, earlier), *map(forgotten, later), return_exceptions=True)
        return reply
