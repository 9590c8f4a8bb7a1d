"""What a planner asks the cluster: topics, queues and their offsets.

Blocking. Requests about many queues of one broker are pipelined. The ends of a topic with many
queues are asked for with one request to each broker, so that what a planner asks at each
micro-batch does not grow with the number of queues.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from sprocket.base.errors import CorruptRecord, ReplyError, SprocketError, TransportError
from sprocket.clientcore.attempts import may_pass
from sprocket.clientcore.replies import read_pull
from sprocket.clientcore.witness import UNKNOWN, Witness
from sprocket.filter.tags import ALL, TagFilter
from sprocket.message.queue import QueueId
from sprocket.message.record import parse
from sprocket.protocol.bodies import TopicList, TopicStatsTable
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
from sprocket.protocol.requests.topic import TopicStats
from sprocket.spark.brokers.pool import ConnectionPool

#: A message may have 4 MiB, so only so many are asked for at once.
_SIGHTINGS_MAX = 8
#: Of a topic with more queues at a broker, all ends are asked for with one request.
FEW_QUEUES = 16


class Sighting(NamedTuple):
    """What a queue has at an offset.

    Attributes:
        message: the message at that offset; None if there is none.
        first, end: the queue's first offset, and the one after its last.
    """

    message: Witness | None
    first: int
    end: int


class OffsetSpan(NamedTuple):
    """What a queue has.

    Attributes:
        first, end: its first offset, and the one after its last.
        stored_ms: when its last message was stored, ms since 1970; 0 if that is not known.
    """

    first: int
    end: int
    stored_ms: int

    @property
    def last(self) -> Witness | None:
        """The last message, as far as it is known."""
        has_one = self.first < self.end and self.stored_ms > 0
        return Witness(self.end - 1, UNKNOWN, self.stored_ms) if has_one else None


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
        queues = list(queues)
        found = {queue: span.first for queue, span in self._spans(queues).items()}
        return found | self._offsets((one for one in queues if one not in found), _first)

    def latest(self, queues: Iterable[QueueId]) -> dict[QueueId, int]:
        """Offset after each queue's last message."""
        return {queue: end for queue, (end, _) in self.ends(queues).items()}

    def ends(self, queues: Iterable[QueueId]) -> dict[QueueId, tuple[int, Witness | None]]:
        """Offset after each queue's last message, and that message if the reply describes it."""
        queues = list(queues)
        found = {queue: (span.end, span.last) for queue, span in self._spans(queues).items()}
        others = self._offsets((one for one in queues if one not in found), _last)
        return {**found, **{queue: (end, None) for queue, end in others.items()}}

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

    def sizes(self, group: str, places: Sequence[tuple[QueueId, int]]) -> list[int]:
        """The sizes of single messages in the log, bytes; none where there is no message.

        Args:
            group: the consumer group in whose name is read.
            places: queues, and an offset in each.

        Raises:
            ReplyError: a broker refused.
            TransportError: a broker did not reply.
        """
        found: list[int] = []
        for at in range(0, len(places), _SIGHTINGS_MAX):
            some = places[at : at + _SIGHTINGS_MAX]
            replies = self._replies([(queue, _one(group, queue, offset)) for queue, offset in some])
            found += filter(None, map(_message_bytes, replies))
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

    def _spans(self, queues: Iterable[QueueId]) -> dict[QueueId, OffsetSpan]:
        """What queues have, of topics with many queues at a broker: one request for all of them.

        Queues that no reply describes are left out: a broker may permit its users less than this.

        Raises:
            ReplyError: a broker is busy.
            TransportError: a broker did not reply.
        """
        together: dict[tuple[str, str], list[QueueId]] = {}
        for queue in queues:
            together.setdefault((queue.broker, queue.topic), []).append(queue)
        many = {some[0]: some for some in together.values() if len(some) > FEW_QUEUES}
        found: dict[QueueId, OffsetSpan] = {}
        for one, reply in self._call_brokers(many, lambda q: TopicStats(topic=q.topic)).items():
            try:
                table = TopicStatsTable.decode(reply.checked().body).offset_table
            except ReplyError as error:
                if may_pass(error):
                    raise
                continue
            spans = {
                queue.queue_id: OffsetSpan(at.min_offset, at.max_offset, at.last_update_timestamp)
                for queue, at in table.items()
            }
            found.update((q, spans[q.number]) for q in many[one] if q.number in spans)
        return found

    def _offsets(
        self, queues: Iterable[QueueId], question: Callable[[QueueId], Header]
    ) -> dict[QueueId, int]:
        replies = self._call_brokers(queues, question)
        return {queue: reply.checked().read(OffsetReply).offset for queue, reply in replies.items()}

    def _call_brokers(
        self, queues: Iterable[QueueId], question: Callable[[QueueId], Header]
    ) -> dict[QueueId, Command]:
        """Sends a request for each queue to its broker; requests to one broker are pipelined."""
        queues = list(queues)
        replies = self._replies([(queue, question(queue)) for queue in queues])
        return dict(zip(queues, replies, strict=True))

    def _replies(self, asked: Sequence[tuple[QueueId, Header]]) -> list[Command]:
        """The reply to each request about a queue, in the same order."""
        by_broker: dict[str, list[int]] = {}
        for place, (queue, _) in enumerate(asked):
            by_broker.setdefault(queue.broker, []).append(place)
        found: dict[int, Command] = {}
        for broker, places in by_broker.items():
            try:
                connection = self._pool.to(broker)
                try:
                    replies = connection.call_all([asked[place][1] for place in places])
                except TransportError:
                    self._pool.hang_up(connection)
                    raise
            except TransportError:  # the caller tries again, perhaps at another master
                with contextlib.suppress(SprocketError):
                    self._pool.route(asked[places[0]][0].topic)
                raise
            found.update(zip(places, replies, strict=True))
        return [found[place] for place in range(len(asked))]


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


def _message_bytes(reply: Command) -> int:
    """The size of the message in the reply to a pull of one; 0 if there is none."""
    answer = read_pull(reply)
    if not answer.records:
        return 0
    try:
        record = parse(answer.records)
    except CorruptRecord:
        return 0
    # A record may hold a batch, of which each message has an offset.
    return record.size // max(1, answer.next_offset - record.queue_offset)


def _committing(group: str, queue: QueueId, offset: int) -> UpdateOffset:
    return UpdateOffset(
        consumer_group=group,
        topic=queue.topic,
        queue_id=queue.number,
        commit_offset=offset,
        bname=queue.broker,
    )
