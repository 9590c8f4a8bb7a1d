"""The windows that have messages to deliver, and messages that are deferred for a while."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

from sprocket.client.fetching.window import Window
from sprocket.message.message import StoredMessage


class ReadyWindows:
    """The ready list: windows that have messages to deliver, each once, in round robin."""

    # Every operation takes constant time: a consumer may have messages of 10,000 queues. A deque
    # would be searched whole for a window that is dropped, and a dict for its first key.
    __slots__ = ("_windows",)

    def __init__(self) -> None:
        self._windows: OrderedDict[Window, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._windows)

    def __bool__(self) -> bool:
        return bool(self._windows)

    def add(self, window: Window) -> None:
        """Adds a window if it has messages to deliver and is not on the list yet."""
        if window.waiting and window not in self._windows:
            self._windows[window] = None

    def next(self) -> Window | None:
        """Returns the next window that has messages, and moves it to the end of the list."""
        windows = self._windows
        while windows:
            window = next(iter(windows))
            if window.waiting:
                windows.move_to_end(window)
                return window
            del windows[window]
        return None

    def drop(self, window: Window) -> None:
        """Removes a window that has no more messages to deliver."""
        self._windows.pop(window, None)

    def take_window(self) -> Window | None:
        """Removes and returns the next window."""
        if not self._windows:
            return None
        return self._windows.popitem(last=False)[0]

    def take(self) -> tuple[Window, StoredMessage] | None:
        """Removes and returns the next message, with its window."""
        windows = self._windows
        while windows:
            window = next(iter(windows))
            message = window.take()
            if window.waiting:
                windows.move_to_end(window)
            else:
                del windows[window]
            if message is not None:
                return window, message
        return None


class DeferredMessages:
    """Defers messages that failed and could not be sent back, and offers them again later.

    Args:
        seconds: for how long they are deferred.
        offer: is called with their window afterwards.
    """

    def __init__(self, seconds: float, offer: Callable[[Window], None]) -> None:
        self._seconds = seconds
        self._offer = offer
        self._timers: set[asyncio.TimerHandle] = set()

    def defer(self, window: Window, messages: Sequence[StoredMessage]) -> None:
        """Defers messages that are in flight."""

        def again() -> None:
            window.put_back(messages)
            self._offer(window)

        self.call_later(self._seconds, again)

    def call_later(self, seconds: float, do: Callable[[], None]) -> None:
        """Calls a function after some seconds, unless `clear` is called before."""

        def due() -> None:
            self._timers.discard(timer)
            do()

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._timers.add(timer)

    def clear(self) -> None:
        """Cancels everything that is deferred."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
