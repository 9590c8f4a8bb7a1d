"""The window of popped messages: those that were received and are not finished.

It takes the place of a queue's window, so the same deliveries pass its messages to listeners. It
commits nothing: a message that is done is acknowledged by itself. A message whose invisible time
was not renewed in time is lost: it is not delivered any more, and its end has no effect, since the
group gets it again.

While the invisible time of a message is being changed, the broker knows it by one of two handles.
So its acknowledgement waits for the end of that change.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from sprocket.client.fetching.window import FetchLimits, Window
from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset
from sprocket.message.popped_message import PoppedMessage


class PoppedWindow(Window):
    """The unfinished messages of one topic at one broker, or of one of its queues.

    Args:
        limits: when popping stops.
        acknowledge: is called with each message that is done.
    """

    __slots__ = ("_acknowledge", "_changing", "_popped")

    def __init__(self, limits: FetchLimits, acknowledge: Callable[[PoppedMessage], None]) -> None:
        super().__init__(0, limits)
        self._acknowledge = acknowledge
        #: All messages that are not done, by their identity, in the order in which they came.
        self._popped: dict[int, PoppedMessage] = {}
        #: By identity, the ends of the changes of invisible times that are under way.
        self._changing: dict[int, asyncio.Future[None]] = {}

    @property
    def count(self) -> int:
        """Messages that are not done."""
        return len(self._popped)

    @property
    def in_flight(self) -> int:
        """Messages that are delivered and not done."""
        return len(self._popped) - len(self.waiting)

    @property
    def committable(self) -> QueueOffset:
        """Brokers keep the offsets of popping groups themselves."""
        return QueueOffset(0)

    @property
    def span(self) -> int:
        """Offsets limit nothing here."""
        return 0

    @property
    def full_by(self) -> str | None:
        """The limit that stops popping: `count` or `bytes`; None if there is none."""
        if len(self._popped) >= self.limits.count_max:
            return "count"
        return "bytes" if self._popped and self._bytes >= self.limits.bytes_max else None

    @property
    def unfinished(self) -> list[PoppedMessage]:
        """All messages that are not done."""
        return list(self._popped.values())

    def arrived(self, messages: Iterable[PoppedMessage]) -> None:
        """Adds messages that a pop returned."""
        for message in messages:
            self._popped[id(message)] = message
            self.waiting.append(message)
            self._bytes += len(message.body)

    def holds(self, message: StoredMessage) -> bool:
        """Whether the message is not done, nor lost."""
        return id(message) in self._popped

    def taken(self) -> list[StoredMessage]:
        """Returns the messages in flight in order."""
        waiting = set(map(id, self.waiting))
        return [message for key, message in self._popped.items() if key not in waiting]

    def put_back(self, messages: Sequence[StoredMessage]) -> None:
        """Puts messages that were in flight back to the head, those that are lost excepted."""
        super().put_back([message for message in messages if self.holds(message)])

    def done(self, message: StoredMessage) -> None:
        """Finishes a message, and has it acknowledged."""
        popped = self.discard(message)
        if popped is None:
            return
        changing = self._changing.get(id(message))
        if changing is None:
            self._acknowledge(popped)
        else:
            changing.add_done_callback(lambda _: self._acknowledge(popped))

    def discard(self, message: StoredMessage) -> PoppedMessage | None:
        """Finishes a message that is not to be acknowledged; returns it if it was unfinished."""
        popped = self._popped.pop(id(message), None)
        if popped is not None:
            self._bytes -= len(message.body)
            if self._on_room is not None:
                self._notify_room()
        return popped

    def lost(self, message: StoredMessage) -> None:
        """Gives a message up that the group gets again."""
        if self.discard(message) is not None:
            kept = [each for each in self.waiting if each is not message]
            self.waiting.clear()
            self.waiting.extend(kept)

    def changing(self, message: StoredMessage) -> asyncio.Future[None] | None:
        """The end of the change of the message's invisible time, if one is under way."""
        return self._changing.get(id(message))

    def begin_change(self, message: StoredMessage) -> Callable[[], None]:
        """Marks that the message's invisible time is being changed; returns what ends the mark."""
        ended = self._changing[id(message)] = asyncio.get_running_loop().create_future()

        def end() -> None:
            del self._changing[id(message)]
            ended.set_result(None)

        return end

    def close(self) -> None:
        """Drops all messages; results of messages in flight have no effect any more."""
        self.is_closed = True
        self.waiting.clear()
        self._popped.clear()
        self._bytes = 0
