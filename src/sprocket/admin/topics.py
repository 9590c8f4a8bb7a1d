"""Topics: delete, list; routes and offsets. `topic_changes` creates and changes them."""

from __future__ import annotations

from typing import NamedTuple

from sprocket.admin import known
from sprocket.admin.caller import Caller
from sprocket.message.topic import (
    is_dead_letter_topic,
    is_retry_topic,
    is_system_topic,
    reply_topic,
)
from sprocket.protocol.bodies import Route, TopicList, TopicStatsTable
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command
from sprocket.protocol.requests.route import DeleteTopicRoute, RouteOfTopic, TopicNames
from sprocket.protocol.requests.topic import DeleteTopic, TopicStats


class TopicPart(NamedTuple):
    """A topic's queues on one broker.

    Attributes:
        addresses: addresses of the broker's processes by number; 0 is the master.
        permission: 4 readable, 2 writable, 1 inherited.
    """

    cluster: str
    broker: str
    addresses: dict[int, str]
    read_queues: int
    write_queues: int
    permission: int


class QueueStatus(NamedTuple):
    """The offsets of a queue.

    Attributes:
        min_offset: offset of its first message.
        max_offset: offset that its next message will get.
        updated_ms: when its last message was stored, ms since 1970 UTC; 0 if it is empty.
    """

    broker: str
    number: int
    min_offset: int
    max_offset: int
    updated_ms: int


async def delete(
    caller: Caller, topic: str, *, cluster: str | None = None, broker: str | None = None
) -> list[str]:
    """Deletes a topic with its messages on all masters, those of a cluster, or one; then its route.

    The request goes to all of them, also to those without the topic. It is no error if there is
    no such topic.

    Returns:
        Names of the brokers that had it.

    Raises:
        UsageError: there is no such broker.
        BrokersFailed, TransportError, ReplyError: a broker or a name server did not answer, or
            refused.
    """
    masters = await caller.masters(cluster=cluster, broker=broker)
    had = await known.of_topic(caller, topic, masters)
    await caller.ask_each(masters, DeleteTopic(topic=topic))
    # A name server deletes the route of a whole cluster. That of one broker it deletes itself.
    if broker is None:
        await caller.tell_nameservers(DeleteTopicRoute(topic=topic, cluster_name=cluster))
    return had


async def names(caller: Caller, *, with_internal: bool = False) -> list[str]:
    """Names of topics, sorted; RocketMQ's system topics only if `with_internal`."""
    reply = await caller.ask_nameserver(TopicNames())
    topics = sorted(TopicList.decode(reply.body).topic_list)
    if with_internal:
        return topics
    info = await caller.cluster_info()
    own = {*info.cluster_addr_table, *info.broker_addr_table}
    own |= {reply_topic(name) for name in info.cluster_addr_table}
    return [topic for topic in topics if topic not in own and not _is_internal(topic)]


def _is_internal(topic: str) -> bool:
    return is_system_topic(topic) or is_retry_topic(topic) or is_dead_letter_topic(topic)


async def route(caller: Caller, topic: str) -> list[TopicPart]:
    """The brokers that have a topic's queues, sorted by name.

    Raises:
        TopicNotFound: no broker has it.
    """
    reply = await caller.ask_nameserver(RouteOfTopic(topic=topic, accept_standard_json_only=True))
    found = Route.decode(reply.body)
    brokers = {data.broker_name: data for data in found.broker_datas}
    return sorted(
        TopicPart(
            brokers[queues.broker_name].cluster or "",
            queues.broker_name,
            brokers[queues.broker_name].broker_addrs,
            queues.read_queue_nums,
            queues.write_queue_nums,
            queues.perm,
        )
        for queues in found.queue_datas
        if queues.broker_name in brokers
    )


async def status(caller: Caller, topic: str) -> list[QueueStatus]:
    """The offsets of a topic's queues, sorted by broker and number.

    Raises:
        TopicNotFound: no broker has it.
    """
    replies = await caller.ask_each(await masters_of(caller, topic), TopicStats(topic=topic))
    return sorted(queue for broker, reply in replies.items() for queue in _queues(broker, reply))


async def status_at(caller: Caller, address: str, topic: str) -> list[QueueStatus]:
    """The offsets of a topic's queues at one server, without its name, sorted by number.

    Raises:
        TopicNotFound: it has no such topic.
    """
    return sorted(_queues("", await caller.ask(address, TopicStats(topic=topic))))


def _queues(broker: str, reply: Command) -> list[QueueStatus]:
    return [
        QueueStatus(
            broker,
            queue.queue_id,
            span.min_offset,
            span.max_offset,
            span.last_update_timestamp,
        )
        for queue, span in TopicStatsTable.decode(reply.body).offset_table.items()
    ]


async def masters_of(caller: Caller, topic: str) -> dict[str, str]:
    """Addresses of the masters that have a topic, by broker name, sorted.

    Raises:
        TopicNotFound: no broker has it.
    """
    return {
        part.broker: part.addresses[MASTER]
        for part in await route(caller, topic)
        if MASTER in part.addresses
    }
