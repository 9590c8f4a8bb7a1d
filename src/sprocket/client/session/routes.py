"""Where topics are: a cache over the name servers.

A route is fetched once for all who ask at the same time, and stays until a newer one replaces it:
while no name server answers, or a broker is away for a moment, work goes on with what is known.
Queues are sorted by broker name and number after every fetch, so that two producers that hash the
same key choose the same queue, whatever name server they asked.

Source: MQClientInstance.updateTopicRouteInfoFromNameServer and topicRouteData2TopicPublishInfo of
RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    CallTimeout,
    ClosedError,
    ConnectFailed,
    ProtocolError,
    ReplyError,
    RouteNotFound,
    SprocketError,
    TopicNotFound,
    TransportError,
)
from sprocket.message.queue import QueueId
from sprocket.message.topic import REPLY_SUFFIX, TEMPLATE, is_readable, is_writable
from sprocket.protocol.bodies import Route, TopicList
from sprocket.protocol.command import Header
from sprocket.protocol.requests.route import RouteOfTopic, SystemTopicsOfNameServer, TopicNames
from sprocket.remoting.pool import Pool

logger = logging.getLogger(__name__)

MASTER = 0
#: More queues of one topic on one broker are nonsense from a broken name server.
_QUEUES_MAX = 65_536


class TopicRoute(NamedTuple):
    """A topic's queues and who has them.

    Attributes:
        writable, readable: sorted by broker name and number.
        addresses: by broker name, from number (0 is the master) to address.
        is_promised: no broker has the topic yet; the first send to one of these makes it.
    """

    writable: tuple[QueueId, ...]
    readable: tuple[QueueId, ...]
    addresses: dict[str, dict[int, str]]
    is_promised: bool = False


def read_route(topic: str, route: Route) -> TopicRoute:
    """The queues that a route's answer stands for. Pure."""
    addresses = {each.broker_name: dict(each.broker_addrs) for each in route.broker_datas}
    writable: set[QueueId] = set()
    readable: set[QueueId] = set()
    for each in route.queue_datas:
        numbers = addresses.get(each.broker_name, {})
        if is_writable(each.perm) and MASTER in numbers:
            writable.update(_queues(topic, each.broker_name, each.write_queue_nums))
        if is_readable(each.perm) and numbers:
            readable.update(_queues(topic, each.broker_name, each.read_queue_nums))
    if route.order_topic_conf:
        writable = set(_ordered_queues(topic, route.order_topic_conf))
    return TopicRoute(tuple(sorted(writable)), tuple(sorted(readable)), addresses)


def _queues(topic: str, broker: str, count: int) -> Iterator[QueueId]:
    return (QueueId(topic, broker, number) for number in range(min(count, _QUEUES_MAX)))


def _ordered_queues(topic: str, configuration: str) -> Iterator[QueueId]:
    """The queues of `broker-a:4;broker-b:4`, which stay the same while a broker is away."""
    for piece in configuration.split(";"):
        broker, _, count = piece.strip().partition(":")
        if broker and count.isascii() and count.isdigit() and len(count) < 10:
            yield from _queues(topic, broker, int(count))


def promise(topic: str, template: TopicRoute, queues: int) -> TopicRoute:
    """The route that a topic will have once the first send has made it after a template."""
    writable = tuple(
        queue._replace(topic=topic) for queue in template.writable if queue.number < queues
    )
    return TopicRoute(writable, (), template.addresses, is_promised=True)


class Routes:
    """The routes that a session knows.

    Args:
        pool: connections to the name servers.
        nameservers: their addresses; one is asked until it fails, then the next.
        first: index of the one to begin with.
        timeout_ms: how long one may take.
    """

    def __init__(
        self, pool: Pool, nameservers: Sequence[str], *, first: int, timeout_ms: int
    ) -> None:
        self._pool = pool
        self._nameservers = tuple(nameservers)
        self._current = first % len(self._nameservers)
        self._timeout_ms = timeout_ms
        self._routes: dict[str, TopicRoute] = {}
        self._fetching: dict[str, asyncio.Task[TopicRoute]] = {}
        #: By broker name, the newest addresses that any route gave.
        self._addresses: dict[str, dict[int, str]] = {}
        #: Called with a topic whose queues or brokers are not what they were.
        self.on_change: Callable[[str], None] | None = None

    @property
    def topics(self) -> list[str]:
        """Topics whose route is known."""
        return list(self._routes)

    def known(self, topic: str) -> TopicRoute | None:
        """The topic's route, if it is at hand."""
        return self._routes.get(topic)

    def address(self, broker: str, number: int = MASTER) -> str | None:
        """Where a broker's master, or one of its slaves, is."""
        return self._addresses.get(broker, {}).get(number)

    def nearest(self, broker: str, number: int) -> tuple[int, str] | None:
        """Number and address of the wished process of a broker, else of the lowest there is."""
        numbers = self._addresses.get(broker)
        if not numbers:
            return None
        found = number if number in numbers else min(numbers)
        return found, numbers[found]

    def brokers(self) -> list[tuple[str, int, str]]:
        """(broker name, number, address) of all that any route names."""
        return [
            (broker, number, address)
            for broker, numbers in sorted(self._addresses.items())
            for number, address in sorted(numbers.items())
        ]

    async def of(self, topic: str, deadline: Deadline) -> TopicRoute:
        """The topic's route, fetched if it is not at hand.

        Raises:
            RouteNotFound: no name server knows the topic.
            TransportError: none of them answered in time.
        """
        known = self._routes.get(topic)
        if known is not None and not known.is_promised:
            return known
        return await self.fetch(topic, deadline)

    async def for_sending(self, topic: str, new_queues: int, deadline: Deadline) -> TopicRoute:
        """The topic's route, or the one that it will have once a send has made it.

        Raises:
            RouteNotFound: nobody knows the topic, and no broker makes topics.
            TransportError: no name server answered in time.
        """
        known = self._routes.get(topic)
        if known is not None:
            return known
        try:
            return await self.fetch(topic, deadline)
        except RouteNotFound:
            pass
        try:
            template = await self.of(TEMPLATE, deadline)
        except RouteNotFound:
            raise RouteNotFound(
                f"topic {topic!r} does not exist, and no broker makes topics by itself"
            ) from None
        made = promise(topic, template, new_queues)
        return self._routes.setdefault(topic, made)

    async def fetch(self, topic: str, deadline: Deadline) -> TopicRoute:
        """Fetches the topic's route anew; whoever asks meanwhile gets the same answer.

        Raises:
            RouteNotFound: no name server knows the topic.
            TransportError: none of them answered in time.
        """
        task = self._fetching.get(topic)
        if task is None:
            task = asyncio.ensure_future(self._fetch(topic))
            task.add_done_callback(_retrieve)
            self._fetching[topic] = task
        await asyncio.wait([task], timeout=None if deadline.is_never else deadline.left())
        if not task.done():
            raise CallTimeout(f"no name server told the route of {topic!r} in time")
        if task.cancelled():
            raise ClosedError("the client is closed")
        return task.result()

    async def names(self, deadline: Deadline) -> list[str]:
        """All topics that the name servers know, but for those named after clusters and brokers.

        Raises:
            TransportError, ReplyError: the last one that was asked did not tell.
        """
        last = len(self._nameservers) - 1
        for step in range(len(self._nameservers)):
            address = self._nameservers[(self._current + step) % len(self._nameservers)]
            try:
                topics = await self._list(address, TopicNames(), deadline)
                own = await self._list(address, SystemTopicsOfNameServer(), deadline)
                break
            except (TransportError, ReplyError) as error:
                logger.info("name server %s: %s", address, error)
                if step == last:
                    raise
        own |= {f"{name}{REPLY_SUFFIX}" for name in own}
        return sorted(topics - own)

    async def _list(self, address: str, header: Header, deadline: Deadline) -> set[str]:
        reply = await self._pool.ask(address, header, deadline=deadline)
        return set(TopicList.decode(reply.body).topic_list)

    async def refresh(self) -> None:
        """Fetches all known routes anew; what cannot be fetched stays as it is."""
        for topic in self.topics:
            try:
                await self.fetch(topic, Deadline.never())
            except SprocketError as error:
                logger.debug("route of %s stays as it was: %s", topic, error)

    async def close(self) -> None:
        """Ends fetches under way."""
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, topic: str) -> TopicRoute:
        try:
            found = read_route(topic, await self._ask(topic))
        finally:
            self._fetching.pop(topic, None)
        if self._routes.get(topic) != found:
            self._routes[topic] = found
            self._addresses = {
                broker: numbers
                for route in (*self._routes.values(), found)
                for broker, numbers in route.addresses.items()
            }
            if self.on_change is not None:
                self.on_change(topic)
        return found

    async def _ask(self, topic: str) -> Route:
        """Asks one name server after the other; a broken one must not hide what another knows."""
        failure: SprocketError | None = None
        is_missing = False
        for step in range(len(self._nameservers)):
            at = (self._current + step) % len(self._nameservers)
            address = self._nameservers[at]
            try:
                route = await self._ask_one(address, topic)
            except TopicNotFound:
                is_missing = True
            except (TransportError, ReplyError, ProtocolError) as error:
                logger.info("name server %s: %s", address, error)
                failure = error
            else:
                self._current = at
                return route
        if is_missing:
            raise RouteNotFound(f"no broker has topic {topic!r}")
        raise ConnectFailed(
            f"no name server could tell the route of {topic!r}: {failure}"
        ) from failure

    async def _ask_one(self, address: str, topic: str) -> Route:
        header = RouteOfTopic(topic=topic, accept_standard_json_only=True)
        deadline = Deadline.after_ms(self._timeout_ms)
        reply = await self._pool.ask(address, header, deadline=deadline)
        return Route.decode(reply.body)


def _retrieve(task: asyncio.Task[TopicRoute]) -> None:
    """Looks at the outcome, in case every caller has given up: then it is no news."""
    if not task.cancelled():
        task.exception()
