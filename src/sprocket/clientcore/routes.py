"""Routes: a topic's queues, the addresses of their brokers, the name servers to ask. Pure.

All clients of one topic see the same queues in the same order, whatever name server they asked, so
that two producers that hash the same key choose the same queue.

Source: MQClientInstance.topicRouteData2TopicPublishInfo and findBrokerAddressInSubscribe of
RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sprocket.base.errors import ConnectFailed, RouteNotFound, SprocketError, TopicNotFound
from sprocket.clientcore.attempts import is_shut_out
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_readable, is_writable
from sprocket.protocol.codes import MASTER

if TYPE_CHECKING:
    from sprocket.protocol.bodies import MappingInfo, Route

#: A name server that reports more queues of one topic on one broker is broken.
_QUEUES_MAX = 65_536


class TopicRoute(NamedTuple):
    """A topic's queues and their brokers.

    Attributes:
        writable: in the order in which keys are hashed to them: by broker name and number, or, for
            a topic with an order configuration, in the order of that configuration.
        readable: sorted by broker name and number.
        addresses: by broker name, from number (0 is the master) to address.
        is_promised: no broker has the topic yet; the first send to one of these queues creates it.
        headless: queues that would be writable if their brokers had a master now; sorted.
    """

    writable: tuple[QueueId, ...]
    readable: tuple[QueueId, ...]
    addresses: dict[str, dict[int, str]]
    is_promised: bool = False
    headless: tuple[QueueId, ...] = ()


def read_route(topic: str, route: Route) -> TopicRoute:
    """The queues and addresses in a name server's reply.

    Only a master accepts messages, while any process of a broker can be read. An order
    configuration replaces the writable queues. It is not compared with the brokers in the reply, so
    that a key keeps its queue even while the broker of that queue is away. A static topic has its
    logical queues, also those whose broker is away.
    """
    addresses = {each.broker_name: dict(each.broker_addrs) for each in route.broker_datas}
    if route.topic_queue_mapping_by_broker and not route.order_topic_conf:
        return _static_route(topic, addresses, route.topic_queue_mapping_by_broker.values())
    writable: set[QueueId] = set()
    readable: set[QueueId] = set()
    headless: set[QueueId] = set()
    for each in route.queue_datas:
        numbers = addresses.get(each.broker_name, {})
        if is_writable(each.perm):
            queues = _queues(topic, each.broker_name, each.write_queue_nums)
            (writable if MASTER in numbers else headless).update(queues)
        if is_readable(each.perm) and numbers:
            readable.update(_queues(topic, each.broker_name, each.read_queue_nums))
    in_order = sorted(writable)
    if route.order_topic_conf:
        in_order = list(dict.fromkeys(_ordered_queues(topic, route.order_topic_conf)))
    return TopicRoute(
        tuple(in_order), tuple(sorted(readable)), addresses, headless=tuple(sorted(headless))
    )


def _static_route(
    topic: str, addresses: dict[str, dict[int, str]], mappings: Iterable[MappingInfo]
) -> TopicRoute:
    """The route of a static topic: each logical queue has the addresses of the broker that leads
    it."""
    # Tasks of Spark read routes, and need not import all bodies for it.
    from sprocket.clientcore.logical_queues import brokers_of_queues

    queues = []
    for (name, number), broker in sorted(brokers_of_queues(mappings).items()):
        queue = QueueId(topic, name, number)
        queues.append(queue)
        if broker in addresses:
            addresses[queue.place] = addresses[broker]
    return TopicRoute(tuple(queues), tuple(queues), addresses)


def _queues(topic: str, broker: str, count: int) -> Iterator[QueueId]:
    return (QueueId(topic, broker, number) for number in range(min(count, _QUEUES_MAX)))


def _ordered_queues(topic: str, configuration: str) -> Iterator[QueueId]:
    """The queues of an order configuration, `broker-a:4;broker-b:4`."""
    for piece in configuration.split(";"):
        broker, _, count = piece.strip().partition(":")
        if broker and count.isascii() and count.isdigit() and len(count) < 10:
            yield from _queues(topic, broker, int(count))


def promise(topic: str, template: TopicRoute, queues: int) -> TopicRoute:
    """The route that a topic will have after the first send has created it from a template.

    Args:
        queues: the most queues that the sender asks for on each broker.
    """
    writable = tuple(
        queue._replace(topic=topic) for queue in template.writable if queue.number < queues
    )
    return TopicRoute(writable, (), template.addresses, is_promised=True)


def nearest(numbers: Mapping[int, str] | None, wished: int = MASTER) -> tuple[int, str] | None:
    """Number and address of the wished process of a broker, or else of the lowest number.

    Args:
        numbers: the broker's addresses by number; None or empty if no route contains it.
    """
    if not numbers:
        return None
    number = wished if wished in numbers else min(numbers)
    return number, numbers[number]


class NameServers:
    """The name servers of a client, in the order in which it asks them.

    The one that replied last is asked first, so that a client does not wait each time for one that
    is away.

    Args:
        addresses: `host:port` of each, at least one.
        first: index of the one to ask first.
    """

    def __init__(self, addresses: Sequence[str], first: int = 0) -> None:
        self._addresses = tuple(addresses)
        self._current = first % len(self._addresses)

    def __iter__(self) -> Iterator[str]:
        return iter(self._addresses[self._current :] + self._addresses[: self._current])

    def answered(self, address: str) -> None:
        """Records which one replied."""
        self._current = self._addresses.index(address)


def no_route(topic: str, failures: Sequence[SprocketError]) -> SprocketError:
    """The error to raise when no name server gave the route of a topic.

    That the topic does not exist takes precedence over a server that is away. It counts only after
    all name servers were asked, because one that has just started does not know all brokers yet.
    A refusal by access control is final, and is that error itself.

    Args:
        failures: one for each name server.
    """
    if any(isinstance(failure, TopicNotFound) for failure in failures):
        return RouteNotFound(f"no broker has topic {topic!r}")
    refusal = next(filter(is_shut_out, failures), None)
    if refusal is not None:
        return refusal
    error = ConnectFailed(f"no name server gave the route of {topic!r}: {failures[-1]}")
    error.__cause__ = failures[-1]
    return error
