"""The messages that a poll returned; they are done when the next poll begins."""

from __future__ import annotations

import asyncio
from collections import Counter

from sprocket.client.delivery.ready_windows import ReadyWindows
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
        #: A poll visits only the queues that have messages: there may be thousands of others.
        self._ready = ReadyWindows()

    def offer(self, window: Window) -> None:
        """Is called with a window that has messages."""
        self._ready.add(window)

    def take(self, count_max: int, *, paused: Pauses) -> list[StoredMessage]:
        """Returns up to `count_max` messages of queues that are not paused."""
        self._began = asyncio.get_running_loop().time()
        for _ in range(len(self._ready)):
            window = self._ready.next() if len(self._taken) < count_max else None
            if window is None:
                break
            if window.waiting[0].queue in paused:
                continue
            while len(self._taken) < count_max and (message := window.take()) is not None:
                self._taken.append((window, message))
            if not window.waiting:
                self._ready.drop(window)
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
