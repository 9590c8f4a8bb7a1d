"""Operators' requests about how far consumers are, and where they are to go on.

Source: AdminBrokerProcessor of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable

from sprocket.base.errors import GroupNotFound, SystemFailure, TopicNotFound
from sprocket.broker.clients import Clients
from sprocket.broker.dispatch import Answers
from sprocket.broker.groups import Groups
from sprocket.broker.offsets import ConsumerOffsets
from sprocket.broker.operate.queues import Queues
from sprocket.broker.pull import Pulls
from sprocket.protocol.bodies import (
    ConsumeStats,
    ConsumeStatsList,
    OffsetTable,
    Progress,
    Queue,
    ResetOffsetBody,
)
from sprocket.protocol.codes import RequestCode
from sprocket.protocol.command import Command, Reply
from sprocket.protocol.requests.group import ConsumeStatsOf
from sprocket.protocol.requests.offset import CloneOffset, ResetOffset
from sprocket.remoting.transport import Peer


class ProgressRequests:
    """Shows, sets and copies consumer offsets."""

    def __init__(
        self,
        queues: Queues,
        offsets: ConsumerOffsets,
        *,
        groups: Groups,
        clients: Clients,
        pulls: Pulls,
        address: str,
    ) -> None:
        self._queues = queues
        self._offsets = offsets
        self._groups = groups
        self._clients = clients
        self._pulls = pulls
        self._address = address

    def answers(self) -> Answers:
        """By request code."""
        return {
            RequestCode.GET_CONSUME_STATS: self.stats,
            RequestCode.GET_BROKER_CONSUME_STATS: self.every_stats,
            RequestCode.GET_ALL_CONSUMER_OFFSET: self.every_offset,
            RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: self.reset,
            RequestCode.CLONE_GROUP_OFFSET: self.clone,
        }

    def stats(self, command: Command, peer: Peer) -> Reply:
        """How far a group is in each queue of its topics, or of some."""
        header = command.read(ConsumeStatsOf)
        group = header.consumer_group
        if header.topic:
            topics = [header.topic]
        elif header.topic_list:
            topics = [name for name in header.topic_list.split(";") if name]
        else:
            topics = self._offsets.topics_of(group)
        return Reply(body=ConsumeStats(offset_table=self._table(group, topics)).encode())

    def every_stats(self, command: Command, peer: Peer) -> Reply:
        """How far all groups are."""
        listed, behind = [], 0
        for group in self._groups.by_name:
            stats = [
                ConsumeStats(offset_table=self._table(group, [topic]))
                for topic in self._offsets.topics_of(group)
            ]
            listed.append({group: stats})
            behind += sum(
                progress.broker_offset - progress.consumer_offset
                for each in stats
                for progress in each.offset_table.values()
            )
        answer = ConsumeStatsList(
            broker_addr=self._address, consume_stats_list=listed, total_diff=behind
        )
        return Reply(body=answer.encode())

    def _table(self, group: str, topics: Iterable[str]) -> dict[Queue, Progress]:
        online = self._clients.group(group)
        table: dict[Queue, Progress] = {}
        for topic in topics:
            if online is not None and online.subscriptions and topic not in online.subscriptions:
                continue
            for queue in self._queues.readable(topic):
                offset = max(self._offsets.committed(group, topic, queue.queue_id) or 0, 0)
                pulled = self._offsets.pulled_at(group, topic, queue.queue_id)
                table[queue] = Progress(
                    broker_offset=self._queues.high(queue),
                    consumer_offset=offset,
                    last_timestamp=max(self._queues.time_of(queue, offset - 1), 0),
                    pull_offset=offset if pulled is None else pulled,
                )
        return table

    def every_offset(self, command: Command, peer: Peer) -> Reply:
        """All committed offsets, as slaves copy them."""
        state = self._offsets.to_json()
        table = OffsetTable(
            data_version=self._offsets.version,
            group_topic_map=state["groupTopicMap"],
            offset_table=state["offsetTable"],
        )
        return Reply(body=table.encode())

    def reset(self, command: Command, peer: Peer) -> Reply:
        """Sends a group to an offset or a time. Its consumers hear of it by their next pulls.

        Raises:
            TopicNotFound, GroupNotFound: there is no such topic or group.
            SystemFailure: the offset lies outside the queue.
        """
        header = command.read(ResetOffset)
        group, topic = header.group, header.topic
        queues = self._queues.readable(topic)
        if not queues:
            raise TopicNotFound(f"Topic {topic} does not exist")
        if self._groups.get(group) is None:
            raise GroupNotFound(f"Group {group} does not exist")
        if header.queue_id >= 0:
            queues = [queue for queue in queues if queue.queue_id == header.queue_id]
        wanted: dict[Queue, int] = {}
        for queue in queues:
            low, high = self._queues.low(queue), self._queues.high(queue)
            if header.queue_id >= 0 and header.offset is not None and header.offset >= 0:
                wanted[queue] = header.offset
            elif header.timestamp < 0:
                wanted[queue] = high
            else:
                wanted[queue] = self._queues.offset_at(queue, header.timestamp)
            if not low <= wanted[queue] <= high:
                raise SystemFailure(
                    f"Target offset {wanted[queue]} not in consume queue range [{low}-{high}]"
                )
        for queue, offset in wanted.items():
            self._offsets.reset(group, topic, queue_number=queue.queue_id, offset=offset)
            self._pulls.end_held(group, topic, queue.queue_id)
        return Reply(body=ResetOffsetBody(offset_table=wanted).encode())

    def clone(self, command: Command, peer: Peer) -> Reply:
        """Gives a group the offsets of another."""
        header = command.read(CloneOffset)
        self._offsets.copy_group(header.src_group, header.dest_group, header.topic)
        return Reply()
