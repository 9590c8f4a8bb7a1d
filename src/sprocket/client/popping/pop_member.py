"""A member of a group that pops: what heartbeats contain about it, and where it can pop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.client.base.subscription import Subscription
from sprocket.client.fetching.fetcher import Feed
from sprocket.client.popping.pop_client import ALL_QUEUES
from sprocket.client.session.session import Session
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import ConsumerData
from sprocket.protocol.codes import MASTER

#: The kind of a popping consumer in heartbeats. Source: ConsumeType of RocketMQ 5.x.
CONSUME_POP = "CONSUME_POP"


class PopMember:
    """One popping consumer's membership in its group.

    Args:
        subscriptions: by topic; the owner may change it.
        where: where the group starts, in RocketMQ's words.
        on_change: is called when a route or the group's members have changed.
    """

    def __init__(
        self,
        session: Session,
        group: str,
        subscriptions: Mapping[str, Subscription],
        *,
        where: str,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self.group = group
        self._subscriptions = subscriptions
        self._where = where
        self._on_change = on_change

    @property
    def feeds(self) -> list[Feed]:
        """It owns no queues."""
        return []

    async def move(self, queue: QueueId, offset: int) -> None:
        """Does nothing: brokers keep the positions of popping groups themselves."""

    def describe(self) -> ConsumerData:
        """Returns what heartbeats contain about it."""
        return ConsumerData(
            group_name=self.group,
            consume_type=CONSUME_POP,
            message_model="CLUSTERING",
            consume_from_where=self._where,
            subscriptions=[each.describe() for each in self._subscriptions.values()],
        )

    def lost(self, brokers: Collection[str]) -> None:
        """Does nothing: a handle counts on every connection."""

    def rebalance_soon(self) -> None:
        """Has the owner find new brokers."""
        self._on_change()

    async def places(self, timeout_ms: int) -> tuple[list[QueueId], list[SprocketError]]:
        """All queues of each subscribed topic at each broker, as queues with the number -1.

        Returns:
            These, sorted, and why the routes of some topics are not known.
        """
        found, failures = [], []
        for topic in sorted(self._subscriptions):
            try:
                route = await self._session.routes.of(topic, Deadline.after_ms(timeout_ms))
            except SprocketError as error:
                failures.append(error)
                continue
            names = dict.fromkeys(queue.broker for queue in route.readable)
            # A broker without a master gets one, or its messages cannot be popped: it is asked only
            # if no other can be.
            led = [name for name in names if MASTER in route.addresses.get(name, ())]
            found += [QueueId(topic, name, ALL_QUEUES) for name in led or names]
        return found, failures
