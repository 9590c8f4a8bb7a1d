"""Operators' requests to reset a group's offsets: to a time or an offset (222), or to the offsets
of another group (314).

The new offset is in force at once, and the group's held pulls end. Consumers get the new offset in
the replies to their pulls; their commits before that are ignored. If `server_side_reset` is off,
request 220 sends it to them as well, as older brokers do.
Source: AdminBrokerProcessor.resetOffsetInner and cloneGroupOffset, Broker2Client.resetOffset of
RocketMQ 5.x.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from sprocket.base.errors import (
    ConsumerOffline,
    GroupNotFound,
    InvalidParameter,
    SystemFailure,
    TopicNotFound,
)
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.members.callbacks import send_reset
from sprocket.broker.operate.listings import in_turns, listed
from sprocket.broker.operate.queues import TopicQueueOffsets
from sprocket.broker.pop.parts import PopParts
from sprocket.broker.reading.pull import PullRequests
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.queue_mappings import QueueMappings
from sprocket.protocol.bodies import Queue, ResetOffsetBody
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.offset import CloneOffset, ResetClientOffset, ResetOffset
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

#: Queues of which the log names the new offset.
_LOGGED_MAX = 64


class ResetRequests:
    """Resets and copies consumer offsets."""

    def __init__(
        self,
        queues: TopicQueueOffsets,
        offsets: ConsumerOffsets,
        *,
        groups: Groups,
        clients: ClientTable,
        pulls: PullRequests,
        pops: PopParts,
        mappings: QueueMappings,
        settings: BrokerSettings,
        save: Callable[[], Awaitable[None]],
    ) -> None:
        self._queues = queues
        self._offsets = offsets
        self._groups = groups
        self._clients = clients
        self._pulls, self._pops = pulls, pops
        self._mappings = mappings
        self._settings = settings
        self._save = save

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset,
            RequestCode.CLONE_GROUP_OFFSET: self.clone,
        }

    # All offsets are computed and checked before the first one changes, so a refused request
    # changes nothing. The members are notified first: if there are none, that is a refusal too. A
    # topic of 16,384 queues takes many turns of the loop.
    async def reset(self, command: Command, peer: Peer) -> Reply:
        """Resets a group to an offset or a time. The reply is sent after the offsets are saved.

        Raises:
            TopicNotFound, GroupNotFound: there is no such topic or group.
            InvalidParameter: the topic is static.
            SystemFailure: there is no such queue, or the offset is outside it.
            ConsumerOffline: consumers must be notified (`server_side_reset` is off) and none is
                online.
            StoreError, ClosedError: the offsets are set, but cannot be saved.
        """
        header = command.read(ResetOffset)
        if self._mappings.get(header.topic) is not None:
            raise InvalidParameter(
                f"{header.topic} is a static topic: this broker's queues hold only parts of it, so "
                "it cannot reset a group; consumers can seek"
            )
        queues = self._queues.readable(header.topic)
        if not queues:
            raise TopicNotFound(f"Topic {header.topic} does not exist")
        if self._groups.get(header.group) is None:
            raise GroupNotFound(f"Group {header.group} does not exist")
        if header.queue_id >= 0:
            queues = [queue for queue in queues if queue.queue_id == header.queue_id]
        if not queues:
            raise SystemFailure("No queues to reset.")
        wanted: dict[Queue, int] = {}
        async for queue in in_turns(queues):
            await self._queues.load_search(queue, header.timestamp)
            wanted[queue] = self._wanted(queue, header)
        is_by_callback = not self._settings.config.server_side_reset
        if is_by_callback:
            self._notify(header, wanted)
        await self._move(header.group, wanted, ends_held=not is_by_callback)
        logger.info(
            "%s resets %s in %s: %d queues, at first %s", peer.address, header.group, header.topic,
            len(wanted), {queue.queue_id: wanted[queue] for queue in queues[:_LOGGED_MAX]},
        )  # fmt: skip
        self._pops.end_held(header.topic)
        await self._save()
        return await listed(ResetOffsetBody(offset_table=wanted))

    def _wanted(self, queue: Queue, header: ResetOffset) -> int:
        low, high = self._queues.low(queue), self._queues.high(queue)
        if header.queue_id >= 0 and header.offset is not None and header.offset >= 0:
            wanted = header.offset
        elif header.timestamp < 0:
            wanted = high
        else:
            wanted = self._queues.offset_at(queue, header.timestamp)
        if not low <= wanted <= high:
            raise SystemFailure(f"Target offset {wanted} not in consume queue range [{low}-{high}]")
        if not self._settings.config.server_side_reset and not header.is_force:
            known = self._offsets.committed(header.group, queue.topic, queue.queue_id)
            return wanted if known is None else min(wanted, known)
        return wanted

    def _notify(self, header: ResetOffset, wanted: Mapping[Queue, int]) -> None:
        group = self._clients.group(header.group)
        if group is None:
            raise ConsumerOffline(
                f"Consumer not online, so can not reset offset, Group: {header.group} "
                f"Topic: {header.topic} Timestamp: {header.timestamp}"
            )
        sent = ResetClientOffset(topic=header.topic, group=header.group, timestamp=header.timestamp)
        send_reset(sent, wanted, group.members.values())

    async def _move(self, group: str, wanted: Mapping[Queue, int], *, ends_held: bool) -> None:
        async for queue, offset in in_turns(wanted.items()):
            topic, number = queue.topic, queue.queue_id
            self._offsets.reset(group, topic, queue_number=number, offset=offset)
            self._pops.forget_order(group, topic, number)
            if ends_held:
                self._pulls.end_held(group, topic, number)

    async def clone(self, command: Command, peer: Peer) -> Reply:
        """Copies the offsets of another group, in one topic or in all topics of that group.

        Topics that the other group no longer subscribes to are left out, unless the request
        includes them (`offline`). The reply is sent once the offsets are in the file.

        Raises:
            GroupNotFound: the group that gets the offsets does not exist and may not be created.
            StoreError, ClosedError: the offsets are copied, but cannot be saved.
        """
        header = command.read(CloneOffset)
        if self._groups.find(header.dest_group) is None:
            raise GroupNotFound(f"Group {header.dest_group} does not exist")
        source = self._clients.group(header.src_group)
        topics = [header.topic] if header.topic else self._offsets.topics_of(header.src_group)
        for topic in topics:
            is_known = self._queues.has(topic)
            if source is not None and source.subscriptions and not header.offline:
                is_known = is_known and topic in source.subscriptions
            if is_known:
                await self._copy(header, topic)
        await self._save()
        return Reply()

    async def _copy(self, header: CloneOffset, topic: str) -> None:
        known = dict(self._offsets.queues(header.src_group, topic))
        if self._clients.group(header.dest_group) is None:
            async for number, offset in in_turns(known.items()):
                self._offsets.put(header.dest_group, topic, queue_number=number, offset=offset)
            return
        wanted = {
            queue: known[queue.queue_id]
            for queue in self._queues.readable(topic)
            if queue.queue_id in known
        }
        await self._move(header.dest_group, wanted, ends_held=True)
