"""A cache of topic routes, filled from the name servers.

Callers that need a route at the same time share one fetch. A route stays until a newer one replaces
it, so clients continue with the known routes while no name server answers.

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
    RouteNotFound,
    SprocketError,
    TopicNotFound,
)
from sprocket.base.watermark import Watermark
from sprocket.client.session.reachability import Reachability
from sprocket.clientcore.attempts import is_shut_out
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
from sprocket.remoting.alternatives import first_answer
from sprocket.remoting.pool import Pool

logger = logging.getLogger(__name__)


class RouteCache:
    """The routes that a session knows.

    Args:
        pool: connections to the name servers.
        nameservers: their addresses; one is used until it fails, then the next.
        first: index of the first one to use.
        timeout_ms: how long a request to one name server may take.
        reachability: reports what cannot be reached.
    """

    def __init__(
        self,
        pool: Pool,
        nameservers: Sequence[str],
        *,
        first: int,
        timeout_ms: int,
        reachability: Reachability | None = None,
    ) -> None:
        self._pool = pool
        self._nameservers = NameServers(nameservers, first)
        self._timeout_ms = timeout_ms
        self._everyone = f"any name server of {', '.join(nameservers)}"
        self._reachability = reachability or Reachability(asyncio.get_running_loop().time)
        self._routes: dict[str, TopicRoute] = {}
        self._fetching: dict[str, asyncio.Task[TopicRoute]] = {}
        #: By broker name, the newest addresses from any route.
        self._addresses: dict[str, dict[int, str]] = {}
        #: By broker name, the newest address of its master; it stays while there is none.
        self._masters: dict[str, str] = {}
        #: Rises whenever the addresses of a broker have changed.
        self.moves = Watermark()
        #: Called with a topic when its queues or brokers have changed.
        self.on_change: Callable[[str], None] | None = None
        #: Called with broker name and former address when a broker has another master.
        self.on_new_master: Callable[[str, str], None] | None = None

    @property
    def topics(self) -> list[str]:
        """The topics whose route is known."""
        return list(self._routes)

    def known(self, topic: str) -> TopicRoute | None:
        """Returns the topic's route if it is in the cache."""
        return self._routes.get(topic)

    def address(self, broker: str, number: int = MASTER) -> str | None:
        """Returns the address of a broker's master, or of the slave with that number."""
        return self._addresses.get(broker, {}).get(number)

    def nearest(self, broker: str, number: int) -> tuple[int, str] | None:
        """Returns number and address of that process of a broker, else of the lowest number."""
        return nearest(self._addresses.get(broker), number)

    def brokers(self) -> list[tuple[str, int, str]]:
        """Returns (broker name, number, address) for every broker process in any route."""
        return [
            (broker, number, address)
            for broker, numbers in sorted(self._addresses.items())
            for number, address in sorted(numbers.items())
        ]

    def topics_of(self, broker: str) -> list[str]:
        """The topics whose known route contains a broker."""
        return [topic for topic, route in self._routes.items() if broker in route.addresses]

    async def moved(self, broker: str, address: str | None, deadline: Deadline) -> bool:
        """Waits until a broker has another master; returns whether it has.

        Args:
            address: of the master that is known; None if there is none.
        """
        while (now := self.address(broker)) is None or now == address:
            if not await self.moves.reach(self.moves.value + 1, deadline):
                return False
        return True

    async def of(self, topic: str, deadline: Deadline) -> TopicRoute:
        """Returns the topic's route, after a fetch if it is not in the cache.

        Raises:
            RouteNotFound: no name server knows the topic.
            TransportError: no name server answered in time.
        """
        known = self._routes.get(topic)
        if known is not None and not known.is_promised:
            return known
        return await self.fetch(topic, deadline)

    async def for_sending(self, topic: str, new_queues: int, deadline: Deadline) -> TopicRoute:
        """Returns the topic's route, or the one that it will have once a send has created it.

        Raises:
            RouteNotFound: the topic does not exist, and no broker creates topics automatically.
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
                f"topic {topic!r} does not exist, and no broker creates topics automatically"
            ) from None
        made = promise(topic, template, new_queues)
        return self._routes.setdefault(topic, made)

    # The fetch is a task of its own, and callers only wait for it. If one caller is cancelled or
    # reaches its deadline, the others still get the route. So many sends to a new topic cost one
    # request to a name server.
    async def fetch(self, topic: str, deadline: Deadline) -> TopicRoute:
        """Fetches the topic's route; concurrent callers share one request and its result.

        Raises:
            RouteNotFound: no name server knows the topic.
            TransportError: no name server answered in time.
            ClosedError: the client was closed meanwhile.
        """
        task = self._fetching.get(topic)
        if task is None:
            task = asyncio.ensure_future(self._fetch(topic))
            task.add_done_callback(_retrieve)
            self._fetching[topic] = task
        await asyncio.wait([task], timeout=None if deadline.is_never else deadline.left())
        if not task.done():
            raise CallTimeout(f"no name server returned the route of {topic!r} in time")
        if task.cancelled():
            raise ClosedError("the client is closed")
        return task.result()

    async def names(self, deadline: Deadline) -> list[str]:
        """Returns all topics that the name servers know, except those of clusters and brokers.

        Raises:
            TransportError, ReplyError: every name server failed; this is the last error.
        """

        async def listed(address: str) -> set[str]:
            topics = await self._list(address, TopicNames(), deadline)
            own = await self._list(address, SystemTopicsOfNameServer(), deadline)
            return topics - own - {f"{name}{REPLY_SUFFIX}" for name in own}

        failures: list[SprocketError] = []
        answer = await first_answer(self._nameservers, listed, failures=failures)
        if answer is None:
            raise failures[-1]
        self._nameservers.answered(answer[0])
        return sorted(answer[1])

    async def _list(self, address: str, header: Header, deadline: Deadline) -> set[str]:
        reply = await self._pool.ask(address, header, deadline=deadline)
        return set(TopicList.decode(reply.body).topic_list)

    async def refresh(self) -> None:
        """Fetches all known routes again; a route that cannot be fetched stays unchanged."""
        for topic in self.topics:
            try:
                await self.fetch(topic, Deadline.never())
            except SprocketError as error:
                logger.debug("the route of %s is not refreshed: %s", topic, error)

    async def close(self) -> None:
        """Cancels the running fetches."""
        tasks = list(self._fetching.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, topic: str) -> TopicRoute:
        try:
            found = read_route(topic, await self._ask(topic))
        finally:
            self._fetching.pop(topic, None)
        is_changed = self._routes.get(topic) != found
        self._routes[topic] = found
        self._update_addresses(found, has_other_brokers=is_changed)
        if is_changed and self.on_change is not None:
            self.on_change(topic)
        return found

    # The newest route counts for each broker in it, whatever older routes of other topics say.
    def _update_addresses(self, found: TopicRoute, *, has_other_brokers: bool) -> None:
        before = self._addresses
        is_known = all(before.get(name) == each for name, each in found.addresses.items())
        if is_known and not has_other_brokers:
            return
        now = {**before, **found.addresses}
        if has_other_brokers:
            named = {broker for route in self._routes.values() for broker in route.addresses}
            now = {broker: numbers for broker, numbers in now.items() if broker in named}
        self._addresses = now
        self.moves.rise(self.moves.value + 1)
        for broker, numbers in found.addresses.items():
            if (master := numbers.get(MASTER)) is None:
                continue
            self._reachability.answered(f"broker {broker}")  # it had no address while it had none
            former = self._masters.get(broker)
            self._masters[broker] = master
            if former not in (None, master) and self.on_new_master is not None:
                self.on_new_master(broker, former or "")

    async def _ask(self, topic: str) -> Route:
        """Asks the name servers; a broken or silent one must not hide what another knows."""
        failures: list[SprocketError] = []
        answer = await first_answer(
            self._nameservers,
            lambda address: self._ask_one(address, topic),
            failures=failures,
            unknown=TopicNotFound,
        )
        if answer is None:
            error = no_route(topic, failures)
            if is_shut_out(error):
                self._reachability.refused("this client", f"find topic {topic}", error)
            elif not isinstance(error, RouteNotFound):
                self._reachability.failed(self._everyone, failures[-1])
            raise error
        self._reachability.answered(self._everyone)
        self._reachability.succeeded("this client", f"find topic {topic}")
        self._reachability.answered(f"name server {answer[0]}")
        self._nameservers.answered(answer[0])
        return answer[1]

    async def _ask_one(self, address: str, topic: str) -> Route:
        header = RouteOfTopic(topic=topic, accept_standard_json_only=True)
        deadline = Deadline.after_ms(self._timeout_ms)
        try:
            reply = await self._pool.ask(address, header, deadline=deadline)
            return Route.decode(reply.body)
        except TopicNotFound:
            raise
        except SprocketError as error:
            if not is_shut_out(error):
                self._reachability.failed(f"name server {address}", error, level=logging.INFO)
            raise


def _retrieve(task: asyncio.Task[TopicRoute]) -> None:
    """Reads the task's exception, so that asyncio does not log it if every caller has given up."""
    if not task.cancelled():
        task.exception()
