"""Operators' requests for consumer progress.

Source: AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable

from sprocket.base.deadline import loop_ms
from sprocket.base.errors import SystemBusy
from sprocket.broker.dispatch import Endpoints
from sprocket.broker.operate.group_progress import GroupProgress
from sprocket.broker.operate.listings import in_turns, listed, listing
from sprocket.broker.operate.queues import TopicQueueOffsets
from sprocket.broker.tables.clients import ClientTable
from sprocket.broker.tables.groups import Groups
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.volumes import MINUTE, Volumes
from sprocket.message.offsets import LONG_MAX
from sprocket.protocol.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    CorrectionOffsets,
    OffsetTable,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.group import ConsumeStatsOf
from sprocket.protocol.requests.offset import QueryCorrectionOffset
from sprocket.remoting.transport import Peer

#: The most queues in a reply about all groups, some 20 MB.
_ROWS_MAX = 100_000


class ProgressRequests:
    """Shows consumer offsets and lag."""

    def __init__(
        self,
        queues: TopicQueueOffsets,
        offsets: ConsumerOffsets,
        *,
        groups: Groups,
        clients: ClientTable,
        volumes: Volumes,
        address: str,
    ) -> None:
        self._queues = queues
        self._offsets = offsets
        self._groups = groups
        self._progress = GroupProgress(queues, offsets, clients)
        self._volumes = volumes
        self._address = address

    def endpoints(self) -> Endpoints:
        """The endpoints, by request code."""
        return {
            RequestCode.GET_CONSUME_STATS: self.stats,
            RequestCode.GET_BROKER_CONSUME_STATS: self.every_stats,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self.every_offset,
            RequestCode.QUERY_CORRECTION_OFFSET: self.correction,
        }

    async def stats(self, command: Command, peer: Peer) -> Reply:
        """A group's progress in each queue of its topics, or of the topics requested."""
        header = command.read(ConsumeStatsOf)
        group = header.consumer_group
        if header.topic:
            topics = [header.topic]
        elif header.topic_list:
            topics = [name for name in header.topic_list.split(";") if name]
        else:
            topics = self._offsets.topics_of(group)
        for topic in topics:
            async for queue in in_turns(self._queues.readable(topic)):
                offset = self._offsets.committed(group, topic, queue.queue_id) or 0
                await self._queues.load_times(queue, offset - 1)
        stats = await self._stats(group, topics)
        async for queue in in_turns(stats.offset_table):
            self._offsets.note_query(
                group, queue.topic, queue_number=queue.queue_id, address=peer.address
            )
        return await listed(stats)

    async def every_stats(self, command: Command, peer: Peer) -> Reply:
        """The progress of all groups.

        Raises:
            SystemBusy: there are too many queues for one reply.
        """
        groups, behind, rows = [], 0, 0
        async for group in in_turns(list(self._groups.by_name), at_once=16):
            stats = []
            async for topic in in_turns(self._offsets.topics_of(group), at_once=64):
                stats.append(await self._stats(group, [topic]))
                table = stats[-1].offset_table
                behind += sum(each.broker_offset - each.consumer_offset for each in table.values())
                rows += len(table)
                if rows > _ROWS_MAX:
                    raise SystemBusy(f"all groups have more than {_ROWS_MAX} queues; ask for one")
            groups.append({group: stats})
        answer = ConsumeStatsList(
            broker_addr=self._address, consume_stats_list=groups, total_diff=behind
        )
        return await listed(answer)

    async def _stats(self, group: str, topics: Iterable[str]) -> ConsumeStats:
        table = await self._progress.table(group, topics)
        now_ms, rate = loop_ms(), 0.0
        for topic in {queue.topic for queue in table}:
            flow = self._volumes.of_group(group, topic)
            rate += 0.0 if flow is None else flow.in_last(MINUTE, now_ms).per_second
        return ConsumeStats(consume_tps=rate, offset_table=table)

    def every_offset(self, command: Command, peer: Peer) -> Reply | Awaitable[Reply]:
        """All committed offsets, in the form that slaves copy."""
        state = self._offsets.to_json()
        table = OffsetTable(
            data_version=self._offsets.version,
            group_topic_map=state["groupTopicMap"],
            offset_table=state["offsetTable"],
        )
        return listing(table)

    async def correction(self, command: Command, peer: Peer) -> Reply:
        """The lowest committed offset of all groups in each queue of a topic.

        Where the offset of `compare_group` is lower still, the reply has the largest long integer:
        there it needs no correction.
        """
        header = command.read(QueryCorrectionOffset)
        topic = header.topic or ""
        left_out = (header.filter_groups or "").split(",")
        lowest: dict[int, int] = {}
        for group in self._offsets.groups_of(topic):
            if group not in left_out:
                queues = list(self._offsets.queues(group, topic).items())
                async for number, offset in in_turns(queues):
                    lowest[number] = min(offset, lowest.get(number, offset))
        compared = self._offsets.queues(header.compare_group or "", topic)
        for number, offset in compared.items():
            if offset < lowest.get(number, offset):
                lowest[number] = LONG_MAX
        return await listed(CorrectionOffsets(correction_offsets=lowest))
