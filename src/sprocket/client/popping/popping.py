"""What a push consumer pops: a feed for each topic at each broker that it was told to pop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping

from sprocket.base.deadline import Deadline
from sprocket.client.base.subscription import Subscription
from sprocket.client.fetching.statistics import WindowStatistics
from sprocket.client.popping.pop_feed import PopFeed, PopFeedParts
from sprocket.client.popping.popped_window import PoppedWindow
from sprocket.message.popped_message import PoppedMessage
from sprocket.message.queue import QueueId


class Popping:
    """The feeds of one consumer.

    Args:
        subscriptions: by topic; the owner may change it.
    """

    def __init__(self, parts: PopFeedParts, subscriptions: Mapping[str, Subscription]) -> None:
        self._parts = parts
        self._subscriptions = subscriptions
        self._feeds: dict[QueueId, PopFeed] = {}
        #: Feeds that pop no more, whose messages are with listeners.
        self._ending: dict[PopFeed, asyncio.Task[None]] = {}
        self._is_stopped = False

    @property
    def queues(self) -> list[QueueId]:
        """What it pops, sorted; the number -1 stands for all queues of a broker."""
        return sorted(self._feeds)

    @property
    def windows(self) -> list[WindowStatistics]:
        """Statistics of its windows."""
        return [window for _, feed in sorted(self._feeds.items()) for window in feed.statistics]

    def window_of(self, message: PoppedMessage) -> PoppedWindow | None:
        """The window that holds a message; None if the message is finished or lost."""
        for feed in [*self._feeds.values(), *self._ending]:
            for window in feed.windows:
                if window.holds(message):
                    return window
        return None

    def assign(self, topic: str, queues: Collection[QueueId]) -> None:
        """Pops these queues of a topic from now on, and no others of it."""
        if self._is_stopped:
            return
        for queue in [each for each in self._feeds if not self._is_wanted(each, topic, queues)]:
            self._end(queue)
        subscription = self._subscriptions.get(topic)
        for queue in queues if subscription is not None else ():
            feed = self._feeds.get(queue)
            if feed is None and subscription is not None:
                self._feeds[queue] = PopFeed(queue, subscription, self._parts)

    def update(self) -> None:
        """Applies changed subscriptions."""
        for queue, feed in list(self._feeds.items()):
            subscription = self._subscriptions.get(queue.topic)
            if subscription is None:
                self._end(queue)
            else:
                feed.subscribe(subscription)

    async def stop(self) -> None:
        """Pops no more; what was not delivered yet becomes visible again at once."""
        self._is_stopped = True
        await asyncio.gather(*(feed.stop() for feed in self._feeds.values()))

    async def close(self, deadline: Deadline) -> None:
        """Sends what waits to be acknowledged, and gives back what is not finished."""
        self._is_stopped = True
        for task in self._ending.values():
            task.cancel()
        await asyncio.gather(*self._ending.values(), return_exceptions=True)
        feeds: Iterable[PopFeed] = [*self._feeds.values(), *self._ending]
        await asyncio.gather(*(feed.close() for feed in feeds))
        self._feeds.clear()
        self._ending.clear()
        await self._parts.acks.close(deadline)
        await self._parts.pops.close(deadline)

    def _is_wanted(self, queue: QueueId, topic: str, queues: Collection[QueueId]) -> bool:
        if queue.topic == topic:
            return queue in queues
        return queue.topic in self._subscriptions

    def _end(self, queue: QueueId) -> None:
        feed = self._feeds.pop(queue)
        task = self._ending[feed] = asyncio.ensure_future(self._finish(feed))
        task.add_done_callback(lambda _: self._ending.pop(feed, None))

    async def _finish(self, feed: PopFeed) -> None:
        await feed.stop()
        while feed.count:
            await feed.finished()
        await feed.close()
