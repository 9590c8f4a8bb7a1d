"""Finds what a member pops and what it pulls.

By itself a popping consumer pops all queues of its topics at all brokers, and pulls its group's
retry topic, where messages lie that members sent back when they pulled. Or the brokers decide, as
operators set it for a topic and a group, which queues it pops and which it pulls.

Source: RebalanceImpl.getRebalanceResultFromBroker and tryQueryAssignment of RocketMQ 5.x.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from sprocket.base.deadline import Deadline
from sprocket.base.errors import RequestNotSupported, SprocketError
from sprocket.client.group.lookup import Lookup, RouteLookup, SharedLookup, TopicMembers
from sprocket.client.popping.pop_client import ALL_QUEUES
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.bodies import Assignment, AssignmentBody, AssignmentQuery
from sprocket.protocol.codes import MASTER
from sprocket.protocol.requests.group import QueryAssignment

logger = logging.getLogger(__name__)

#: Takes a topic and what is popped of it.
OnPopped = Callable[[str, Collection[QueueId]], None]
_POP = "POP"
#: A broker that assigns more queues of one topic is broken.
_QUEUES_MAX = 65_536


class PopLookup:
    """Everything is popped, but for the group's retry topic.

    Args:
        routed: finds the routes of topics.
        assign: is called with each topic and what is popped of it.
    """

    def __init__(self, routed: RouteLookup, assign: OnPopped) -> None:
        self._routed = routed
        self._shared = SharedLookup(routed)
        self._assign = assign

    async def find(self, topic: str) -> TopicMembers | None:
        """The queues to pull; None if they cannot be found out now."""
        if is_retry_topic(topic):
            self._assign(topic, ())
            return await self._shared.find(topic)
        route = await self._routed.route(topic)
        if route is None:
            return None
        brokers = dict.fromkeys(queue.broker for queue in route.readable)
        self._assign(topic, [QueueId(topic, broker, ALL_QUEUES) for broker in brokers])
        return TopicMembers((), [self._routed.session.client_id])


class AssignedLookup:
    """The brokers decide what is popped, what is pulled, and by whom.

    Args:
        routed: finds the routes of topics.
        assign: is called with each topic and what is popped of it.
        strategy: RocketMQ's name of the assignment strategy.
    """

    def __init__(self, routed: RouteLookup, assign: OnPopped, strategy: str) -> None:
        self._routed = routed
        self._shared: Lookup = SharedLookup(routed)
        self._assign = assign
        self._strategy = strategy
        self._is_refused = False

    async def find(self, topic: str) -> TopicMembers | None:
        """The queues to pull; None if they cannot be found out now."""
        route = await self._routed.route(topic)
        if route is None:
            return None
        nearest = self._routed.session.routes.nearest
        found = [where for each in sorted(route.addresses) if (where := nearest(each, MASTER))]
        is_connected = self._routed.session.pool.is_connected
        for _, address in sorted(found, key=lambda each: not is_connected(each[1])):
            try:
                assignments = await self._ask(address, topic)
            except RequestNotSupported as error:  # RocketMQ 4.x
                if not self._is_refused:
                    logger.warning(
                        "%s assigns no queues, so the members of %s share them: %s",
                        address, self._routed.group, error,
                    )  # fmt: skip
                self._is_refused = True
                self._assign(topic, ())
                return await self._shared.find(topic)
            except SprocketError as error:
                logger.debug("%s: queues of %s: %s", self._routed.group, topic, error)
                continue
            return self._assigned(topic, assignments)
        return None

    async def _ask(self, address: str, topic: str) -> list[Assignment] | None:
        session = self._routed.session
        deadline = Deadline.after_ms(self._routed.timeout_ms)
        if session.greeted(address) is None:  # a broker assigns to members that it knows
            await session.register(address)
        query = AssignmentQuery(
            client_id=session.client_id,
            consumer_group=self._routed.group,
            message_model="CLUSTERING",
            strategy_name=self._strategy,
            topic=topic,
        )
        reply = await session.pool.ask(
            address, QueryAssignment(), body=query.encode(), deadline=deadline
        )
        return AssignmentBody.decode(reply.body).message_queue_assignments

    def _assigned(self, topic: str, assignments: list[Assignment] | None) -> TopicMembers | None:
        if assignments is None or len(assignments) > _QUEUES_MAX:
            return None
        pulled, popped = set[QueueId](), set[QueueId]()
        for each in assignments:
            queue = each.message_queue
            if queue is None or queue.topic != topic:
                logger.warning("a broker assigned %s while asked for topic %s", queue, topic)
                continue
            is_popped = each.mode == _POP
            here = QueueId(topic, queue.broker_name, max(queue.queue_id, ALL_QUEUES))
            (popped if is_popped else pulled).add(here)
        self._assign(topic, popped)
        return TopicMembers(tuple(sorted(pulled)), [self._routed.session.client_id])
