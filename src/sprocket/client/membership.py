"""A push consumer as a member of its group: which queues it holds, fetches from and commits.

Looks at routes and member lists every 20 seconds and whenever something changed, and performs what
`rebalance` says: acquire (find the position, start fetching), release (stop, commit at once).

Once a queue is released its listeners under way finish, but their results count no more: the next
holder begins at the offset committed at release.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import NamedTuple

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import RouteNotFound, SprocketError, TransportError
from sprocket.client.config import ConsumerConfig
from sprocket.client.leases import Leases
from sprocket.client.offsets import Beginning, Offsets
from sprocket.client.pull import Feed, FeedParts
from sprocket.client.rebalance import Acquire, Instruction, Rebalance
from sprocket.client.routes import MASTER, TopicRoute
from sprocket.client.session import Session, either
from sprocket.client.subscription import Subscription
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import ConsumerData, GroupMemberList
from sprocket.protocol.requests.client import GroupMembers

logger = logging.getLogger(__name__)

#: Seconds before the next look when something was missing or failed: at first, at most.
_SOON = 1.0
_SOON_LONGEST = 5.0


class _Held(NamedTuple):
    feed: Feed
    task: asyncio.Task[None]


class Membership:
    """One consumer's part in its group.

    Args:
        subscriptions: by topic, the group's retry topic included; the owner may change it.
        beginning: where queues without a committed offset begin.
        parts: what its feeds share.
    """

    def __init__(
        self, subscriptions: Mapping[str, Subscription], beginning: Beginning, parts: FeedParts
    ) -> None:
        self.group = parts.group
        self._subscriptions = subscriptions
        self._beginning = beginning
        self._parts = parts
        self._session: Session = parts.session
        self._config: ConsumerConfig = parts.config
        self._offsets = Offsets(parts.session, parts.group, parts.config.call_timeout_ms)
        #: Ordered consumption only.
        self._leases = None
        if parts.finish is not None:
            self._leases = Leases(parts.session, parts.group, parts.config.call_timeout_ms)
        self._renew_now = asyncio.Event()
        self._rebalance = Rebalance(parts.session.client_id, parts.config.assign)
        self._held: dict[QueueId, _Held] = {}
        self._began_ms = parts.session.world.clock.now_ms()
        #: By topic, the queues that were there when it began, as far as name servers told.
        self._known_first: dict[str, frozenset[QueueId]] = {}
        self._again = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_leaving = False

    @property
    def queues(self) -> list[QueueId]:
        """Queues that it fetches from."""
        return sorted(self._held)

    @property
    def feeds(self) -> list[Feed]:
        """The queues that it holds, as it reads them."""
        return [held.feed for _, held in sorted(self._held.items())]

    def describe(self) -> ConsumerData:
        """What heartbeats say of it."""
        return ConsumerData(
            group_name=self.group,
            consume_type="CONSUME_PASSIVELY",
            message_model="CLUSTERING",
            consume_from_where=self._beginning.where,
            subscriptions=[each.describe() for each in self._subscriptions.values()],
        )

    def look_again(self) -> None:
        """Members of the group came or went, or a route changed."""
        self._again.set()

    def lost(self, address: str) -> None:
        """A connection broke. A broker that was started anew may have given our leases away."""
        if self._leases is None:
            return
        for queue, held in self._held.items():
            if self._session.routes.address(queue.broker) == address:
                held.feed.window.trusted_until = -math.inf
        self._renew_now.set()

    async def start(self) -> None:
        """Becomes a member, as far as brokers can be reached, and begins to look."""
        for topic in list(self._subscriptions):
            await self._route(topic)
        self._session.add_consumer(self)
        await self._session.beat()
        self._begin(self._keep_looking)
        self._begin(self._keep_committing)
        if self._leases is not None:
            self._begin(partial(self._keep_renewing, self._leases))

    async def stop_fetching(self) -> None:
        """Fetches and looks no more; what was fetched stays."""
        self._is_leaving = True
        tasks = [*self._tasks, *(held.task for held in self._held.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def leave(self) -> None:
        """Commits what is done, and is no member any more."""
        await self._commit_all()
        for held in self._held.values():
            held.feed.window.close()
        if self._leases is not None:
            await self._leases.give_back_all()
        self._held.clear()
        await self._session.remove_consumer(self)

    def subscribed(self) -> None:
        """A subscription came or went: tell the brokers, and look."""
        self._session.beat_soon()
        self.look_again()

    # Looking.

    async def _keep_looking(self) -> None:
        regular = self._config.rebalance_ms / 1000
        soon = None
        while True:
            self._again.clear()
            if await self._look():
                soon = None
                await either(self._again, regular)
            else:
                soon = soon or pauses(_SOON, _SOON_LONGEST)
                await either(self._again, min(regular, next(soon)))

    async def _look(self) -> bool:
        """One look at all topics; whether it told everything."""
        is_settled = True
        for topic in list(self._subscriptions):
            route = await self._route(topic)
            members = None if route is None else await self._members(route)
            if route is None or members is None:
                is_settled = False
                continue
            self._perform(self._rebalance.seen(topic, route.readable, members))
        for topic in {queue.topic for queue in self._held} - set(self._subscriptions):
            self._perform(self._rebalance.unsubscribed(topic))
        return is_settled

    async def _route(self, topic: str) -> TopicRoute | None:
        """The topic's route, or None if it has none, or nobody tells."""
        deadline = Deadline.after_ms(self._config.call_timeout_ms)
        try:
            route = await self._session.routes.of(topic, deadline)
        except RouteNotFound:
            self._known_first.setdefault(topic, frozenset())
            return None
        except TransportError as error:
            logger.info("%s: route of %s: %s", self.group, topic, error)
            return None
        self._known_first.setdefault(topic, frozenset(route.readable))
        return route

    async def _members(self, route: TopicRoute) -> list[str] | None:
        """Client ids of the group's members, this one among them; None if no broker tells so."""
        for broker in sorted(route.addresses):
            where = self._session.routes.nearest(broker, MASTER)
            if where is None:
                continue
            for _ in range(2):
                members = await self._ask_members(where[1])
                if members is not None and self._session.client_id in members:
                    return members
                # It does not know us yet, or any more: tell it, and ask once again.
                if not await self._greeted(where[1]):
                    break
        return None

    async def _ask_members(self, address: str) -> list[str] | None:
        deadline = Deadline.after_ms(self._config.call_timeout_ms)
        header = GroupMembers(consumer_group=self.group)
        try:
            reply = await self._session.pool.ask(address, header, deadline=deadline)
            return GroupMemberList.decode(reply.body).consumer_id_list
        except SprocketError as error:
            logger.debug("%s: members at %s: %s", self.group, address, error)
            return None

    async def _greeted(self, address: str) -> bool:
        try:
            await self._session.greet(address)
        except SprocketError as error:
            logger.info("%s: %s: %s", self.group, address, error)
            return False
        return True

    # Performing.

    def _perform(self, instructions: list[Instruction]) -> None:
        for instruction in instructions:
            if isinstance(instruction, Acquire):
                self._begin(partial(self._acquire, instruction.queue))
            else:
                self._begin(partial(self._release, instruction.queue))

    async def _acquire(self, queue: QueueId) -> None:
        try:
            feed = await self._new_feed(queue)
        except SprocketError as error:
            logger.info("%s: position in %s: %s", self.group, queue, error)
            feed = None
        if feed is None or self._is_leaving:
            if self._leases is not None:
                await self._leases.give_back([queue])
            self._rebalance.gave_up(queue)
            self._look_soon()
            return
        task = asyncio.ensure_future(self._run(feed))
        self._held[queue] = _Held(feed, task)
        logger.info("%s: %s from %d", self.group, queue, feed.window.next_offset)
        self._perform(self._rebalance.acquired(queue))

    async def _new_feed(self, queue: QueueId) -> Feed | None:
        """A feed at the group's position; None if another member has the lease, or nobody cares.

        A group without a position gets one at the beginning, which is committed.
        """
        trusted_until: float | None = math.inf
        if self._leases is not None:  # before the position: the last holder commits, then unlocks
            trusted_until = (await self._leases.take([queue])).get(queue)
        subscription = self._subscriptions.get(queue.topic)
        if subscription is None or trusted_until is None:
            return None
        feed = await self._feed_at_position(queue, subscription)
        feed.window.trusted_until = trusted_until
        return feed

    async def _feed_at_position(self, queue: QueueId, subscription: Subscription) -> Feed:
        committed = await self._offsets.committed(queue)
        if committed is not None:
            feed = Feed(queue, subscription, committed, self._parts)
            feed.committed = committed
            return feed
        is_late = queue not in self._known_first.get(queue.topic, frozenset())
        position = await self._offsets.beginning(
            queue, self._beginning, began_ms=self._began_ms, is_late=is_late
        )
        feed = Feed(queue, subscription, position, self._parts)
        await self._commit(feed)
        return feed

    async def _run(self, feed: Feed) -> None:
        try:
            await feed.run()
        except Exception:  # root of a task: the queue is acquired anew, from what was committed
            logger.exception("%s: fetching from %s ended", self.group, feed.queue)
            feed.window.close()
            self._held.pop(feed.queue, None)
            self._rebalance.gave_up(feed.queue)
            self._look_soon()

    def _look_soon(self) -> None:
        asyncio.get_running_loop().call_later(_SOON, self.look_again)

    async def _release(self, queue: QueueId) -> None:
        held = self._held.pop(queue, None)
        if held is not None:
            held.task.cancel()
            await asyncio.wait([held.task])
            if self._parts.finish is not None:
                await self._parts.finish(held.feed.window)
            held.feed.window.close()
            await self._commit(held.feed)
            if self._leases is not None:
                await self._leases.give_back([queue])
            logger.info("%s: %s released at %d", self.group, queue, held.feed.window.next_offset)
        self._perform(self._rebalance.released(queue))

    async def move(self, queue: QueueId, offset: int) -> None:
        """Goes on from an offset, which is committed; drops what was fetched of the queue.

        Nothing happens if the queue is not held.
        """
        held = self._held.get(queue)
        if held is None:
            return
        held.task.cancel()
        await asyncio.wait([held.task])
        if self._parts.finish is not None:
            await self._parts.finish(held.feed.window)
        held.feed.window.close()
        if self._held.get(queue) != held or self._is_leaving:
            return
        feed = Feed(queue, held.feed.subscription, offset, self._parts)
        feed.window.trusted_until = held.feed.window.trusted_until
        self._held[queue] = _Held(feed, asyncio.ensure_future(self._run(feed)))
        await self._commit(feed)

    # Leases.

    async def _keep_renewing(self, leases: Leases) -> None:
        while True:
            await either(self._renew_now, self._config.lease_renewal_ms / 1000)
            self._renew_now.clear()
            held = dict(self._held)
            answers = await leases.take(held)
            for queue, (feed, task) in held.items():
                if queue not in answers:  # its broker did not answer: ask again before long
                    asyncio.get_running_loop().call_later(_SOON, self._renew_now.set)
                elif self._held.get(queue) == (feed, task):
                    self._renewed(queue, feed, answers[queue])

    def _renewed(self, queue: QueueId, feed: Feed, trusted_until: float | None) -> None:
        """Goes on with a queue, or drops it if another member has its lease."""
        if trusted_until is not None:
            feed.window.trusted_until = trusted_until
            self._parts.offer(feed.window)
            return
        logger.warning("%s: the lease on %s was lost", self.group, queue)
        self._held.pop(queue).task.cancel()
        feed.window.close()
        self._rebalance.gave_up(queue)
        self._look_soon()

    # Committing.

    async def _keep_committing(self) -> None:
        while True:
            await asyncio.sleep(self._config.commit_ms / 1000)
            await self._commit_all()

    async def _commit_all(self) -> None:
        await asyncio.gather(*(self._commit(held.feed) for held in self._held.values()))

    async def _commit(self, feed: Feed) -> None:
        """Commits the feed's position if the broker does not have it; next time if it fails."""
        window = feed.window
        offset = window.committable
        if offset == feed.committed:
            return
        try:
            await self._offsets.commit(feed.queue, offset)
        except SprocketError as error:
            logger.info("%s: commit of %d in %s: %s", self.group, offset, feed.queue, error)
            return
        if feed.window is window:
            feed.committed = offset

    def _begin(self, work: Callable[[], Awaitable[None]]) -> None:
        async def guarded() -> None:
            try:
                await work()
            except Exception:  # root of a task: its end must not go unseen
                logger.exception("%s: a task of the consumer ended", self.group)

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
