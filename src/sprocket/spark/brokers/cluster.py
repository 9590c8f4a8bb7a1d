"""What a planner asks the cluster: topics, queues and their offsets.

Blocking. Requests about many queues of one broker are pipelined.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, SprocketError, TransportError
from sprocket.clientcore.replies import read_pull
from sprocket.clientcore.witness import Witness
from sprocket.filter.tags import ALL, TagFilter
from sprocket.message.queue import QueueId
from sprocket.message.record import parse
from sprocket.protocol.bodies import TopicList
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.offset import (
    MaxOffset,
    MinOffset,
    OffsetReply,
    QueryOffset,
    SearchOffset,
    UpdateOffset,
)
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage
from sprocket.protocol.requests.route import TopicNames
from sprocket.spark.brokers.pool import ConnectionPool

#: A message may have 4 MiB, so only so many are asked for at once.
_SIGHTINGS_MAX = 8


class Sighting(NamedTuple):
    """What a queue has at an offset.

    Attributes:
        message: the message at that offset; None if there is none.
        first, end: the queue's first offset, and the one after its last.
    """

    message: Witness | None
    first: int
    end: int


class ClusterMetadata:
    """Requests to name servers and brokers.

    Args:
        pool: the connections; their owner closes them.
    """

    def __init__(self, pool: ConnectionPool) -> None:
        self._pool = pool

    @property
    def addresses(self) -> Mapping[str, str]:
        """By broker name, the address from which that broker is read."""
        return self._pool.addresses

    def topics(self) -> list[str]:
        """Names of all topics, sorted."""
        reply = self._pool.ask_nameservers(TopicNames())
        return sorted(set(TopicList.decode(reply.body).topic_list))

    def readable(self, topic: str) -> tuple[QueueId, ...]:
        """The topic's queues that can be read, sorted.

        Raises:
            RouteNotFound: no broker has the topic.
        """
        return self._pool.route(topic).readable

    def earliest(self, queues: Iterable[QueueId]) -> dict[QueueId, int]:
        """Offset of each queue's first message."""
        return self._offsets(queues, _first)

    def latest(self, queues: Iterable[QueueId]) -> dict[QueueId, int]:
        """Offset after each queue's last message."""
        return self._offsets(queues, _last)

    def at(self, times: Mapping[QueueId, int]) -> dict[QueueId, int]:
        """Offset of the first message stored at or after a time, ms; the end if there is none."""
        return self._offsets(
            times,
            lambda q: SearchOffset(
                topic=q.topic, queue_id=q.number, timestamp=times[q], bname=q.broker
            ),
        )

    def sightings(self, group: str, offsets: Mapping[QueueId, int]) -> dict[QueueId, Sighting]:
        """What each queue has at an offset: a pull of one message, from any broker of RocketMQ.

        Args:
            group: the consumer group in whose name is read.

        Raises:
            ReplyError: a broker refused.
            TransportError: a broker did not reply.
        """
        found: dict[QueueId, Sighting] = {}
        queues = sorted(offsets)
        for at in range(0, len(queues), _SIGHTINGS_MAX):
            replies = self._call_brokers(
                queues[at : at + _SIGHTINGS_MAX], lambda q: _one(group, q, offsets[q])
            )
            for queue, reply in replies.items():
                found[queue] = _sighting(reply, offsets[queue])
        return found

    def committed(self, group: str, queues: Iterable[QueueId]) -> dict[QueueId, int]:
        """A group's committed offsets, by queue; without queues in which it committed nothing.

        Raises:
            ReplyError: a broker refused.
            TransportError: a broker did not reply.
        """
        replies = self._call_brokers(
            queues,
            lambda q: QueryOffset(
                consumer_group=group,
                topic=q.topic,
                queue_id=q.number,
                set_zero_if_not_found=False,
                bname=q.broker,
            ),
        )
        found = {}
        for queue, reply in replies.items():
            if reply.code == ResponseCode.QUERY_NOT_FOUND:
                continue
            offset = reply.checked().read(OffsetReply).offset
            if offset >= 0:
                found[queue] = offset
        return found

    def commit(self, group: str, offsets: Mapping[QueueId, int]) -> None:
        """Commits a group's offsets, each the next one to read.

        It reads them first: after a reset of the group, a broker accepts no commit from a client
        that has not read the offsets since.
        """
        self.committed(group, offsets)
        replies = self._call_brokers(offsets, lambda q: _committing(group, q, offsets[q]))
        for reply in replies.values():
            reply.checked()

    def _offsets(
        self, queues: Iterable[QueueId], question: Callable[[QueueId], Header]
    ) -> dict[QueueId, int]:
        replies = self._call_brokers(queues, question)
        return {queue: reply.checked().read(OffsetReply).offset for queue, reply in replies.items()}

    def _call_brokers(
        self, queues: Iterable[QueueId], question: Callable[[QueueId], Header]
    ) -> dict[QueueId, Command]:
        """Sends a request for each queue to its broker; requests to one broker are pipelined."""
        by_broker: dict[str, list[QueueId]] = {}
        for queue in queues:
            by_broker.setdefault(queue.broker, []).append(queue)
        found: dict[QueueId, Command] = {}
        for broker, some in by_broker.items():
            try:
                connection = self._pool.to(broker)
                try:
                    replies = connection.call_all([question(queue) for queue in some])
                except TransportError:
                    self._pool.hang_up(connection)
                    raise
            except TransportError:  # the caller tries again, perhaps at another master
                with contextlib.suppress(SprocketError):
                    self._pool.route(some[0].topic)
                raise
            found.update(zip(some, replies, strict=True))
        return found


def _first(queue: QueueId) -> MinOffset:
    return MinOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)


def _last(queue: QueueId) -> MaxOffset:
    return MaxOffset(topic=queue.topic, queue_id=queue.number, bname=queue.broker)


def _one(group: str, queue: QueueId, offset: int) -> PullMessage:
    return PullMessage(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.number,
        queue_offset=offset,
        max_msg_nums=1,
        sys_flag=SUBSCRIPTION,
        subscription=ALL,
        expression_type=TagFilter.kind,
        bname=queue.broker,
    )


def _sighting(reply: Command, offset: int) -> Sighting:
    answer = read_pull(reply)
    message = None
    if answer.records:
        try:
            record = parse(answer.records)
        except CorruptRecord:
            return Sighting(None, answer.min_offset, answer.max_offset)
        if record.queue_offset == offset:
            message = Witness(offset, record.log_offset, record.stored_ms)
    return Sighting(message, answer.min_offset, answer.max_offset)


def _committing(group: str, queue: QueueId, offset: int) -> UpdateOffset:
    return UpdateOffset(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.number,
        commit_offset=offset,
        bname=queue.broker,
    )
