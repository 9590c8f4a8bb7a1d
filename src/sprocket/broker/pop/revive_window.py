"""The check points of one revive queue whose time is near, and what of them is acknowledged. Pure.

The timers bring a check point into its queue a second before its time, and acknowledgements when
its time is there; both are read in order. A check point leaves the window when it is revived. The
offset that is committed lies before all that are open, so that a start reads them, and what came
after them, again.

A window holds a bounded number of check points. Those that do not fit are left in the queue, while
acknowledgements behind them are still applied; when the window is empty, reading begins again at
the first of them. So memory is bounded, even if a million messages come again in one second.
Source: PopReviveService of RocketMQ 5.3, which keeps all that it reads in one scan.
"""

from __future__ import annotations

import heapq

import msgspec

from sprocket.protocol.bodies.pop import AckRecord, CheckPoint, PopKey, key_of

#: Open check points of one queue at most, each with at most 32 messages; some 500 bytes each.
OPEN_MAX = 16_384


class OpenPop(msgspec.Struct, gc=False):
    """A check point whose messages are not all done.

    Attributes:
        offset: its offset in the revive queue.
        left: queue offsets of its messages that are not acknowledged, in order.
    """

    key: PopKey
    offset: int
    due_ms: int
    left: dict[int, None]


class ReviveWindow:
    """The window.

    Args:
        broker: the broker's name, for records that have none.
        start: the offset in the revive queue of the first record.

    Attributes:
        next_offset: where to read next.
    """

    def __init__(self, broker: str, start: int, *, open_max: int = OPEN_MAX) -> None:
        self._broker = broker
        self._open_max = open_max
        self._open: dict[PopKey, OpenPop] = {}
        self._dues: list[tuple[int, int, PopKey]] = []
        #: The offset of the first check point that did not fit.
        self._left_at: int | None = None
        self.next_offset = start

    def __len__(self) -> int:
        return len(self._open)

    @property
    def done_offset(self) -> int:
        """The offset of the last record of which nothing is needed any more; -1 if there is none.
        RocketMQ commits this offset, not the one behind it."""
        first = next(iter(self._open.values()), None)
        if first is not None:
            return first.offset - 1
        return (self.next_offset if self._left_at is None else self._left_at) - 1

    @property
    def next_ms(self) -> int | None:
        """When the next check point is due; None if none is open."""
        return self._dues[0][0] if self._dues else None

    def take(self, offset: int, record: CheckPoint | AckRecord | None) -> None:
        """Takes the next record of the queue; None for one that means nothing."""
        self.next_offset = offset + 1
        key = None if record is None else key_of(record, self._broker)
        if key is None:
            return
        if isinstance(record, AckRecord):
            self._acknowledge(key, record.all_offsets())
        elif isinstance(record, CheckPoint) and key not in self._open:
            if self._left_at is not None or len(self._open) >= self._open_max:
                self._left_at = offset if self._left_at is None else self._left_at
                return
            left = dict.fromkeys(record.offsets())
            self._open[key] = OpenPop(key, offset, record.due_ms, left)
            heapq.heappush(self._dues, (record.due_ms, offset, key))

    # An acknowledgement names the check point by its first offset. Java's own brokers find the
    # message in it by its place; one that is not in it is passed over.
    def _acknowledge(self, key: PopKey, offsets: list[int]) -> None:
        found = self._open.get(key)
        if found is None:
            return
        for offset in offsets:
            found.left.pop(offset, None)
        if not found.left:
            self.done(found)

    def first_due(self, until_ms: int) -> OpenPop | None:
        """The check point that has been due for longest at a time; None if none is due."""
        while self._dues and self._dues[0][0] <= until_ms:
            _, offset, key = self._dues[0]
            found = self._open.get(key)
            if found is not None and found.offset == offset:
                return found
            heapq.heappop(self._dues)
        return None

    def done(self, pop: OpenPop) -> None:
        """Takes a check point out: all its messages are acknowledged, revived or gone."""
        self._open.pop(pop.key, None)
        if not self._open:
            self._dues.clear()
            if self._left_at is not None:
                self.next_offset, self._left_at = self._left_at, None
