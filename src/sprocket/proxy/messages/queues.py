"""Routes and shares as the service tells them. Pure.

A client reaches every broker through the proxy, at the address at which it reached the proxy. So
the address of each broker is the one that the client has asked at.
Source: RouteActivity of RocketMQ 5.3 (module proxy).
"""

from __future__ import annotations

from collections.abc import Iterator

from sprocket.message.topic import is_readable, is_writable
from sprocket.protocol.bodies import QueueData, Route
from sprocket.protocol.codes import MASTER
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.sent_messages import types_of_topic

#: A name server that reports more queues of a topic on a broker is broken.
_QUEUES_MAX = 16_384
_INT_MAX = (1 << 31) - 1


def route_queues(
    route: Route, topic: pb.Resource, *, attribute: str, endpoints: pb.Endpoints
) -> Iterator[pb.MessageQueue]:
    """The queues of a topic on all processes of its brokers.

    Args:
        attribute: the topic's type of messages.
        endpoints: where the client reaches the proxy.
    """
    types = types_of_topic(attribute)
    numbers = {each.broker_name: sorted(each.broker_addrs) for each in route.broker_datas}
    for data in route.queue_datas:
        for number in numbers.get(data.broker_name, ()):
            broker = pb.Broker(name=data.broker_name, id=min(number, _INT_MAX), endpoints=endpoints)
            for at, permission in enumerate(_permissions(data)):
                yield pb.MessageQueue(
                    topic=topic,
                    id=at,
                    permission=permission,
                    broker=broker,
                    accept_message_types=types,
                )


def queue_count(route: Route) -> int:
    """How many queues `route_queues` lists at most."""
    processes = {each.broker_name: len(each.broker_addrs) for each in route.broker_datas}
    return sum(
        min(max(1, *_counts(data)), 2 * _QUEUES_MAX) * processes.get(data.broker_name, 0)
        for data in route.queue_datas
    )


def _permissions(data: QueueData) -> list[pb.Permission]:
    """The permission of each queue: of a topic with more queues of one kind, those come first."""
    read, write = (max(0, min(count, _QUEUES_MAX)) for count in _counts(data))
    if is_readable(data.perm) and is_writable(data.perm):
        both = min(read, write)
        more = [pb.READ] * (read - both) + [pb.WRITE] * (write - both)
        return [*more, *[pb.READ_WRITE] * both]
    if is_writable(data.perm):
        return [pb.WRITE] * write
    if is_readable(data.perm):
        return [pb.READ] * read
    return [pb.NONE] * max(1, read, write)


def _counts(data: QueueData) -> tuple[int, int]:
    return data.read_queue_nums, data.write_queue_nums


def assignments(
    route: Route, topic: pb.Resource, *, is_fifo: bool, endpoints: pb.Endpoints
) -> Iterator[pb.Assignment]:
    """What a member of a group receives from: each broker, or each queue for a group in order."""
    masters = {each.broker_name for each in route.broker_datas if MASTER in each.broker_addrs}
    for data in route.queue_datas:
        if not is_readable(data.perm) or data.read_queue_nums <= 0:
            continue
        if data.broker_name not in masters:
            continue
        permission = pb.READ_WRITE if is_writable(data.perm) else pb.READ
        broker = pb.Broker(name=data.broker_name, id=MASTER, endpoints=endpoints)
        queues = range(min(data.read_queue_nums, _QUEUES_MAX)) if is_fifo else (-1,)
        for number in queues:
            queue = pb.MessageQueue(topic=topic, id=number, permission=permission, broker=broker)
            yield pb.Assignment(message_queue=queue)
