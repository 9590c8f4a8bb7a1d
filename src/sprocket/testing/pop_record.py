"""What the members of a simulated group know of the messages that they popped, and the checks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from sprocket.message.message import StoredMessage
from sprocket.message.pop_handle import PopHandle
from sprocket.testing.invariants import Violation


@dataclass(slots=True)
class Held:
    """What the group knows of a message.

    Attributes:
        pop_ms, due_ms: when it was popped last, and when it may come again, by the broker's clock;
            `due_ms` is 0 if that is unknown.
        is_done: whether an acknowledgement was answered before that.
        is_unsure: whether one may have been accepted.
    """

    queue_number: int = -1
    offset: int = -1
    pop_ms: int = -1
    due_ms: int = 0
    is_done: bool = False
    is_unsure: bool = False


@dataclass(slots=True)
class PopRecord:
    """What all members of the group know, and the checks of what they get."""

    is_order: bool
    keeps_time: bool
    held: dict[str, Held] = field(default_factory=dict)
    #: By queue, the largest offset that was given out so far.
    newest: dict[int, int] = field(default_factory=dict)
    given: int = 0

    # A reply may be late: the message may have been given to somebody else since then, and done.
    # Such a reply shows nothing.
    def came(self, key: str, handle: PopHandle) -> Held:
        """Checks a message that a pop gave out.

        Raises:
            Violation: it came too early, though it was acknowledged, or out of order.
        """
        self.given += 1
        known = self.held.setdefault(key, Held())
        if self.keeps_time and handle.pop_ms <= known.pop_ms:
            return replace(known)
        if known.is_done:
            raise Violation(f"{key} was acknowledged and came again")
        if self.keeps_time and known.due_ms > handle.pop_ms:
            raise Violation(f"{key} came {known.due_ms - handle.pop_ms} ms early")
        if self.is_order:
            self._check_order(key, known, handle)
        known.queue_number, known.offset = handle.queue_number, handle.offset
        known.pop_ms, known.due_ms = handle.pop_ms, handle.due_ms
        return known

    def _check_order(self, key: str, known: Held, handle: PopHandle) -> None:
        queue = handle.queue_number
        for other, each in self.held.items():
            is_open = not each.is_done and not each.is_unsure and each.due_ms > handle.pop_ms
            if is_open and each.queue_number == queue and each.pop_ms < handle.pop_ms:
                raise Violation(f"{key} came while {other} was in flight")
        if known.offset < 0:
            if handle.offset < self.newest.get(queue, -1):
                raise Violation(f"{key} came first after a later message of its queue")
            self.newest[queue] = handle.offset


@dataclass(slots=True)
class PoppingRecord:
    """What listeners of all members saw.

    Attributes:
        done: how often each message was done.
        begun: keys in the order in which each was first given to a listener, by queue.
    """

    is_order: bool
    done: Counter[str] = field(default_factory=Counter)
    begun: dict[object, list[str]] = field(default_factory=dict)
    given: int = 0

    def begin(self, message: StoredMessage) -> None:
        """A listener gets a message.

        Raises:
            Violation: in order, one before it is not done.
        """
        self.given += 1
        key, order = message.keys[0], self.begun.setdefault(message.queue, [])
        if self.is_order and key not in order:
            left = [each for each in order if not self.done[each]]
            if left:
                raise Violation(f"{key} began before {left[0]} of its queue was done")
        if key not in order:
            order.append(key)
