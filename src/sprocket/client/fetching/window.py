"""The window: one queue's messages that a consumer has fetched and not finished.

A message waits, then is in flight, then is done. The committable offset is the offset of the first
message that is not done, so it never passes one that waits, is with a listener, or is kept because
it could not be sent back. Fetching stops at limits of count, bytes and span, so a slow listener
cannot fill the memory.

A window is closed when its queue is released or its position is reset. Then it delivers nothing and
its position stays, so late results have no effect. Pure. RocketMQ calls it ProcessQueue.
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
    """The limits at which fetching stops.

    Attributes:
        count_max: messages that are not done.
        bytes_max: bytes of their bodies.
        span_max: distance in offsets between the first and the last of them.
    """

    count_max: int = 1000
    bytes_max: int = 100 * 1024 * 1024
    span_max: int = 2000


class Window:
    """One queue's messages at one consumer."""

    # Messages are kept in a dict by offset, which also keeps the order of insertion. The first key
    # is the position to commit, and a message is removed from the middle in constant time, whatever
    # order listeners finish in. So neither a search nor a heap is needed for each message.
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
        #: The offset of the next fetch; above every offset that is held.
        self.next_offset = QueueOffset(next_offset)
        self.limits = limits or FetchLimits()
        #: All messages that are not done, by offset, in ascending order.
        self._held: dict[QueueOffset, StoredMessage] = {}
        #: Those of them that are not delivered yet, in order of delivery, which takes from it.
        self.waiting: deque[StoredMessage] = deque()
        self._bytes = 0
        self._last = next_offset - 1
        self.is_closed = False
        #: Ordered consumption: nothing is delivered while it is frozen, nor after the queue's lease
        #: has ended, a time on the loop's clock.
        self.is_frozen = False
        self.trusted_until = math.inf
        #: Ordered consumption: whether a cancelled listener call still runs in its thread.
        self.has_straggler = False
        self._on_room: Callable[[], None] | None = None

    @property
    def count(self) -> int:
        """Messages that are not done."""
        return len(self._held)

    @property
    def bytes(self) -> int:
        """Bytes of their bodies together."""
        return self._bytes

    @property
    def in_flight(self) -> int:
        """Messages that are delivered and not done."""
        return len(self._held) - len(self.waiting)

    @property
    def committable(self) -> QueueOffset:
        """The offset to commit: another consumer would have to continue there."""
        return next(iter(self._held), self.next_offset)

    @property
    def next_to_take(self) -> QueueOffset:
        """The offset of the next message to deliver, as far as it is known."""
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
        """The limit that stops fetching: `count`, `bytes` or `span`; None if there is none."""
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
        """Adds the messages that a pull returned.

        Args:
            messages: in order of their offsets; those that were fetched before are ignored.
            next_offset: the offset of the next pull, from the broker; it may be above messages that
                the broker filtered out.

        Returns:
            How many messages were added.
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
        """Removes and returns the next message to deliver, if there is one."""
        return self.waiting.popleft() if self.waiting else None

    def take_many(self, count: int, topic: str) -> list[StoredMessage]:
        """Removes and returns up to `count` messages, up to the first of another topic."""
        taken: list[StoredMessage] = []
        waiting = self.waiting
        while waiting and len(taken) < count and waiting[0].queue.topic == topic:
            taken.append(waiting.popleft())
        return taken

    def put_back(self, messages: Sequence[StoredMessage]) -> None:
        """Puts messages that were in flight back to the head, in this order."""
        if not self.is_closed:
            self.waiting.extendleft(reversed(messages))

    def taken(self) -> list[StoredMessage]:
        """Returns the messages in flight in order, if delivery is in order of offsets."""
        return list(islice(self._held.values(), self.in_flight))

    def holds(self, message: StoredMessage) -> bool:
        """Whether the message is not done."""
        return message.queue_offset in self._held

    def limit(self, limits: FetchLimits) -> None:
        """Replaces the limits."""
        self.limits = limits
        self._notify_room()

    def done(self, message: StoredMessage) -> None:
        """Finishes a message: it is consumed, or the broker has it back."""
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
        """Registers a callback for the moment when fetching may continue.

        It is called once, and replaces the callback of an earlier call.
        """
        self._on_room = do

    def freeze(self) -> None:
        """Ordered consumption: stops delivery."""
        self.is_frozen = True

    def trust(self, until: float) -> None:
        """Ordered consumption: permits delivery until the lease ends, on the loop's clock."""
        self.trusted_until = until

    def note_straggler(self, outlives: bool) -> None:
        """Ordered consumption: records whether a cancelled listener call still runs in a thread."""
        self.has_straggler = outlives

    def close(self) -> None:
        """Drops all messages; results of messages in flight have no effect any more."""
        self.is_closed = True
        self.next_offset = self.committable
        self.waiting.clear()
        self._held.clear()
        self._bytes = 0

    def validate(self) -> None:
        """Checks the invariants."""
        offsets = list(self._held)
        assert offsets == sorted(offsets), "held in order"
        assert not offsets or offsets[-1] <= self._last < self.next_offset, "next is above all"
        assert self.committable <= self.next_offset
        waiting = [message.queue_offset for message in self.waiting]
        assert len(set(waiting)) == len(waiting), "waits once"
        assert set(waiting) <= set(offsets), "what waits is held"
        assert self._bytes == sum(len(message.body) for message in self._held.values())
        assert not (self.is_closed and offsets), "a closed window holds nothing"
