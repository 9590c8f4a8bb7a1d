"""The messages that a poll returned; they are done when the next poll begins."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from sprocket.client.fetching.fetcher import Feed
from sprocket.client.fetching.pauses import Pauses
from sprocket.client.fetching.statistics import Counters
from sprocket.client.fetching.window import Window
from sprocket.message.message import StoredMessage


class PolledMessages:
    """Takes messages from the windows of the queues in turn, and finishes them later.

    Args:
        counters: count the finished messages, and the time between two polls.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._began = 0.0
        self._taken: list[tuple[Window, StoredMessage]] = []
        self._turn = 0

    def take(self, feeds: Sequence[Feed], count_max: int, *, paused: Pauses) -> list[StoredMessage]:
        """Returns up to `count_max` messages of queues that are not paused."""
        self._began = asyncio.get_running_loop().time()
        self._turn = (self._turn + 1) % max(1, len(feeds))
        for feed in [*feeds[self._turn :], *feeds[: self._turn]]:
            window = feed.window
            while feed.queue not in paused and len(self._taken) < count_max:
                message = window.take()
                if message is None:
                    break
                self._taken.append((window, message))
        return [message for _, message in self._taken]

    def finish(self) -> None:
        """Finishes the messages of the last poll; those of released queues are ignored."""
        now = asyncio.get_running_loop().time()
        for window, message in self._taken:
            window.done(message)
        topics = Counter(message.queue.topic for _, message in self._taken)
        for topic, count in topics.items():
            self._counters.called(topic, now, count=count, seconds=now - self._began)
        self._taken.clear()
