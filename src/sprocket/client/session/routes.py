"""Where topics are: a cache over the name servers.

A route is fetched once for all who ask at the same time, and stays until a newer one replaces it:
while no name server answers, or a broker is away for a moment, work goes on with what is known.

Source: MQClientInstance.updateTopicRouteInfoFromNameServer of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    CallTimeout,
    ClosedError,
    ProtocolError,
    ReplyError,
    RouteNotFound,
    SprocketError,
    TransportError,
)
from sprocket.clientcore.routes import (
    NameServers,
    TopicRoute,
    nearest,
    no_route,
    promise,
    read_route,
)
from sprocket.message.topic import REPLY_SUFFIX, TEMPLATE
from sprocket.protocol.bodies import Route, TopicList
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Header
from sprocket.protocol.requests.route import RouteOfTopic, SystemTopicsOfNameServer, TopicNames
from sprocket.remoting.pool import Pool

logger = logging.getLogger(__name__)


class RouteCache:
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
        self._nameservers = NameServers(nameservers, first)
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
        return nearest(self._addresses.get(broker), number)

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
        failures: list[SprocketError] = []
        for address in self._nameservers:
            try:
                topics = await self._list(address, TopicNames(), deadline)
                own = await self._list(address, SystemTopicsOfNameServer(), deadline)
                break
            except (TransportError, ReplyError) as error:
                logger.info("name server %s: %s", address, error)
                failures.append(error)
        else:
            raise failures[-1]
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
        failures: list[SprocketError] = []
        for address in self._nameservers:
            try:
                route = await self._ask_one(address, topic)
            except (TransportError, ReplyError, ProtocolError) as error:
                logger.info("name server %s: %s", address, error)
                failures.append(error)
            else:
                self._nameservers.answered(address)
                return route
        raise no_route(topic, failures)

    async def _ask_one(self, address: str, topic: str) -> Route:
        header = RouteOfTopic(topic=topic, accept_standard_json_only=True)
        deadline = Deadline.after_ms(self._timeout_ms)
        reply = await self._pool.ask(address, header, deadline=deadline)
        return Route.decode(reply.body)


def _retrieve(task: asyncio.Task[TopicRoute]) -> None:
    """Looks at the outcome, in case every caller has given up: then it is no news."""
    if not task.cancelled():
        task.exception()
