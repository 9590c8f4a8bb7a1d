"""Inspects a simulated cluster from outside with plain requests, without the client under test."""

from __future__ import annotations

from sprocket.base.deadline import Deadline
from sprocket.base.errors import QueryNotFound, ServiceNotAvailable, TransportError
from sprocket.message.message import StoredMessage
from sprocket.message.opening import Opening
from sprocket.message.queue import QueueId
from sprocket.message.record import scan
from sprocket.message.topic import READ, WRITE
from sprocket.protocol.codes import ResponseCode
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.offset import MaxOffset, OffsetReply, QueryOffset
from sprocket.protocol.requests.pull import SUBSCRIPTION, PullMessage, PullReply
from sprocket.protocol.requests.topic import CreateTopic
from sprocket.remoting.pool import Pool
from sprocket.testing.cluster import BROKER_PORT, Cluster, Machine

_CALL_SECONDS = 3.0
#: A group of its own, so that inspection changes nothing for other groups.
_GROUP = "observer"


class Observer:
    """Queries brokers for one topic and one group. Use it outside of processes that get faults.

    Args:
        cluster: the cluster.
        topic, queues: the topic, and its number of queues on each broker.
        group: the consumer group whose offsets are queried.
    """

    def __init__(self, cluster: Cluster, topic: str, queues: int, *, group: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._queues = queues
        self._group = group
        self._pool = Pool()

    async def close(self) -> None:
        """Closes its connections."""
        await self._pool.close()

    async def create_topic(self, *brokers: Machine, keeps_batches: bool = False) -> None:
        """Creates the topic on some brokers, or on every one.

        Args:
            keeps_batches: whether it keeps each batch as one record.
        """
        header = CreateTopic(
            topic=self._topic,
            default_topic="TBW102",
            read_queue_nums=self._queues,
            write_queue_nums=self._queues,
            perm=READ | WRITE,
            topic_filter_type="SINGLE_TAG",
            attributes="+queue.type=BatchCQ" if keeps_batches else None,
        )
        for broker in brokers or self._cluster.brokers:
            await self._ask(broker, header)

    async def committed(self) -> dict[QueueId, int]:
        """The group's committed offsets, from the brokers that answer now."""
        found: dict[QueueId, int] = {}
        for broker in self._cluster.brokers:
            for queue in self._queues_of(broker):
                header = QueryOffset(
                    consumer_group=self._group,
                    topic=self._topic,
                    queue_id=queue.number,
                    set_zero_if_not_found=False,
                )
                try:
                    reply = await self._ask(broker, header)
                except QueryNotFound:
                    continue
                except (TransportError, ServiceNotAvailable):
                    break
                found[queue] = reply.read(OffsetReply).offset
        return found

    async def ends(self) -> dict[QueueId, int]:
        """The end offsets of the queues.

        Raises:
            TransportError: a broker does not answer.
            ReplyError: a broker answers with an error, as it does not serve yet.
        """
        return {
            queue: await self._end(broker, queue)
            for broker in self._cluster.brokers
            for queue in self._queues_of(broker)
        }

    async def _end(self, broker: Machine, queue: QueueId) -> int:
        header = MaxOffset(topic=queue.topic, queue_id=queue.number)
        return int((await self._ask(broker, header)).read(OffsetReply).offset)

    async def stored(self) -> dict[QueueId, list[StoredMessage]]:
        """All messages of the topic, by queue, from all brokers.

        Raises:
            TransportError: a broker does not answer.
            ReplyError: a broker answers with an error, as it does not serve yet.
        """
        return {
            queue: await self._messages(broker, queue)
            for broker in self._cluster.brokers
            for queue in self._queues_of(broker)
        }

    async def _messages(self, broker: Machine, queue: QueueId) -> list[StoredMessage]:
        end = await self._end(broker, queue)
        messages: list[StoredMessage] = []
        offset = 0
        while offset < end:
            reply = await self._call(broker, _pull(queue, offset))
            opening = Opening()
            if reply.code == ResponseCode.SUCCESS:
                messages += scan(reply.body, queue.broker, opening=opening)
            following = opening.stopped_at or reply.read(PullReply).next_begin_offset
            if following <= offset:
                raise AssertionError(f"{queue}: pull at {offset} of {end} leads to {following}")
            offset = following
        return messages

    def _queues_of(self, broker: Machine) -> list[QueueId]:
        return [QueueId(self._topic, broker.name, number) for number in range(self._queues)]

    async def _ask(self, broker: Machine, header: Header) -> Command:
        return (await self._call(broker, header)).checked()

    async def _call(self, broker: Machine, header: Header) -> Command:
        address = f"{broker.address}:{BROKER_PORT}"
        return await self._pool.call(address, header, deadline=Deadline.after(_CALL_SECONDS))


def _pull(queue: QueueId, offset: int) -> PullMessage:
    return PullMessage(
        consumer_group=_GROUP,
        topic=queue.topic,
        queue_id=queue.number,
        queue_offset=offset,
        max_msg_nums=32,
        sys_flag=SUBSCRIPTION,
        subscription="*",
    )
