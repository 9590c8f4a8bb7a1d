"""What can be handed out, and what must wait a while before it is handed out again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from sprocket.client.fetching.window import Window
from sprocket.message.message import StoredMessage


class ReadyWindows:
    """Windows that have something to hand out, each once, taking turns."""

    __slots__ = ("_listed", "_windows")

    def __init__(self) -> None:
        self._windows: deque[Window] = deque()
        #: The same windows: membership of a deque would be a search.
        self._listed: set[Window] = set()

    def __bool__(self) -> bool:
        return bool(self._windows)

    def add(self, window: Window) -> None:
        """Puts a window on the list if it has something and is not there yet."""
        if window.waiting and window not in self._listed:
            self._listed.add(window)
            self._windows.append(window)

    def next(self) -> Window | None:
        """The next window that has something; it stays on the list, behind the others."""
        windows = self._windows
        while windows:
            window = windows[0]
            if window.waiting:
                windows.rotate(-1)
                return window
            windows.popleft()
            self._listed.discard(window)
        return None

    def drop(self, window: Window) -> None:
        """Takes a window off the list that has nothing any more."""
        if window in self._listed:
            self._windows.remove(window)
            self._listed.discard(window)

    def take_window(self) -> Window | None:
        """The next window, which leaves the list."""
        if not self._windows:
            return None
        window = self._windows.popleft()
        self._listed.discard(window)
        return window

    def take(self) -> tuple[Window, StoredMessage] | None:
        """The next message and its window."""
        windows = self._windows
        while windows:
            window = windows[0]
            message = window.take()
            if window.waiting:
                windows.rotate(-1)
            else:
                windows.popleft()
                self._listed.discard(window)
            if message is not None:
                return window, message
        return None


class DeferredMessages:
    """Keeps messages that failed and could not be given back, and offers them again after a while.

    Args:
        seconds: how long they are kept.
        offer: told of their window then.
    """

    def __init__(self, seconds: float, offer: Callable[[Window], None]) -> None:
        self._seconds = seconds
        self._offer = offer
        self._timers: set[asyncio.TimerHandle] = set()

    def defer(self, window: Window, messages: Sequence[StoredMessage]) -> None:
        """Puts messages that were handed out aside."""

        def again() -> None:
            window.put_back(messages)
            self._offer(window)

        self.call_later(self._seconds, again)

    def call_later(self, seconds: float, do: Callable[[], None]) -> None:
        """Does something after a while, unless the shelf is cleared before."""

        def due() -> None:
            self._timers.discard(timer)
            do()

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._timers.add(timer)

    def clear(self) -> None:
        """Offers nothing any more."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
