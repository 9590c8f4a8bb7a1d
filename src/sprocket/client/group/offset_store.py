"""Offsets of a consumer's queues: found when it acquires a queue, committed while it consumes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from sprocket.base.errors import NotLeaderForQueue, SprocketError, TransportError
from sprocket.client.base.subscription import Subscription
from sprocket.client.fetching.feed_parts import FeedParts
from sprocket.client.fetching.fetcher import Feed
from sprocket.client.group.local_offsets import LocalOffsets
from sprocket.client.group.offsets import BrokerOffsets, StartPosition
from sprocket.message.queue import QueueId

logger = logging.getLogger(__name__)

#: Seconds after which an unchanged offset is committed again.
_AGAIN_SECONDS = 60.0
#: Positions that are committed at the same time; between two slices others have the loop.
_SLICE = 200


class OffsetStore:
    """The offsets of one consumer, at brokers or in a file on this machine.

    Args:
        parts: what the feeds share.
        beginning: where queues without a committed offset start.
        local: the file, if offsets are stored in one.
    """

    def __init__(
        self, parts: FeedParts, beginning: StartPosition, *, local: LocalOffsets | None
    ) -> None:
        self._parts = parts
        self._beginning = beginning
        self._local = local
        self._offsets = BrokerOffsets(parts.session, parts.group, parts.config.call_timeout_ms)
        self._kept: BrokerOffsets | LocalOffsets = self._offsets if local is None else local
        self._began_ms = parts.session.world.clock.now_ms()

    @property
    def where(self) -> str:
        """RocketMQ's name for where queues without a committed offset start."""
        return self._beginning.where

    async def feed(self, queue: QueueId, subscription: Subscription, *, is_late: bool) -> Feed:
        """Returns a feed at the committed offset.

        Without one, the feed begins where the group starts, and this offset is committed.

        Args:
            is_late: whether the queue appeared after the consumer started.

        Raises:
            TransportError, ReplyError: the broker did not reply, or refused.
        """
        committed = await self._kept.committed(queue)
        if committed is not None:
            feed = Feed(queue, subscription, committed, self._parts)
            feed.committed = committed
            feed.committed_to = self._offsets.place(queue)
            return feed
        position = await self._offsets.beginning(
            queue, self._beginning, began_ms=self._began_ms, is_late=is_late
        )
        feed = Feed(queue, subscription, position, self._parts)
        await self.keep(feed)
        return feed

    async def commit_all(self, feeds: Iterable[Feed]) -> SprocketError | None:
        """Commits the offsets of these feeds; returns the first error, or None."""
        now = asyncio.get_running_loop().time()
        changed = [feed for feed in feeds if not self._is_kept(feed, now)]
        results: list[SprocketError | None] = []
        for at in range(0, len(changed), _SLICE):
            results += await asyncio.gather(*map(self.commit, changed[at : at + _SLICE]))
        if self._local is not None:
            self._local.save()
        return next((error for error in results if error is not None), None)

    async def keep(self, feed: Feed) -> None:
        """Commits the feed's offset if offsets are committed automatically."""
        if self._parts.mode.commits:
            await self.commit(feed)

    def _is_kept(self, feed: Feed, now: float) -> bool:
        """Whether there is nothing to commit."""
        if feed.is_topic_gone:
            return True
        is_known = feed.window.committable == feed.committed
        if self._local is None and feed.committed_to != self._offsets.place(feed.queue):
            return False  # the broker has another master, or has one again
        return is_known and now - feed.committed_at < _AGAIN_SECONDS

    async def commit(self, feed: Feed) -> SprocketError | None:
        """Commits the feed's offset if it is not committed yet; returns the error, or None.

        An unchanged offset is committed again after 60 s. The reason: a broker that was suspended
        may process an older commit last, from a connection that this client has closed.
        """
        window = feed.window
        offset = window.committable
        now = asyncio.get_running_loop().time()
        if self._is_kept(feed, now):
            return None
        place = self._offsets.place(feed.queue)
        try:
            await self._kept.commit(feed.queue, offset)
        except SprocketError as error:
            logger.info("%s: commit of %d in %s: %s", self._parts.group, offset, feed.queue, error)
            if not isinstance(error, TransportError | NotLeaderForQueue):
                self._parts.session.reachability.refused(*self._committing(feed), error)
            return error
        self._parts.session.reachability.succeeded(*self._committing(feed))
        if feed.window is window:
            feed.committed, feed.committed_at, feed.committed_to = offset, now, place
        return None

    def _committing(self, feed: Feed) -> tuple[str, str]:
        """Who does what, in the session's reports."""
        queue = feed.queue
        return f"group {self._parts.group}", f"commit offsets of {queue.topic} at {queue.broker}"
