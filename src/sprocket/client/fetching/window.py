"""What a consumer has fetched from one queue and not finished: fetched, in flight, done.

The committable offset stands before the first message that is not done: it never passes one that
is waiting, in a listener's hands, or held because giving it back failed. Fetching stops at limits
of count, bytes and span, so a slow listener bounds memory by itself.

A closed window (its queue was released, or its position was reset) hands out nothing and no
longer moves: a result that comes late changes nothing. Pure. What RocketMQ calls ProcessQueue.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from sprocket.message.message import StoredMessage
from sprocket.message.offsets import QueueOffset


class FetchLimits(NamedTuple):
    """When to stop fetching.

    Attributes:
        count_max: messages that are not done.
        bytes_max: their bodies.
        span_max: distance in offsets between the first and the last of them.
    """

    count_max: int = 1000
    bytes_max: int = 100 * 1024 * 1024
    span_max: int = 2000


class Window:
    """One queue's messages at one consumer."""

    __slots__ = (
        "_bytes",
        "_held",
        "_last",
        "_on_room",
        "has_straggler",
        "is_closed",
        "is_frozen",
        "limits",
        "next_offset",
        "trusted_until",
        "waiting",
    )

    def __init__(self, next_offset: int, limits: FetchLimits | None = None) -> None:
        #: Where to fetch next; above every offset that is held.
        self.next_offset = QueueOffset(next_offset)
        self.limits = limits or FetchLimits()
        #: All that is not done, by offset, in ascending order.
        self._held: dict[QueueOffset, StoredMessage] = {}
        #: Of those, what has not been handed out, in the order to hand out; delivery takes from it.
        self.waiting: deque[StoredMessage] = deque()
        self._bytes = 0
        self._last = next_offset - 1
        self.is_closed = False
        #: Ordered consumption: nothing is handed out while it is frozen, nor once the loop's time
        #: has come to the end of its queue's lease.
        self.is_frozen = False
        self.trusted_until = math.inf
        #: Ordered consumption: a listener call of it goes on in a thread, and cannot be stopped.
        self.has_straggler = False
        self._on_room: Callable[[], None] | None = None

    @property
    def count(self) -> int:
        """Messages that are not done."""
        return len(self._held)

    @property
    def bytes(self) -> int:
        """Their bodies together."""
        return self._bytes

    @property
    def in_flight(self) -> int:
        """Messages that were handed out and are not done."""
        return len(self._held) - len(self.waiting)

    @property
    def committable(self) -> QueueOffset:
        """The offset to begin at if this consumer vanished now."""
        return next(iter(self._held), self.next_offset)

    @property
    def next_to_take(self) -> QueueOffset:
        """The offset of what is handed out next, as far as is known."""
        return self.waiting[0].queue_offset if self.waiting else self.next_offset

    @property
    def span(self) -> int:
        """Distance in offsets between the first and the last message that is not done."""
        return self._last - next(iter(self._held)) if self._held else 0

    @property
    def has_room(self) -> bool:
        """Whether more may be fetched."""
        return self.full_by is None

    @property
    def full_by(self) -> str | None:
        """Which limit is reached, so that nothing more is fetched: `count`, `bytes` or `span`."""
        held = self._held
        if not held:
            return None
        limits = self.limits
        if len(held) >= limits.count_max:
            return "count"
        if self._bytes >= limits.bytes_max:
            return "bytes"
        return "span" if self._last - next(iter(held)) > limits.span_max else None

    def fetched(self, messages: Iterable[StoredMessage], next_offset: int) -> int:
        """Takes in what a pull brought.

        Args:
            messages: in the order of their offsets; what was fetched before is left out.
            next_offset: where the broker says to go on; also behind messages it left out.

        Returns:
            How many were taken in.
        """
        if self.is_closed:
            return 0
        last = self.next_offset - 1
        count = 0
        for message in messages:
            offset = message.queue_offset
            if offset > last:
                last = offset
                self._held[offset] = message
                self.waiting.append(message)
                self._bytes += len(message.body)
                count += 1
        if count:
            self._last = last
        self.next_offset = QueueOffset(max(next_offset, last + 1))
        return count

    def take(self) -> StoredMessage | None:
        """Hands out the next message, if there is one."""
        return self.waiting.popleft() if self.waiting else None

    def take_many(self, count: int, topic: str) -> list[StoredMessage]:
        """Hands out up to `count` messages as long as they are of that topic."""
        taken: list[StoredMessage] = []
        waiting = self.waiting
        while waiting and len(taken) < count and waiting[0].queue.topic == topic:
            taken.append(waiting.popleft())
        return taken

    def put_back(self, messages: Sequence[StoredMessage]) -> None:
        """Takes messages back that were handed out; they come next again, in this order."""
        if not self.is_closed:
            self.waiting.extendleft(reversed(messages))

    def taken(self) -> list[StoredMessage]:
        """What is in flight, in order, if it was handed out from the head."""
        return list(islice(self._held.values(), self.in_flight))

    def holds(self, message: StoredMessage) -> bool:
        """Whether the message is not done."""
        return message.queue_offset in self._held

    def limit(self, limits: FetchLimits) -> None:
        """Sets other limits from now on."""
        self.limits = limits
        self._notify_room()

    def done(self, message: StoredMessage) -> None:
        """Finishes a message: consumed, or safely given back to the broker."""
        if self._held.pop(message.queue_offset, None) is None:
            return
        self._bytes -= len(message.body)
        if self._on_room is not None:
            self._notify_room()

    def _notify_room(self) -> None:
        if self._on_room is not None and self.has_room:
            on_room, self._on_room = self._on_room, None
            on_room()

    def call_with_room(self, do: Callable[[], None]) -> None:
        """Has something done, once, when there is room again; replaces what was to be done."""
        self._on_room = do

    def freeze(self) -> None:
        """Ordered consumption: hands out nothing more."""
        self.is_frozen = True

    def trust(self, until: float) -> None:
        """Ordered consumption: hands out until the loop's time is `until`, when the lease ends."""
        self.trusted_until = until

    def note_straggler(self, outlives: bool) -> None:
        """Ordered consumption: notes whether a cancelled listener call still runs in its thread."""
        self.has_straggler = outlives

    def close(self) -> None:
        """Forgets what waits; what is in flight will change nothing any more."""
        self.is_closed = True
        self.next_offset = self.committable
        self.waiting.clear()
        self._held.clear()
        self._bytes = 0

    def validate(self) -> None:
        """Checks what must always hold."""
        offsets = list(self._held)
        assert offsets == sorted(offsets), "held in order"
        assert not offsets or offsets[-1] <= self._last < self.next_offset, "next lies behind all"
        assert self.committable <= self.next_offset
        waiting = [message.queue_offset for message in self.waiting]
        assert len(set(waiting)) == len(waiting), "waits once"
        assert set(waiting) <= set(offsets), "what waits is held"
        assert self._bytes == sum(len(message.body) for message in self._held.values())
        assert not (self.is_closed and offsets), "a closed window holds nothing"
