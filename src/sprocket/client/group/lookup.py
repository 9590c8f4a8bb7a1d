"""Finds what a rebalance needs to know: a topic's queues and the group's members.

Source: RebalanceImpl.rebalanceByTopic, MQClientInstance.findConsumerIdList of RocketMQ 5.x.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConnectFailed,
    ReplyError,
    RouteNotFound,
    SprocketError,
    TransportError,
)
from sprocket.client.session.session import Session
from sprocket.clientcore.routes import TopicRoute
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.bodies import GroupMemberList
from sprocket.protocol.codes import MASTER
from sprocket.protocol.requests.client import GroupMembers
from sprocket.remoting.alternatives import first_answer

logger = logging.getLogger(__name__)


class TopicMembers(NamedTuple):
    """A topic's queues, and the client ids of the members that share them, including this one."""

    queues: tuple[QueueId, ...]
    members: list[str]


class Lookup(Protocol):
    """Finds which members share which queues."""

    async def find(self, topic: str) -> TopicMembers | None:
        """Returns the current queues and members; None if they cannot be found out now."""
        ...


class RouteLookup:
    """Finds the routes of topics.

    Args:
        session: connections and routes.
        group: the consumer group.
        timeout_ms: how long one request may take.
    """

    def __init__(self, session: Session, group: str, timeout_ms: int) -> None:
        self.session = session
        self.group = group
        self.timeout_ms = timeout_ms
        #: By topic, the queues that existed when its route was first requested.
        self.known_first: dict[str, frozenset[QueueId]] = {}

    async def route(self, topic: str) -> TopicRoute | None:
        """Returns the topic's route; None if it does not exist, no name server replies, or it may
        not be asked for."""
        deadline = Deadline.after_ms(self.timeout_ms)
        try:
            route = await self.session.routes.of(topic, deadline)
        except RouteNotFound as error:
            self.known_first.setdefault(topic, frozenset())
            if not is_retry_topic(topic):  # that is made by the first heartbeat
                self.session.reachability.refused(
                    f"group {self.group}", f"find topic {topic}", error
                )
            return None
        except (TransportError, ReplyError) as error:
            logger.debug("%s: route of %s: %s", self.group, topic, error)
            return None
        self.known_first.setdefault(topic, frozenset(route.readable))
        self.session.reachability.succeeded(f"group {self.group}", f"find topic {topic}")
        return route


class SharedLookup:
    """All members share the queues: finds the members at the brokers."""

    def __init__(self, routed: RouteLookup) -> None:
        self._routed = routed
        self._session = routed.session
        self._group = routed.group

    async def find(self, topic: str) -> TopicMembers | None:
        """As `Lookup.find`."""
        route = await self._routed.route(topic)
        members = None if route is None else await self._members(route)
        return None if route is None or members is None else TopicMembers(route.readable, members)

    # Every member must compute with the same list, and each broker knows all members, so the first
    # broker in order of names is used. A list without this member is useless: that broker has lost
    # our registration, so it gets a heartbeat, and the list is requested once more.
    async def _members(self, route: TopicRoute) -> list[str] | None:
        """Returns the client ids of the members; None if no broker's list contains this one."""
        nearest = self._session.routes.nearest
        found = [where for each in sorted(route.addresses) if (where := nearest(each, MASTER))]
        # The order is the same each time, but for brokers without a connection, which come last.
        addresses = sorted(
            (address for _, address in found),
            key=lambda address: not self._session.pool.is_connected(address),
        )
        answer = await first_answer(addresses, self._members_at, failures=[])
        return None if answer is None else answer[1]

    async def _members_at(self, address: str) -> list[str]:
        """Returns the client ids in one broker's list.

        Raises:
            TransportError: the broker does not answer, or its list does not contain this client.
        """
        for _ in range(2):
            members = await self._ask_members(address)
            if members is not None and self._session.client_id in members:
                return members
            if not await self._greeted(address):
                break
        raise ConnectFailed(f"{address} does not tell the members of {self._group}")

    async def _ask_members(self, address: str) -> list[str] | None:
        deadline = Deadline.after_ms(self._routed.timeout_ms)
        header = GroupMembers(consumer_group=self._group)
        try:
            reply = await self._session.pool.ask(address, header, deadline=deadline)
            return GroupMemberList.decode(reply.body).consumer_id_list
        except SprocketError as error:
            logger.debug("%s: members at %s: %s", self._group, address, error)
            return None

    async def _greeted(self, address: str) -> bool:
        try:
            await self._session.register(address)
        except SprocketError as error:
            logger.debug("%s: %s: %s", self._group, address, error)
            return False
        return True


class SoleLookup:
    """This member reads the queues alone, whatever other members exist.

    Args:
        routed: finds the routes of topics.
        chosen: returns the queues of a topic to read; None: all of them.
    """

    def __init__(
        self, routed: RouteLookup, chosen: Callable[[str], Iterable[QueueId]] | None = None
    ) -> None:
        self._routed = routed
        self._chosen = chosen

    async def find(self, topic: str) -> TopicMembers | None:
        """As `Lookup.find`."""
        route = await self._routed.route(topic)
        if route is None:
            return None
        queues = route.readable
        if self._chosen is not None:
            wanted = set(self._chosen(topic))
            queues = tuple(queue for queue in queues if queue in wanted)
        return TopicMembers(queues, [self._routed.session.client_id])
