"""Takes messages of one lite topic for a group, in their order.

What is given out is a row of the pops in order, as of a queue of a topic that is popped in order:
while its messages are neither acknowledged nor visible again, the group gets no others of this lite
topic, and its offset moves when the first are acknowledged.
Source: PopLiteMessageProcessor.popLiteTopic of RocketMQ 5.5, which keeps the rows in memory only.
"""

from __future__ import annotations

from typing import NamedTuple

from sprocket.base.ports import Clock
from sprocket.broker.pop.journal import OrderRow
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.message.lite import LiteName
from sprocket.store.store import Store

#: The number of a lite topic's only queue.
QUEUE = 0


class LitePopAsk(NamedTuple):
    """What a pop asks of one lite topic.

    Attributes:
        pop_ms: the time of the pop.
        attempt: with the same one a consumer gets the same messages again.
    """

    group: str
    name: LiteName
    count_max: int
    bytes_max: int
    pop_ms: int
    invisible_ms: int
    attempt: str | None


class TakenLites(NamedTuple):
    """What a pop gets of one lite topic: messages, or when there may be some.

    Attributes:
        row: the new row, and the offset from which it was read; None without messages.
        blocked_ms: until when nothing is given out, because something is; None if it may be.
        counts: how often each message was given out before.
    """

    messages: list[memoryview]
    counts: list[int]
    row: OrderRow | None
    start: int
    blocked_ms: int | None

    @property
    def size(self) -> int:
        """Bytes of the records."""
        return sum(map(len, self.messages))


class LiteTaking:
    """Reads lite topics for groups."""

    def __init__(
        self, store: Store, orders: OrderTable, offsets: ConsumerOffsets, clock: Clock
    ) -> None:
        self._lite = store.lite
        self._cold = store.cold
        self._orders = orders
        self._offsets = offsets
        self._clock = clock

    def offset(self, group: str, name: LiteName) -> int:
        """The offset from which a group reads: its own if there are messages, or will be."""
        low = self._lite.min_offset(name)
        known = self._offsets.committed(group, name.queue, QUEUE)
        return low if known is None else max(known, low)

    def has_rest(self, group: str, name: LiteName) -> bool:
        """Whether a lite topic has messages that a group has not acknowledged."""
        return self._lite.max_offset(name) > self.offset(group, name)

    def blocked_ms(self, group: str, name: LiteName, attempt: str | None = None) -> int | None:
        """Until when a group gets nothing of a lite topic; None if it may."""
        return self._orders.blocked_until(
            group, name.queue, QUEUE, attempt=attempt, now_ms=self._clock.now_ms()
        )

    async def load(self, group: str, name: LiteName, count: int) -> None:
        """Loads the messages that a pop will take, if they are not in memory.

        Raises:
            StoreError: the disk failed.
        """
        for log_offset in self._lite.places(name, self.offset(group, name), count):
            await self._cold.load_record(log_offset)

    def take(self, ask: LitePopAsk) -> TakenLites:
        """The messages that a pop gets; nothing has changed until the row is kept."""
        group, name = ask.group, ask.name
        blocked_ms = self.blocked_ms(group, name, ask.attempt)
        start = self.offset(group, name)
        if blocked_ms is not None:
            return TakenLites([], [], None, start, blocked_ms)
        done = self._orders.done_offsets(group, name.queue, QUEUE)
        read = self._lite.read(
            name, start, count_max=ask.count_max + len(done), bytes_max=ask.bytes_max
        )
        found = [each for each in read.messages if each[0] not in done][: ask.count_max]
        if not found:
            return TakenLites([], [], None, start, None)
        offsets = [offset for offset, _ in found]
        row = self._orders.given(
            group, name.queue, QUEUE, offsets, pop_ms=ask.pop_ms,
            invisible_ms=ask.invisible_ms, attempt=ask.attempt, start=start,
        )  # fmt: skip
        counts = row.counts or {}
        return TakenLites(
            [record for _, record in found],
            [max(0, counts.get(offset, 0)) for offset in offsets],
            OrderRow(group, name.queue, QUEUE, row),
            start,
            None,
        )
