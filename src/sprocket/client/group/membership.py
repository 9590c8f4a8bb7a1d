"""A consumer as a member of its group: which queues it holds, fetches from and commits.

It rebalances every 20 seconds and whenever members or routes change, and performs the instructions
of `rebalance`: acquire (find the position, start fetching) and release (stop, commit at once).

After the release of a queue, running listener calls finish, but their results have no effect: the
next holder starts at the offset that was committed at the release.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from sprocket.base.backoff import pauses
from sprocket.base.errors import SprocketError
from sprocket.client.assign import average, strategy_of
from sprocket.client.base.subscription import Subscription
from sprocket.client.base.waiting import either
from sprocket.client.fetching.feed_parts import FeedParts
from sprocket.client.fetching.fetcher import Feed
from sprocket.client.fetching.statistics import WindowStatistics
from sprocket.client.group.leases import Leases
from sprocket.client.group.lookup import RouteLookup, TopicMembers
from sprocket.client.group.offset_store import OffsetStore
from sprocket.client.group.offsets import StartPosition
from sprocket.client.group.rebalance import Acquire, Instruction, Rebalance
from sprocket.client.group.shares import MembershipOptions, Shares
from sprocket.client.group.slices import InSlices, cancel_all
from sprocket.client.session.session import Session
from sprocket.message.queue import QueueId
from sprocket.protocol.bodies import ConsumerData

logger = logging.getLogger(__name__)

#: Seconds before the next rebalance after one that was incomplete: the first pause, the longest.
_SOON = 1.0
_SOON_LONGEST = 5.0


class _Held(NamedTuple):
    feed: Feed
    task: asyncio.Task[None]


class Membership:
    """One consumer's membership in its group.

    Args:
        subscriptions: by topic, including the group's retry topic; the owner may change it.
        beginning: where queues without a committed offset start.
        parts: what the feeds share.
        options: the options; None for a clustering push consumer.
    """

    def __init__(
        self,
        subscriptions: Mapping[str, Subscription],
        beginning: StartPosition,
        parts: FeedParts,
        *,
        options: MembershipOptions | None = None,
    ) -> None:
        options = options or MembershipOptions()
        self.group = parts.group
        self._subscriptions = subscriptions
        self._parts = parts
        self._session: Session = parts.session
        self._config = parts.config
        self._options = options
        self._progress = OffsetStore(parts, beginning, local=options.local)
        #: Ordered consumption only.
        self._leases = None
        if parts.finish is not None and not parts.mode.is_broadcasting:
            self._leases = Leases(parts.session, parts.group, parts.config.call_timeout_ms)
        self._renew_now = asyncio.Event()
        self._routed = RouteLookup(parts.session, parts.group, parts.config.call_timeout_ms)
        is_alone = options.chosen is not None or parts.mode.is_broadcasting
        self._lookup = options.lookup_of(self._routed, is_alone=is_alone)
        strategy = average if is_alone else strategy_of(parts.config.assign)
        self._rebalance = Rebalance(parts.session.client_id, strategy)
        self._shares = Shares(parts.config, options.on_share)
        self._instructions = InSlices(self._perform, lambda: len(self._tasks))
        self._held: dict[QueueId, _Held] = {}
        #: Ordered consumption: queues that are released when their running batch ends.
        self._ending: dict[QueueId, Feed] = {}
        self._rebalance_now = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_leaving = False
        self._due_at = 0.0
        #: Whether feeds have yet to be updated with subscriptions that changed.
        self._is_outdated = False

    @property
    def queues(self) -> list[QueueId]:
        """The queues from which it fetches, sorted."""
        return sorted(self._held)

    @property
    def feeds(self) -> list[Feed]:
        """The feeds of the queues that it holds, sorted by queue."""
        return [held.feed for _, held in sorted(self._held.items())]

    def feed(self, queue: QueueId) -> Feed | None:
        """The feed of a queue; None if it does not hold the queue."""
        return held.feed if (held := self._held.get(queue)) is not None else None

    @property
    def windows(self) -> list[WindowStatistics]:
        """Statistics of the windows of the queues that it holds."""
        return [WindowStatistics.of(feed.queue, feed.window) for feed in self.feeds]

    def describe(self) -> ConsumerData:
        """Returns what heartbeats contain about it."""
        return ConsumerData(
            group_name=self.group,
            consume_type=self._parts.mode.consume_type,
            message_model=self._parts.mode.message_model,
            consume_from_where=self._progress.where,
            subscriptions=[each.describe() for each in self._subscriptions.values()],
        )

    def rebalance_soon(self) -> None:
        """Starts a rebalance now: the group's members or a route have changed."""
        self._rebalance_now.set()

    def lost(self, brokers: Collection[str]) -> None:
        """Distrusts the leases of brokers until they are renewed: others may have them now."""
        if self._leases is None:
            return
        for queue in [each for each in self._held if each.place in brokers]:
            self._held[queue].feed.window.trust(-math.inf)
        self._renew_now.set()

    async def start(self) -> None:
        """Joins the group at the brokers that can be reached, and starts to rebalance."""
        for topic in list(self._subscriptions):
            await self._routed.route(topic)
        if self._options.chosen is None:
            self._session.add_consumer(self)
            beat = asyncio.ensure_future(self._session.heartbeat())
            await asyncio.wait([beat], timeout=_SOON / 2)  # silent brokers learn of it later
        self._begin(self._rebalance_loop)
        self._begin(self._commit_loop)
        if self._leases is not None:
            self._begin(partial(self._renew_loop, self._leases))

    async def stop_fetching(self) -> None:
        """Stops fetching and rebalancing; the fetched messages stay."""
        self._is_leaving = True
        tasks = [*self._tasks, *(held.task for held in self._held.values())]
        self._instructions.stop()
        await cancel_all(tasks)

    async def leave(self) -> None:
        """Commits what is done, and leaves the group."""
        if self._parts.mode.commits:
            await self.commit_all()
        for held in self._held.values():
            held.feed.window.close()
        if self._leases is not None:
            feeds = [*self.feeds, *self._ending.values()]
            busy = [feed.queue for feed in feeds if feed.window.has_straggler]
            await self._leases.give_back_all(but=busy)
        self._held.clear()
        if self._options.chosen is None:
            await self._session.remove_consumer(self)

    def subscribed(self, fresh: Iterable[str] = ()) -> None:
        """Applies a changed subscription: sends heartbeats and rebalances.

        Args:
            fresh: topics that did not exist when the consumer started, so it reads them from their
                first message on.
        """
        for topic in fresh:
            self._routed.known_first[topic] = frozenset()
        if not self._is_outdated:  # once for all that change in one turn of the loop
            self._is_outdated = True
            asyncio.get_running_loop().call_soon(self._update_feeds)
        self._session.heartbeat_soon()
        self.rebalance_soon()

    def _update_feeds(self) -> None:
        self._is_outdated = False
        for queue, held in self._held.items():
            held.feed.subscribe(self._subscriptions.get(queue.topic, held.feed.subscription))

    # Rebalancing.

    async def _rebalance_loop(self) -> None:
        regular = self._config.rebalance_ms / 1000
        retry_pauses = None
        while True:
            self._rebalance_now.clear()
            if await self._rebalance_once():
                retry_pauses = None
                await either(self._rebalance_now, regular)
            else:
                retry_pauses = retry_pauses or pauses(_SOON, _SOON_LONGEST)
                await either(self._rebalance_now, min(regular, next(retry_pauses)))

    # The topics are handled one by one, so a topic whose route or members are unknown now keeps its
    # queues and does not delay the others. `_subscriptions` may change during each await, hence the
    # copy of its keys and the check after the lookup.
    async def _rebalance_once(self) -> bool:
        """Rebalances all topics once; returns whether everything needed was known."""
        is_settled = True
        for topic in list(self._subscriptions):
            found = await self._lookup.find(topic)
            if found is None:
                is_settled = False
                continue
            if topic in self._subscriptions:
                is_settled = self._share_out(topic, found) and is_settled
        for topic in {queue.topic for queue in self._held} - set(self._subscriptions):
            self._instructions.add(self._rebalance.unsubscribed(topic))
            self._set_share(topic)
        return is_settled

    def _share_out(self, topic: str, found: TopicMembers) -> bool:
        """Rebalances one topic; returns whether the strategy succeeded."""
        try:
            instructions = self._rebalance.update(topic, found.queues, found.members)
        except Exception:  # a user's strategy; the queues that are held stay held
            logger.exception("%s: the strategy failed for %s", self.group, topic)
            return False
        self._instructions.add(instructions)
        self._set_share(topic)
        return True

    def _set_share(self, topic: str) -> None:
        share = self._rebalance.wanted(topic)
        if self._shares.set(topic, share):
            limits = self._shares.limits(topic)
            for queue in self._held.keys() & set(share):
                self._held[queue].feed.limit(limits)

    # Acquiring and releasing.

    def _perform(self, instruction: Instruction) -> None:
        work = self._acquire if isinstance(instruction, Acquire) else self._release
        self._begin(partial(work, instruction.queue))

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
            self._rebalance_after()
            return
        feed.limit(self._shares.limits(queue.topic))
        feed.subscribe(self._subscriptions.get(queue.topic, feed.subscription))
        self._held[queue] = _Held(feed, asyncio.ensure_future(self._run(feed)))
        logger.info("%s: %s from %d", self.group, queue, feed.window.next_offset)
        self._instructions.add(self._rebalance.acquired(queue))
        if self._options.on_held is not None:
            self._options.on_held()

    async def _new_feed(self, queue: QueueId) -> Feed | None:
        """Returns a feed at the committed offset; None without a lease or without subscription."""
        trusted_until: float | None = math.inf
        if self._leases is not None:  # the previous holder commits before it returns the lease
            trusted_until = (await self._leases.take([queue])).get(queue)
        subscription = self._subscriptions.get(queue.topic)
        if subscription is None or trusted_until is None:
            return None
        is_late = queue not in self._routed.known_first.get(queue.topic, frozenset())
        feed = await self._progress.feed(queue, subscription, is_late=is_late)
        feed.window.trust(trusted_until)
        return feed

    async def _run(self, feed: Feed) -> None:
        try:
            await feed.run()
        except Exception:  # root of a task: the queue is acquired again at its committed offset
            logger.exception("%s: fetching from %s ended", self.group, feed.queue)
            feed.window.close()
            self._held.pop(feed.queue, None)
            self._rebalance.gave_up(feed.queue)
            self._rebalance_after()

    # One timer for all: with one for each queue that another member holds, requests would multiply.
    def _rebalance_after(self) -> None:
        loop = asyncio.get_running_loop()
        if self._due_at <= loop.time():
            self._due_at = loop.call_later(_SOON, self.rebalance_soon).when()

    async def _release(self, queue: QueueId) -> None:
        held = self._held.pop(queue, None)
        if held is not None:
            held.task.cancel()
            await asyncio.wait([held.task])
            await self._finish(held.feed)
            held.feed.window.close()
            await self._progress.keep(held.feed)
            if self._leases is not None:
                await self._leases.give_back([queue])
            logger.info("%s: %s released at %d", self.group, queue, held.feed.window.next_offset)
        self._instructions.add(self._rebalance.released(queue))

    async def _finish(self, feed: Feed) -> None:
        """Ordered consumption: waits for the end of the running batch, however long it takes.

        The lease is renewed meanwhile, so that no other member starts to read the queue.
        """
        if self._parts.finish is not None:
            self._ending[feed.queue] = feed
            await self._parts.finish(feed.window)
            self._ending.pop(feed.queue, None)

    # The feed is replaced, not changed, so replies and results for the old window have no effect.
    # While an ordered batch ends, the queue may be released or moved by another call, so the loop
    # repeats until the feed that has finished is still the current one.
    async def move(self, queue: QueueId, offset: int, *, commits: bool = True) -> None:
        """Continues a queue at an offset, and commits it; drops the queue's fetched messages.

        Does nothing if the queue is not held. In ordered consumption the running batch ends first;
        else the change is made before this method waits for anything.

        Args:
            commits: whether to commit the offset.
        """
        held = self._held.get(queue)
        while held is not None and self._parts.finish is not None:
            held.task.cancel()
            await self._parts.finish(held.feed.window)
            finished, held = held, self._held.get(queue)
            if held is finished:
                break
        if held is None or self._is_leaving:
            return
        held.task.cancel()
        held.feed.window.close()
        feed = Feed(queue, held.feed.subscription, offset, self._parts)
        feed.limit(self._shares.limits(queue.topic))
        feed.window.trust(held.feed.window.trusted_until)
        self._held[queue] = _Held(feed, asyncio.ensure_future(self._run(feed)))
        if commits:
            await self._progress.commit(feed)

    # Leases.

    async def _renew_loop(self, leases: Leases) -> None:
        while True:
            await either(self._renew_now, self._parts.renewal_ms / 1000)
            self._renew_now.clear()
            held = dict(self._held)
            answers = await leases.take([*held, *self._ending])
            for queue in [each for each in self._ending if answers.get(each, 0) is None]:
                del self._ending[queue]
            if len(answers) < len(held):  # a broker did not reply: renew again soon
                asyncio.get_running_loop().call_later(_SOON, self._renew_now.set)
            for queue, (feed, task) in held.items():
                if queue in answers and self._held.get(queue) == (feed, task):
                    self._renewed(queue, feed, answers[queue])

    def _renewed(self, queue: QueueId, feed: Feed, trusted_until: float | None) -> None:
        """Continues a queue whose lease is renewed; drops it if another member has the lease."""
        if trusted_until is not None:
            feed.window.trust(trusted_until)
            self._parts.offer(feed.window)
            return
        logger.warning("%s: the lease on %s was lost", self.group, queue)
        self._held.pop(queue).task.cancel()
        feed.window.close()
        self._rebalance.gave_up(queue)
        self._rebalance_after()

    async def commit_all(self) -> SprocketError | None:
        """Commits the offsets of all queues; returns the first error, or None."""
        return await self._progress.commit_all(self.feeds)

    async def _commit_loop(self) -> None:
        while True:
            await asyncio.sleep(self._config.commit_ms / 1000)
            if self._parts.mode.commits:
                await self.commit_all()

    def _begin(self, work: Callable[[], Awaitable[None]]) -> None:
        async def guarded() -> None:
            try:
                await work()
            except Exception:  # root of a task: the error must be logged
                logger.exception("%s: a task of the consumer ended", self.group)

        task = asyncio.ensure_future(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
