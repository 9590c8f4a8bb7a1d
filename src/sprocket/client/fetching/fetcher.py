"""Fetches one queue's messages into its window: one task for each queue that is held.

A reply counts only for the window for which it was requested. When the queue is released, the task
is cancelled while it waits, so a reply that arrives later is not delivered and moves no position.

Source: DefaultMQPushConsumerImpl.pullMessage, PullAPIWrapper of RocketMQ 5.x.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import partial

from sprocket.base.backoff import pauses
from sprocket.base.deadline import Deadline
from sprocket.base.errors import (
    ConnectFailed,
    CorruptRecord,
    FilterMissing,
    NotLeaderForQueue,
    ReplyError,
    SprocketError,
    SubscriptionMissing,
    SubscriptionOutdated,
    TopicNotFound,
    TransportError,
)
from sprocket.client.base.subscription import Subscription
from sprocket.client.base.world import CLOCKS_APART_MS
from sprocket.client.fetching.feed_parts import FeedParts
from sprocket.client.fetching.filter_upload import upload_filter
from sprocket.client.fetching.window import FetchLimits, Window
from sprocket.clientcore.attempts import is_refusal
from sprocket.clientcore.replies import PullAnswer, PullStatus, read_pull
from sprocket.filter.tags import ALL, TagFilter
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset
from sprocket.message.opening import Opening
from sprocket.message.properties import RETRY_TOPIC
from sprocket.message.queue import QueueId
from sprocket.message.topic import is_retry_topic
from sprocket.protocol.codes import MASTER, ResponseCode
from sprocket.protocol.command import Command
from sprocket.protocol.requests.offset import OffsetReply, SearchOffset
from sprocket.protocol.requests.pull import (
    COMMIT_OFFSET,
    SUBSCRIPTION,
    SUSPEND,
    PullMessage,
)
from sprocket.remoting.transport import Peer

logger = logging.getLogger(__name__)

_ALL = TagFilter.parse(ALL)

#: A reply without messages within this time was not held by the broker. After `_IN_VAIN_MAX` such
#: replies in a row, or replies with another offset, pulls pause, or they would never end.
_SOON_SECONDS = 0.1
_IN_VAIN_MAX = 3


class Feed:
    """Fetches from one queue that the consumer holds.

    Attributes:
        window: the messages that are fetched; it is replaced when the position is reset.
        committed: the offset that the broker has, as far as is known, or None.
        committed_at: when that was committed, on the loop's clock.
        committed_to: the address of the broker that has it.
    """

    def __init__(
        self, queue: QueueId, subscription: Subscription, position: int, parts: FeedParts
    ) -> None:
        config = parts.config
        self.queue = queue
        self.subscription = subscription
        self.committed: QueueOffset | None = None
        self.committed_at = asyncio.get_running_loop().time()
        self.committed_to = ""
        self._parts = parts
        self._limits = FetchLimits(
            config.window_count_max, config.window_bytes_max, config.window_span_max
        )
        self.window = Window(position, self._limits)
        self._number = MASTER
        #: The address of the last pull, and, after a failure, where that was.
        self._asked_at = ""
        self._failed_at: str | None = None
        #: When the last pull was sent, in ms since 1970 UTC.
        self.pulled_ms = parts.session.world.clock.now_ms()
        self._last_error = ""
        #: Pulls in a row with an immediate reply and no progress.
        self._in_vain = 0
        #: The connection of the last pull.
        self._peer: Peer | None = None
        self._is_retry = is_retry_topic(queue.topic)
        #: The task in `run` while it awaits the answer to a pull.
        self._pulling: asyncio.Task[None] | None = None
        #: Whether the broker does not know the topic: there is no position that could be committed,
        #: and a topic of that name that appears later may be another one.
        self.is_topic_gone = False
        #: When the newest message that was fetched was stored, by the broker's clock.
        self._stored_ms: int | None = None
        #: When the last pull that was answered rightly was asked for, by this machine's clock.
        self._right_ms = self.pulled_ms

    def subscribe(self, subscription: Subscription) -> None:
        """Fetches by another subscription from now on.

        The answer to a pull under way was chosen by the old one, and may leave out what only the
        new one wants. So it is not waited for, and the same offset is asked for again.
        """
        if subscription == self.subscription:
            return
        self.subscription = subscription
        pulling, self._pulling = self._pulling, None
        if pulling is not None:
            pulling.cancel()

    # There is one pull at a time, so replies cannot overtake each other, and the broker holds it
    # while the queue is empty. The window's limits are checked before each pull, so a slow listener
    # stops the fetching, and a window exceeds its limits by one reply at most. Every error leads to
    # a pause and another pull, since a feed must survive whatever happens to its broker.
    async def run(self) -> None:
        """Fetches until cancelled."""
        longest = self._parts.config.pull_retry_ms / 1000
        entropy = self._parts.session.world.entropy
        retry_pauses = None
        while True:
            await self._room()
            await self._parts.pauses.wait_resumed(self.queue)
            try:
                await self._pull()
            except (SubscriptionMissing, SubscriptionOutdated) as error:
                logger.info("%s: the broker needs a new heartbeat: %s", self.queue, error)
                self._parts.session.heartbeat_soon()
            except FilterMissing as error:
                await self._upload_filter(error)
            except SprocketError as error:
                if isinstance(error, TopicNotFound):
                    self.is_topic_gone = True
                self._complain(error)
                self._failed(error)
            else:
                if self._in_vain < _IN_VAIN_MAX:
                    retry_pauses = None
                    continue
            retry_pauses = retry_pauses or pauses(longest / 10, longest, entropy=entropy)
            await self._pause(self._parts.session.reachability.pause(next(retry_pauses)))

    def _failed(self, error: SprocketError) -> None:
        """Has another master searched for, if the broker is gone or refuses to be read."""
        if isinstance(error, TransportError) or is_refusal(error):
            self._number, self._failed_at = MASTER, self._asked_at
            self._parts.session.search.failed(self.queue.place, error, self.queue.topic)

    async def _pause(self, seconds: float) -> None:
        """Waits before the next pull; at another master there is nothing to wait for."""
        failed_at, self._failed_at = self._failed_at, None
        if failed_at is None:
            await asyncio.sleep(seconds)
        else:
            moved = self._parts.session.routes.moved
            await moved(self.queue.place, failed_at, Deadline.after(seconds))

    async def _upload_filter(self, missing: FilterMissing) -> None:
        """Uploads the filter that the broker does not have."""
        parts, peer = self._parts, self._peer
        assert peer is not None
        deadline = Deadline.after_ms(parts.config.pull_timeout_ms)
        try:
            await upload_filter(
                self.subscription.filter,
                missing,
                group=parts.group,
                topic=self.queue.topic,
                now_ms=parts.session.world.clock.now_ms(),
                call=lambda header, body: peer.call(header, body=body, deadline=deadline),
            )
        except SprocketError as error:
            self._complain(error)

    def _complain(self, error: SprocketError) -> None:
        """Logs why a pull failed: as a warning, once, if the user can correct it, else as info."""
        # What a broker refuses is reported for all queues of a topic at once. A connection that is
        # lost or silent shows in the heartbeats, and the session reports that. A logical queue that
        # has moved is found at once.
        if isinstance(error, ReplyError) and not isinstance(error, NotLeaderForQueue):
            self._parts.session.reachability.refused(*self._reading(), error)
        is_news = str(error) != self._last_error
        self._last_error = str(error)
        logger.log(logging.INFO if is_news else logging.DEBUG, "%s: pull: %s", self.queue, error)

    def _reading(self) -> tuple[str, str]:
        """Who does what, in the session's reports."""
        return f"group {self._parts.group}", f"read topic {self.queue.topic} of {self.queue.broker}"

    def limit(self, limits: FetchLimits) -> None:
        """Replaces the limits of the window."""
        self._limits = limits
        self.window.limit(limits)

    async def _room(self) -> None:
        window = self.window
        if (limit := window.full_by) is not None:
            now = asyncio.get_running_loop().time()
            self._parts.counters.throttled(self.queue.topic, now, limit)
        while not window.has_room:
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            window.call_with_room(partial(_wake, room))
            await room

    async def _pull(self) -> None:
        session = self._parts.session
        where = session.routes.nearest(self.queue.place, self._number)
        if where is None:
            raise ConnectFailed(f"no route has the address of broker {self.queue.broker!r}")
        number, address = where
        self._asked_at = address
        if number != self._number:  # a slave is read while there is no master
            session.search.suspect(self.queue.place, self.queue.topic)
        peer = session.greeted(address) or await session.register(address)
        if peer is not self._peer:
            if self._peer is not None:  # a broker that was killed forgets its last commits
                self.committed = None
            self._peer = peer
        header = self._request(is_master=number == MASTER)
        deadline = Deadline.after_ms(self._parts.config.pull_timeout_ms)
        began = asyncio.get_running_loop().time()
        self.pulled_ms = session.world.clock.now_ms()
        subscription = self.subscription
        reply = await self._answer(peer, header, deadline)
        if reply is None or self.subscription is not subscription:
            return
        try:
            answer = read_pull(reply)
        except ReplyError:
            self._number = MASTER
            raise
        if answer.status is PullStatus.OFFSET_ILLEGAL or self.is_topic_gone:
            await self._moved(answer, number, reply.remark)
            return
        if header.sys_flag & COMMIT_OFFSET:
            self.committed = QueueOffset(max(self.committed or 0, header.commit_offset))
            self.committed_to = address
        if self.queue not in self._parts.pauses:  # else it is pulled again after the pause
            self._take(answer, began)

    async def _answer(self, peer: Peer, header: PullMessage, deadline: Deadline) -> Command | None:
        """The reply to a pull; None if `subscribe` ended the wait for it."""
        task = self._pulling = asyncio.current_task()
        subscription = self.subscription
        try:
            return await peer.call(header, deadline=deadline, is_held=True)
        except asyncio.CancelledError:
            is_ours = self.subscription is not subscription
            if task is None or not is_ours or task.uncancel() > 0:
                raise
            return None
        finally:
            self._pulling = None

    def _request(self, *, is_master: bool) -> PullMessage:
        config = self._parts.config
        committable = self.window.committable
        mode = self._parts.mode
        commits = (
            mode.commits_by_pull
            and is_master
            and committable != self.committed
            and not self.is_topic_gone
        )
        flags = SUBSCRIPTION if mode.tells_filter else 0
        return PullMessage(
            consumer_group=self._parts.group,
            topic=self.queue.topic,
            queue_id=self.queue.number,
            queue_offset=self.window.next_offset,
            max_msg_nums=config.pull_batch,
            sys_flag=SUSPEND | flags | (COMMIT_OFFSET if commits else 0),
            commit_offset=committable if commits else 0,
            suspend_timeout_millis=config.hold_ms,
            sub_version=self.subscription.version,
            subscription=self.subscription.filter.expression if mode.tells_filter else None,
            expression_type=self.subscription.filter.kind,
            max_msg_bytes=config.pull_bytes_max,
            bname=self.queue.broker,
        )

    # A broker that cannot hold pulls replies at once without messages. Such replies are counted, so
    # that `run` pauses instead of sending pulls without end; an offset that moved on is progress.
    def _take(self, answer: PullAnswer, began: float) -> None:
        self._number = answer.broker_number
        self._right_ms = self.pulled_ms
        reachability = self._parts.session.reachability
        if reachability.troubles.is_any:
            reachability.succeeded(*self._reading())
        window = self.window
        if answer.status is not PullStatus.FOUND:
            before = window.next_offset
            window.fetched((), answer.next_offset)
            soon = min(_SOON_SECONDS, self._parts.config.hold_ms / 2000)
            is_soon = asyncio.get_running_loop().time() - began < soon
            self._in_vain = self._in_vain + 1 if is_soon and window.next_offset == before else 0
            return
        self._in_vain = 0
        messages: list[StoredMessage] = []
        opening = Opening()
        try:
            messages.extend(self._wanted(answer, opening))
        except CorruptRecord:
            if messages:  # keep what could be read; the next pull requests the rest again
                window.fetched(messages, messages[-1].queue_offset + 1)
                self._parts.offer(window)
            raise
        if messages:
            self._stored_ms = messages[-1].stored_ms
        now = asyncio.get_running_loop().time()
        self._parts.counters.pulled(self.queue.topic, now, count=len(messages), seconds=now - began)
        if window.fetched(messages, answer.after(opening)):
            self._parts.offer(window)

    def _wanted(self, answer: PullAnswer, opening: Opening) -> Iterator[StoredMessage]:
        """Returns the messages of an answer that match; those of a retry topic all do."""
        if self._is_retry:
            return map(as_sent, answer.messages(self.queue, _ALL, opening))
        return answer.messages(self.queue, self.subscription.filter, opening)

    async def _moved(self, answer: PullAnswer, number: int, remark: str | None) -> None:
        """Moves to the broker's offset, because ours is outside the queue or was reset.

        In ordered consumption the running batch ends first, so that no two batches overlap.
        """
        self._in_vain += 1
        if number != MASTER:  # a slave may lag, so only the master may move the position
            self._number = MASTER
            raise ReplyError.of(ResponseCode.PULL_OFFSET_MOVED, f"slave {number}: {remark}")
        offset = answer.next_offset
        if self.is_topic_gone or self.window.next_offset > answer.max_offset == offset:
            unseen = await self._first_unseen()
            offset = min(max(unseen, answer.min_offset), answer.max_offset)
            self.is_topic_gone = False
            if answer.status is not PullStatus.OFFSET_ILLEGAL and offset >= self.window.next_offset:
                return
        logger.warning(
            "%s: position moves from %d to %d: %s",
            self.queue, self.window.next_offset, offset, remark,
        )  # fmt: skip
        if self._parts.finish is not None:
            await self._parts.finish(self.window)
        window = Window(offset, self._limits)
        window.trust(self.window.trusted_until)
        self.window.close()
        self.window = window
        self.committed = None

    async def _first_unseen(self) -> int:
        """The offset of the first message that was stored since the last one that was fetched.

        A queue that ends before our position was made anew, or has lost its last messages in a
        crash: offsets say nothing about what was fetched, but times do. What was stored since is
        new in both cases. Times are the broker's own, unless nothing was fetched yet.

        Raises:
            TransportError, ReplyError: the broker does not tell.
        """
        session, queue = self._parts.session, self.queue
        if self._stored_ms is not None:
            since_ms = self._stored_ms + 1
        else:
            since_ms = max(0, self._right_ms - CLOCKS_APART_MS)
        header = SearchOffset(
            topic=queue.topic, queue_id=queue.number, timestamp=since_ms, bname=queue.broker
        )
        deadline = Deadline.after_ms(self._parts.config.call_timeout_ms)
        reply = await session.pool.ask(session.address_of(queue), header, deadline=deadline)
        return reply.read(OffsetReply).offset


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def as_sent(message: StoredMessage) -> StoredMessage:
    """Gives a message of a retry topic the queue of its original topic, and returns it."""
    topic = message.properties.get(RETRY_TOPIC)
    if topic is not None:
        message.queue = message.queue._replace(topic=topic)
    return message
