"""Leases on queues, for ordered consumption: taken before a queue is read, renewed, given back.

A broker grants a lease for 60 s; it is renewed every 20 s and trusted for 30 s, so that there is
time between the end of our trust and the moment another member may get it.

Source: RebalanceImpl.lock, lockAll, unlock, ProcessQueue.isLockExpired of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.client.session.session import Session
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues

logger = logging.getLogger(__name__)

#: Seconds that a lease is trusted, from the moment it was asked for.
TRUST = 30.0


class Leases:
    """Asks brokers for one consumer group.

    Args:
        session: connections and routes.
        group: the consumer group.
        timeout_ms: how long one question may take.
    """

    def __init__(self, session: Session, group: str, timeout_ms: int) -> None:
        self._session = session
        self._group = group
        self._timeout_ms = timeout_ms
        #: Whatever was asked for and not given back: it may be ours.
        self._asked: set[QueueId] = set()

    async def take(self, queues: Iterable[QueueId]) -> dict[QueueId, float | None]:
        """Takes or renews leases.

        Returns:
            For each queue whose broker answered: until when to trust the lease (on the loop's
            clock), or None if another member has it. Queues of brokers that did not answer are
            left out.
        """
        queues = list(queues)
        self._asked.update(queues)
        trusted_until = asyncio.get_running_loop().time() + TRUST
        answers: dict[QueueId, float | None] = {}
        for broker, mine in sorted(_by_broker(queues).items()):
            try:
                granted = await self._lock(broker, mine)
            except SprocketError as error:
                logger.info("%s: leases at %s: %s", self._group, broker, error)
                continue
            answers |= {queue: trusted_until if queue in granted else None for queue in mine}
        return answers

    async def give_back(self, queues: Iterable[QueueId]) -> None:
        """Gives leases back; those that cannot be given back run out by themselves."""
        queues = list(queues)
        self._asked.difference_update(queues)
        for broker, mine in sorted(_by_broker(queues).items()):
            try:
                address = self._session.address(broker)
                deadline = Deadline.after_ms(self._timeout_ms)
                await self._session.pool.ask(
                    address, UnlockQueues(), body=self._body(mine), deadline=deadline
                )
            except SprocketError as error:
                logger.info("%s: leases at %s: %s", self._group, broker, error)

    async def give_back_all(self, *, but: Collection[QueueId] = ()) -> None:
        """Gives back all that may be ours, except for some, which run out by themselves."""
        await self.give_back(self._asked.difference(but))

    async def _lock(self, broker: str, queues: list[QueueId]) -> set[QueueId]:
        address = self._session.address(broker)
        deadline = Deadline.after_ms(self._timeout_ms)
        reply = await self._session.pool.ask(
            address, LockQueues(), body=self._body(queues), deadline=deadline
        )
        locked = LockedBody.decode(reply.body).locked
        return {QueueId(each.topic, each.broker_name, each.queue_id) for each in locked}

    def _body(self, queues: list[QueueId]) -> bytes:
        return LockBody(
            client_id=self._session.client_id,
            consumer_group=self._group,
            mq_set=[Queue(queue.broker, queue.number, queue.topic) for queue in queues],
            only_this_broker=False,
        ).encode()


def _by_broker(queues: Iterable[QueueId]) -> dict[str, list[QueueId]]:
    grouped: dict[str, list[QueueId]] = {}
    for queue in sorted(queues):
        grouped.setdefault(queue.broker, []).append(queue)
    return grouped
