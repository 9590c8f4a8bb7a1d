"""The brokers behind a proxy: where topics are, what they and groups are, and requests to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConnectFailed,
    ReplyError,
    RouteNotFound,
    SprocketError,
    TopicNotFound,
    TransportError,
)
from sprocket.clientcore.routes import NameServers, TopicRoute, no_route, read_route
from sprocket.message.queue import LOGICAL_PREFIX, QueueId
from sprocket.message.topic_attributes import topic_type
from sprocket.protocol.bodies import ClusterInfo, GroupConfig, Route, TopicConfig
from sprocket.protocol.codes import MASTER
from sprocket.protocol.command import Command, Header
from sprocket.protocol.requests.group import GroupConfigOf
from sprocket.protocol.requests.route import ClusterOf, RouteOfTopic
from sprocket.protocol.requests.topic import TopicConfigOf
from sprocket.proxy.brokers.calls import BrokerCalls
from sprocket.proxy.brokers.fresh_values import FreshValues
from sprocket.proxy.config import ProxyConfig
from sprocket.proxy.messages import rocketmq_pb2 as pb
from sprocket.proxy.messages.sent_messages import UNKNOWN_TYPE
from sprocket.proxy.messages.statuses import CallRefused
from sprocket.remoting.alternatives import first_answer
from sprocket.remoting.pool import Pool

#: A route is not asked for more often because of one broker, s.
_AGAIN_SECONDS = 1.0


class KnownTopic(NamedTuple):
    """A topic as the name servers know it.

    Attributes:
        route: their answer.
        writable: the queues to send to, in the order in which message groups choose.
        readable: the brokers to receive from.
        masters: by broker name, the master's address.
    """

    route: Route
    writable: tuple[QueueId, ...]
    readable: tuple[str, ...]
    masters: dict[str, str]


class GroupFacts(NamedTuple):
    """A consumer group, or that the brokers have none of this name."""

    config: GroupConfig | None


class Brokers:
    """The brokers.

    Args:
        calls: asks brokers.
        pool: connections to the name servers.
        nameservers: their addresses, at least one.
        inner: the address of a broker in the same process, if there is one.

    Attributes:
        call: sends a request to a broker; see `BrokerCalls`.
        topics: routes by topic.
    """

    def __init__(
        self,
        calls: BrokerCalls,
        pool: Pool,
        nameservers: Sequence[str],
        config: ProxyConfig,
        *,
        inner: str | None = None,
    ) -> None:
        self.call = calls.call
        self._inner = inner
        self._pool = pool
        self._nameservers = NameServers(nameservers)
        self._config = config
        fresh = config.route_refresh_ms / 1000
        self.topics = FreshValues(
            self._fetch_topic, fresh_seconds=fresh, gone=(RouteNotFound, TopicNotFound)
        )
        self._types = FreshValues(self._fetch_type, fresh_seconds=fresh)
        self._groups = FreshValues(self._fetch_group, fresh_seconds=fresh)
        #: By broker name and by address, from any route.
        self._masters: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._loop = asyncio.get_running_loop()
        #: By broker name, when its master was found to be another one or away.
        self._failed_at: dict[str, float] = {}

    def is_inner(self, address: str) -> bool:
        """Whether a broker is in the same process, where calls can be cancelled."""
        return address == self._inner

    def deadline(self) -> Deadline:
        """For a request to a broker that begins now."""
        return Deadline.after_ms(self._config.call_timeout_ms)

    # Topics.

    async def topic(self, name: str) -> KnownTopic:
        """The topic.

        Raises:
            RouteNotFound: no name server knows it.
            TransportError: no name server answers.
        """
        return await self.topics.of(name, self.deadline())

    async def _fetch_topic(self, name: str) -> KnownTopic:
        failures: list[SprocketError] = []
        header = RouteOfTopic(topic=name, accept_standard_json_only=True)

        async def asked(address: str) -> Route:
            reply = await self._pool.ask(address, header, deadline=self.deadline())
            return Route.decode(reply.body)

        answer = await first_answer(
            self._nameservers, asked, failures=failures, unknown=TopicNotFound
        )
        if answer is None:
            error = no_route(name, failures)
            if isinstance(error, RouteNotFound):
                raise RouteNotFound(f"No topic route info in name server for the topic: {name}")
            raise error
        self._nameservers.answered(answer[0])
        return self._known(answer[1], read_route(name, answer[1]))

    def _known(self, route: Route, read: TopicRoute) -> KnownTopic:
        masters = {
            broker: numbers[MASTER]
            for broker, numbers in read.addresses.items()
            if MASTER in numbers and not broker.startswith(LOGICAL_PREFIX)
        }
        self._masters.update(masters)
        self._names.update({address: broker for broker, address in masters.items()})
        readable = tuple(
            dict.fromkeys(each.broker for each in read.readable if each.broker in masters)
        )
        writable = tuple(each for each in read.writable if each.broker in masters)
        return KnownTopic(route, writable, readable, masters)

    def address(self, broker: str) -> str | None:
        """The address of a broker's master, if a route had it."""
        return self._masters.get(broker)

    def name_at(self, address: str) -> str | None:
        """The name of the broker at an address, if a route had it."""
        return self._names.get(address)

    def masters(self) -> dict[str, str]:
        """The masters of all brokers that have been in a route, by name."""
        return dict(self._masters)

    async def address_of(self, broker: str, topic: str) -> str:
        """The address of a broker's master; if it is not known, the topic's route is fetched.

        A name that no broker has comes from a client, and costs others nothing: one route a second.

        Raises:
            CallRefused: no route has it.
            SprocketError: as `topic`.
        """
        found = self._masters.get(broker)
        if found is None:
            since = self._failed_at.get(broker, self._loop.time() - _AGAIN_SECONDS)
            route = await self.topics.newer(topic, self.deadline(), since)
            found = route.masters.get(broker)
        if found is None:
            raise CallRefused(pb.BAD_REQUEST, f"no route has the address of broker {broker!r}")
        return found

    def failed(self, topic: str, broker: str) -> None:
        """Records that a broker of a topic does not answer as its route promises."""
        now = self._loop.time()
        if now - self._failed_at.get(broker, -_AGAIN_SECONDS) < _AGAIN_SECONDS:
            return
        self._failed_at[broker] = now
        self.topics.age(topic)
        if (address := self._masters.pop(broker, None)) is not None:
            self._names.pop(address, None)

    def lost(self, topic: str) -> None:
        """Records that a broker has no such topic, against its route: it was deleted, and may have
        been made again as another one."""
        self.topics.age(topic)
        self._types.age(topic)

    # What topics and groups are.

    def type_known(self, topic: str) -> str | None:
        """The type of messages that a topic is for, if it is known without asking."""
        return self._types.known(topic)

    async def type_of(self, topic: str) -> str:
        """The type of messages that a topic is for; `UNSPECIFIED` if no broker says it.

        Raises:
            SprocketError: as `topic`.
        """
        return await self._types.of(topic, self.deadline())

    async def _fetch_type(self, topic: str) -> str:
        masters = tuple((await self.topic(topic)).masters.values())
        reply, _ = await self._first(masters, TopicConfigOf(topic=topic))
        if reply is None:
            return UNKNOWN_TYPE
        return topic_type(TopicConfig.decode(reply.body).attributes).value

    async def group(self, name: str, topic: str | None = None) -> GroupConfig | None:
        """A consumer group; None if the brokers have none of this name.

        Args:
            topic: one that it reads, by which brokers are found if none is known yet.

        Raises:
            TransportError: no broker answers.
        """
        if (known := self._groups.known(name)) is not None:
            return known.config
        if not self._masters and topic is not None:
            await self.topic(topic)
        return (await self._groups.of(name, self.deadline())).config

    def group_changed(self, name: str) -> None:
        """Has a group asked for again: it has been made meanwhile."""
        self._groups.age(name)

    async def _fetch_group(self, name: str) -> GroupFacts:
        masters = await self._any_masters()
        reply, is_sure = await self._first(masters, GroupConfigOf(group=name))
        if reply is not None:
            return GroupFacts(GroupConfig.decode(reply.body))
        known = self._groups.known(name)
        if not is_sure and known is not None and known.config is not None:
            raise ConnectFailed(f"the broker that has group {name} may be away")
        return GroupFacts(None)

    async def _first(self, addresses: Sequence[str], header: Header) -> tuple[Command | None, bool]:
        """The first success of some brokers; without one, whether all of them have answered.

        Raises:
            TransportError: none of them answers.
        """
        failures: list[SprocketError] = []
        answer = await first_answer(
            addresses,
            lambda address: self._asked(address, header),
            failures=failures,
            unknown=ReplyError,
        )
        if answer is not None:
            return answer[1], True
        refusals = sum(isinstance(each, ReplyError) for each in failures)
        if failures and not refusals:
            raise failures[-1]
        return None, refusals == len(addresses)

    async def ask_any(self, header: Header) -> Command:
        """The reply of the first broker that answers; its code is 0.

        Raises:
            TransportError: none answers.
            ReplyError: it refuses.
        """
        failure: SprocketError = TransportError("no broker is registered")
        for address in await self._any_masters():
            try:
                return await self._asked(address, header)
            except TransportError as error:
                failure = error
        raise failure

    async def _any_masters(self) -> list[str]:
        if self._masters:
            return list(self._masters.values())
        failures: list[SprocketError] = []

        async def asked(address: str) -> ClusterInfo:
            reply = await self._pool.ask(address, ClusterOf(), deadline=self.deadline())
            return ClusterInfo.decode(reply.body)

        answer = await first_answer(self._nameservers, asked, failures=failures)
        if answer is None:
            raise failures[-1]
        brokers = answer[1].broker_addr_table.values()
        return [each.broker_addrs[MASTER] for each in brokers if MASTER in each.broker_addrs]

    async def _asked(self, address: str, header: Header) -> Command:
        outcome = self.call(address, header, deadline=self.deadline())
        reply = outcome if isinstance(outcome, Command) else await outcome
        return reply.checked()

    async def close(self) -> None:
        """Cancels what is in progress."""
        for values in (self.topics, self._types, self._groups):
            await values.close()
