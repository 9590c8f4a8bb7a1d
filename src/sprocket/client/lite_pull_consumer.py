"""The lite pull consumer: a member of a group, or a reader of assigned queues, that polls messages.

It fetches ahead in the background, and shares queues, commits offsets and limits memory with the
parts of the push consumer. The messages of a poll are consumed when the next poll or a commit
begins; until then the position stays before them. Messages of a released queue, and those fetched
before a seek, are not returned and move no position. Source: DefaultLitePullConsumerImpl of
RocketMQ 5.x. It pulls with code 11, which all brokers know.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Unpack

from sprocket.base.deadline import Deadline
from sprocket.base.errors import ClosedError, UsageError
from sprocket.client.base import arguments
from sprocket.client.base.lifecycle import Lifecycle
from sprocket.client.base.nameservers import nameserver_addresses
from sprocket.client.base.spanned import receives, settles
from sprocket.client.base.waiting import either
from sprocket.client.base.world import ClientEnvironment
from sprocket.client.config import LitePullConfig
from sprocket.client.delivery.polled_messages import PolledMessages
from sprocket.client.fetching.consume_mode import polling
from sprocket.client.fetching.feed_parts import FeedParts
from sprocket.client.fetching.fetcher import Feed
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters, Statistics
from sprocket.client.fetching.window import Window
from sprocket.client.group.discovery import Discovery
from sprocket.client.group.membership import Membership
from sprocket.client.group.offsets import BrokerOffsets, Start, StartPosition
from sprocket.client.group.remote_requests import MemberInfo, RemoteRequests
from sprocket.client.group.shares import MembershipOptions, OnShare
from sprocket.client.group.subscriptions import Subscriptions, Topics
from sprocket.client.session.session import Session
from sprocket.filter.choice import Filter, MessageSelector
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_consumer_group, check_topic


class LitePullConsumer(Lifecycle):
    """A consumer that returns messages to `poll`.

    Either subscribe to topics: the members of the group share their queues. Or assign queues by
    hand: then the consumer is not a member, but the committed offsets are those of the group::

        import asyncio
        from sprocket import LitePullConsumer

        async def main():
            async with LitePullConsumer("audit", nameservers="127.0.0.1:9876") as consumer:
                consumer.subscribe("orders", tags="paid")
                while messages := await consumer.poll(timeout_ms=10_000):
                    for message in messages:
                        print(message.queue, message.queue_offset, message.body)
                await consumer.commit()

        asyncio.run(main())

    Args:
        group: the consumer group's name.
        nameservers: `host:port`, or several, separated by `;` or as a list. None: the environment
            variable SPROCKET_NAMESERVERS, or else NAMESRV_ADDR.
        start: where a group without committed offsets starts: as for `PushConsumer`.
        config: sizes, times, and whether offsets are committed automatically.
        world: clock and randomness, for simulations.

    Raises:
        UsageError: the group's name or the start is invalid.
        ConfigError: there is no name server, or an address is invalid.

    Methods raise `ClosedError` if it is not started. It belongs to the event loop in which it was
    started, and only one task may use it. `sprocket.client.blocking` has the same without a loop.
    """

    def __init__(
        self,
        group: str,
        *,
        nameservers: str | Sequence[str] | None = None,
        start: Start = "last",
        config: LitePullConfig | None = None,
        world: ClientEnvironment | None = None,
    ) -> None:
        check_consumer_group(group)
        self.group = group
        self.config = arguments.settings(config, LitePullConfig)
        self._beginning = StartPosition.of(start)
        self._nameservers = nameserver_addresses(nameservers, os.environ)
        self._world = world
        self._subscriptions = Subscriptions()
        self._discovery: Discovery | None = None
        #: The queues that are assigned by hand; None without an assignment by hand.
        self._chosen: set[QueueId] | None = None
        self._on_share: OnShare | None = None
        self._pauses = Pauses()
        self._counters = Counters(group)
        self._session: Session | None = None
        self._joining: asyncio.Task[Membership] | None = None
        #: Set when messages or a queue have arrived, so that a waiting method checks again.
        self._changed = asyncio.Event()
        self._polled = PolledMessages(self._counters)
        self._is_polling = False

    @property
    def assignment(self) -> list[QueueId]:
        """The queues that this consumer reads now, sorted."""
        member = self._joined()
        return [] if member is None else member.queues

    @property
    def client_id(self) -> str | None:
        """The id by which brokers and other members know it; None before the start."""
        return self._session.client_id if self._session is not None else None

    async def start(self) -> None:
        """Starts. Servers that do not run yet are contacted again in the background."""
        if self._session is None:
            self._session = Session.join(
                self._nameservers, self.config, self._world, group=self.group
            )
            self._begin()

    async def close(self) -> None:
        """Leaves the group. With `auto_commit` all polled messages are committed except those of
        the last poll, which are delivered again; call `commit` before to commit these too."""
        self._check_loop()
        session, self._session = self._session, None
        joining, self._joining = self._joining, None
        self._changed.set()
        if session is None:
            return
        session.operated.pop(self.group, None)
        if joining is not None:
            await asyncio.wait([joining])
            if self._discovery is not None:
                await self._discovery.close()
            if joining.exception() is None:
                await joining.result().stop_fetching()
                await joining.result().leave()
        await session.leave(group=self.group)
        self._polled = PolledMessages(self._counters)

    def subscribe(self, topic: Topics, **choice: Unpack[MessageSelector]) -> None:
        """Subscribes to a topic, or to all that match a pattern; the members share their queues.

        Args:
            choice: which messages: by `tags`, `sql` or `code`, see `MessageSelector`.

        Raises:
            SubscriptionInvalid: the tags or the SQL cannot be parsed.
            UsageError: the topic's name is invalid, or queues are assigned by hand.
        """
        if self._chosen is not None:
            raise UsageError("queues are assigned by hand; topics cannot be subscribed too")
        self._set(topic, arguments.chosen(choice))
        self._reassign()

    def unsubscribe(self, topic: Topics) -> None:
        """Unsubscribes from a topic or pattern, and releases its queues; else does nothing."""
        if self._subscriptions.drop(topic):
            self._reassign()

    def assign(self, queues: Iterable[QueueId], **choice: Unpack[MessageSelector]) -> None:
        """Reads exactly these queues, whether or not other consumers read them.

        Raises:
            SubscriptionInvalid: the tags or the SQL cannot be parsed.
            UsageError: topics are subscribed.
        """
        if self._chosen is None and not self._subscriptions.is_empty:
            raise UsageError("topics are subscribed; queues cannot be assigned too")
        wanted, by_hand = arguments.chosen(choice), set(arguments.queues_of(queues))
        self._subscriptions.clear()
        for topic in sorted({queue.topic for queue in by_hand}):
            self._set(topic, wanted)
        self._chosen = by_hand
        self._reassign()

    def on_assignment(self, function: Callable[[str, Sequence[QueueId]], None]) -> None:
        """Sets a function to call with a topic and its queues whenever its assignment changes."""
        arguments.check_takes(function, "topic", "queues", what="a listener for assignments")
        self._on_share = function

    def pause(self, queues: QueueId | Iterable[QueueId]) -> None:
        """Stops fetching and returning messages of these queues; the consumer keeps them."""
        self._pauses.pause_queues(queues)

    def resume(self, queues: QueueId | Iterable[QueueId]) -> None:
        """Continues with these queues."""
        self._pauses.resume_queues(queues)
        self._changed.set()

    @receives
    async def poll(self, timeout_ms: float = 5_000) -> list[StoredMessage]:
        """Returns up to `config.poll_batch` messages; an empty list if none arrive in time.

        The messages of the previous poll count as consumed from now on.

        Raises:
            UsageError: nothing is subscribed or assigned, or another poll is running.
        """
        await self._member()
        if self._is_polling:
            raise UsageError("one poll at a time: a poll finishes the messages of the last one")
        self._polled.finish()
        deadline = Deadline.after_ms(arguments.milliseconds("timeout_ms", timeout_ms))
        self._is_polling = True
        try:
            while True:
                self._changed.clear()
                taken = self._polled.take(self.config.poll_batch, paused=self._pauses)
                if taken or self._session is None or not deadline.left():
                    return taken
                await either(self._changed, deadline.left())
        finally:
            self._is_polling = False

    # Positions.

    @settles("commit")
    async def commit(self, offsets: Mapping[QueueId, int] | None = None) -> None:
        """Commits all messages that polls have returned, including those of the last poll.

        Args:
            offsets: commits these instead: by queue, the next offset to consume.

        Raises:
            TransportError, ReplyError: a broker could not be reached, or refused.
        """
        member = await self._member()
        if offsets is None:
            self._polled.finish()
            error = await member.commit_all()
            if error is not None:
                raise error
            return
        offsets = arguments.offsets_of(offsets)
        for queue, offset in offsets.items():
            await (await self._offsets(queue)).commit(queue, offset)
            if (feed := member.feed(queue)) is not None:
                feed.committed = QueueOffset(offset)

    async def committed(self, queue: QueueId) -> QueueOffset | None:
        """Returns the group's committed offset, the next one to consume; None if it has none.

        Raises:
            TransportError, ReplyError: the broker could not be reached, or refused.
        """
        return await (await self._offsets(queue)).committed(queue)

    async def position(self, queue: QueueId) -> QueueOffset:
        """Returns the offset of the queue's next message for a poll, as far as it is known.

        Raises:
            UsageError: this consumer does not read the queue.
        """
        return (await self._held(queue)).window.next_to_take

    async def seek(self, queue: QueueId, offset: int) -> None:
        """Continues at an offset; messages that were fetched before are dropped.

        Raises:
            UsageError: this consumer does not read the queue, or the offset is not in the queue.
            TransportError, ReplyError: the broker could not be reached, or refused.
        """
        arguments.check_offset(offset)
        offsets = await self._offsets(queue)
        first, end = await offsets.first(queue), await offsets.end(queue)
        if not first <= offset <= end:
            raise UsageError(f"{queue} has offsets {first} to {end}, not {offset}")
        await self._seek(queue, offset)

    async def seek_to_begin(self, queue: QueueId) -> None:
        """Continues at the oldest message in the queue. Errors as for `seek`."""
        await self._seek(queue, await (await self._offsets(queue)).first(queue))

    async def seek_to_end(self, queue: QueueId) -> None:
        """Continues after the newest message in the queue. Errors as for `seek`."""
        await self._seek(queue, await (await self._offsets(queue)).end(queue))

    async def seek_to_time(self, queue: QueueId, at: datetime | int) -> None:
        """Continues at the first message that was stored at a time (or ms since 1970) or later.

        Errors as for `seek`.
        """
        at_ms = arguments.moment_ms(at)
        await self._seek(queue, await (await self._offsets(queue)).at(queue, at_ms))

    async def queues(self, topic: str) -> list[QueueId]:
        """Fetches and returns the topic's readable queues, sorted.

        Raises:
            RouteNotFound: the topic does not exist.
            TransportError: no name server answered in time.
        """
        check_topic(topic)
        deadline = Deadline.after_ms(self.config.call_timeout_ms)
        return list((await self._running().routes.fetch(topic, deadline)).readable)

    def statistics(self) -> Statistics:
        """Returns rates and times by topic, and how many messages are in memory."""
        member = self._joined()
        windows = () if member is None else member.windows
        return self._counters.snapshot(asyncio.get_running_loop().time(), windows)

    def _running(self) -> Session:
        self._check_loop()
        if self._session is None:
            raise ClosedError("the consumer is not started, or is closed")
        return self._session

    def _set(self, topic: Topics, wanted: Filter) -> None:
        now_ms = (self._world or ClientEnvironment.real()).clock.now_ms()
        self._subscriptions.set(topic, wanted, None, version=now_ms)

    def _reassign(self, fresh: Sequence[str] = ()) -> None:
        """Applies a change of the subscriptions or of the assignment by hand."""
        self._begin()
        if self._discovery is not None:
            self._discovery.discover_soon()
        if (member := self._joined()) is not None:
            member.subscribed(fresh)

    def _begin(self) -> None:
        """Joins, as soon as topics are subscribed or queues are assigned."""
        is_known = self._chosen is not None or not self._subscriptions.is_empty
        if self._session is not None and self._joining is None and is_known:
            self._joining = asyncio.ensure_future(self._join(self._session))

    async def _join(self, session: Session) -> Membership:
        self._discovery = Discovery(session, self._subscriptions, self._reassign, self.config)
        await self._discovery.start()
        mode = polling(commits=self.config.auto_commit)
        parts = FeedParts(
            session, self.group, self.config, self._offer,
            self._counters, mode=mode, pauses=self._pauses,
        )  # fmt: skip
        options = MembershipOptions(
            chosen=None if self._chosen is None else self._chosen_of,
            on_share=lambda topic, queues: self._on_share and self._on_share(topic, queues),
            on_held=self._changed.set,
        )
        member = Membership(self._subscriptions.by_topic, self._beginning, parts, options=options)
        clock, servers = session.world.clock, self._nameservers
        info = MemberInfo(
            self.group, self.config, False, servers, clock.now_ms(), mode.consume_type
        )
        session.operated[self.group] = RemoteRequests(
            member, self._subscriptions.by_topic, info, statistics=self.statistics, clock=clock
        )
        await member.start()
        return member

    def _offer(self, window: Window) -> None:
        self._polled.offer(window)
        self._changed.set()

    def _joined(self) -> Membership | None:
        joining = self._joining
        return joining.result() if joining is not None and joining.done() else None

    async def _member(self) -> Membership:
        self._running()
        if self._joining is None:
            raise UsageError("subscribe topics or assign queues first")
        return await asyncio.shield(self._joining)

    def _chosen_of(self, topic: str) -> list[QueueId]:
        return [queue for queue in self._chosen or () if queue.topic == topic]

    async def _offsets(self, queue: QueueId) -> BrokerOffsets:
        session = self._running()
        arguments.check_queue(queue)
        if session.routes.address(queue.place) is None:
            await session.routes.fetch(queue.topic, Deadline.after_ms(self.config.call_timeout_ms))
        return BrokerOffsets(session, self.group, self.config.call_timeout_ms, is_patient=True)

    async def _held(self, queue: QueueId) -> Feed:
        """Returns the feed of a queue; waits for one that was assigned just now."""
        member = await self._member()
        arguments.check_queue(queue)
        deadline = Deadline.after_ms(self.config.call_timeout_ms)
        while (feed := member.feed(queue)) is None:
            if not deadline.left():
                raise UsageError(f"{queue} is not among the queues that this consumer reads")
            self._changed.clear()
            await either(self._changed, deadline.left())
        return feed

    async def _seek(self, queue: QueueId, offset: int) -> None:
        await self._held(queue)
        await (await self._member()).move(queue, offset, commits=self.config.auto_commit)
