"""Leases on queues, for ordered consumption: acquired before a queue is read, renewed, returned.

A broker grants a lease for 60 s. A consumer renews it every 20 s and trusts it for 30 s, so it
stops well before another member may get the lease.

Source: RebalanceImpl.lock, lockAll, unlock, ProcessQueue.isLockExpired of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Iterator

from sprocket.base.deadline import Deadline
from sprocket.base.errors import SprocketError
from sprocket.client.session.session import Session
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import LockBody, LockedBody, Queue
from sprocket.protocol.requests.lock import LockQueues, UnlockQueues

logger = logging.getLogger(__name__)

#: Seconds for which a lease is trusted, from the moment of the request.
TRUST = 30.0
#: Queues in one request: 16,384 would be longer than a broker takes, and their reply long work.
_SLICE = 1_000
#: Seconds after which a lease of another member is reported: one that died has lost it by then.
_LONG = 90.0


class Leases:
    """Acquires and returns the leases of one member of a consumer group.

    Args:
        session: connections and routes.
        group: the consumer group.
        timeout_ms: how long one request may take.
    """

    def __init__(self, session: Session, group: str, timeout_ms: int) -> None:
        self._session = session
        self._group = group
        self._timeout_ms = timeout_ms
        #: Since when another member has a queue that this one should have, on the loop's clock.
        self._others_since: dict[QueueId, float] = {}
        #: Queues whose lease was requested and not returned: this member may have it.
        self._asked: set[QueueId] = set()

    async def take(self, queues: Iterable[QueueId]) -> dict[QueueId, float | None]:
        """Acquires or renews leases.

        Returns:
            For each queue whose broker replied: until when the lease is trusted, on the loop's
            clock, or None if another member has it. Queues of other brokers are missing.
        """
        queues = list(queues)
        self._asked.update(queues)
        answers: dict[QueueId, float | None] = {}
        silent: set[str] = set()
        for broker, mine in _slices(queues):
            if broker in silent:
                continue
            trusted_until = asyncio.get_running_loop().time() + TRUST
            try:
                granted = await self._lock(broker, mine)
            except SprocketError as error:
                logger.info("%s: leases at %s: %s", self._group, broker, error)
                self._session.search.failed(broker, error, mine[0].topic)
                silent.add(broker)
                continue
            for queue in mine:
                answers[queue] = trusted_until if queue in granted else None
                self._note(queue, is_granted=queue in granted)
        return answers

    def _note(self, queue: QueueId, *, is_granted: bool) -> None:
        """Reports a queue that another member holds longer than a lease lasts without it."""
        who, what = f"group {self._group}", f"get the lease on {queue}"
        if is_granted:
            self._others_since.pop(queue, None)
            self._session.reachability.succeeded(who, what)
            return
        now = asyncio.get_running_loop().time()
        if now - self._others_since.setdefault(queue, now) > _LONG:
            self._session.reachability.refused(who, what, "another member holds it")

    async def give_back(self, queues: Iterable[QueueId]) -> None:
        """Returns leases to their brokers; a lease that cannot be returned expires."""
        queues = list(queues)
        self._asked.difference_update(queues)
        silent: set[str] = set()
        for broker, mine in _slices(queues):
            if broker in silent:
                continue
            try:
                address = self._session.address(broker)
                deadline = Deadline.after_ms(self._timeout_ms)
                await self._session.pool.ask(
                    address, UnlockQueues(), body=self._body(mine), deadline=deadline
                )
            except SprocketError as error:
                logger.info("%s: leases at %s: %s", self._group, broker, error)
                silent.add(broker)

    async def give_back_all(self, *, but: Collection[QueueId] = ()) -> None:
        """Returns all leases that this member may have, except those of `but`, which expire."""
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


def _slices(queues: Iterable[QueueId]) -> Iterator[tuple[str, list[QueueId]]]:
    """The queues of one request after the other, with the name of their broker."""
    grouped: dict[str, list[QueueId]] = {}
    for queue in sorted(queues):
        grouped.setdefault(queue.place, []).append(queue)
    for broker, mine in sorted(grouped.items()):
        for at in range(0, len(mine), _SLICE):
            yield broker, mine[at : at + _SLICE]
