"""Which queue a message goes to: round robin, by key, and away from brokers that failed.

Pure; times are seconds on the loop's clock. Source: MQFaultStrategy, TopicPublishInfo,
SelectMessageQueueByHash of RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Sequence

from sprocket.base.errors import UsageError
from sprocket.message.hashing import java_hash
from sprocket.message.queue import QueueId

#: (if a send took at least this long, its broker is avoided for that long), seconds, longest first.
_AVOIDED: tuple[tuple[float, float], ...] = (
    (15.0, 30.0),
    (5.0, 10.0),
    (3.0, 6.0),
    (1.8, 5.0),
    (0.55, 2.0),
)
#: A quicker reply changes nothing for a broker that is not avoided.
SLOW = _AVOIDED[-1][0]
#: A failed send counts as one that took this long.
_FAILURE = 10.0


def by_key(queues: Sequence[QueueId], key: str | int) -> QueueId:
    """The queue of a key: its Java hash modulo the number of queues, as Java's selector does.

    All producers choose the same queue as long as they see the same queues in the same order.
    """
    if isinstance(key, str):
        hashed = java_hash(key)
    elif not isinstance(key, int):
        raise UsageError(f"a key is a text or a whole number, not {key!r}")
    elif -(2**31) <= key < 2**31:
        hashed = key
    elif -(2**63) <= key < 2**63:
        hashed = _long_hash(key)
    else:
        raise UsageError(f"a key that is a number has at most 64 bits: {key}")
    return queues[abs(hashed) % len(queues)]


def _long_hash(key: int) -> int:
    unsigned = key & 0xFFFFFFFFFFFFFFFF
    folded = (unsigned ^ unsigned >> 32) & 0xFFFFFFFF
    return folded - (1 << 32) if folded >= 1 << 31 else folded


class Faults:
    """Brokers that were slow or failed, and until when they are avoided."""

    __slots__ = ("until",)

    def __init__(self) -> None:
        #: By broker name, the time until which it is avoided.
        self.until: dict[str, float] = {}

    def answered(self, broker: str, seconds: float, now: float) -> None:
        """Records how long a broker took to reply. A quick reply clears it."""
        if seconds < SLOW:
            if self.until:
                self.until.pop(broker, None)
            return
        for slow, avoided in _AVOIDED:
            if seconds >= slow:
                self.until[broker] = now + avoided
                return

    def failed(self, broker: str, now: float) -> None:
        """Records that a broker did not reply, or refused for now."""
        self.answered(broker, _FAILURE, now)

    def is_avoided(self, broker: str, now: float) -> bool:
        """Whether a broker is to be avoided now."""
        until = self.until.get(broker)
        if until is None:
            return False
        if now >= until:
            del self.until[broker]
            return False
        return True


class QueueChooser:
    """Takes the queues of each topic in turn.

    Args:
        start: index to begin with; random, so that many producers do not begin with the same queue.
        faults: brokers to avoid while there are others; None avoids none.
    """

    __slots__ = ("_faults", "_start", "_turns")

    def __init__(self, start: int = 0, faults: Faults | None = None) -> None:
        self._start = start
        self._faults = faults
        self._turns: dict[str, int] = {}

    def next(self, queues: Sequence[QueueId], now: float, *, not_at: str = "") -> QueueId:
        """The queue whose turn it is.

        Args:
            queues: of one topic, not empty.
            not_at: a broker to avoid if there is another, because it has just failed.
        """
        topic = queues[0].topic
        turn = self._turns.get(topic, self._start) + 1
        self._turns[topic] = turn
        first = queues[turn % len(queues)]
        if not not_at and (self._faults is None or not self._faults.until):
            return first
        in_turn = [queues[(turn + step) % len(queues)] for step in range(len(queues))]
        others = [queue for queue in in_turn if queue.broker != not_at]
        for queue in others:
            if self._faults is None or not self._faults.is_avoided(queue.broker, now):
                return queue
        return others[0] if others else first
