"""Takes messages out of queues for a pop.

Between the read of a queue and the step in which its messages are given out nothing waits: the
check point is in the log, and the group's offset behind the messages, before another pop reads. So
no lock is needed, and no message is given to two.
Source: PopMessageProcessor.popMsgFromQueue and getInitOffset of RocketMQ 5.3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from sprocket.base.ports import Clock, Entropy
from sprocket.broker.pop.journal import PopJournal
from sprocket.broker.pop.popped import Popped, messages_of
from sprocket.broker.settings import BrokerSettings
from sprocket.broker.tables.offsets import ConsumerOffsets
from sprocket.broker.tables.pop_orders import OrderTable
from sprocket.broker.tables.topics import Topics
from sprocket.broker.tables.volumes import Volumes
from sprocket.message.pop_handle import ORDER_QUEUE, PoppedSpan, order_counts_text
from sprocket.message.topic import is_retry_topic, pop_retry_topic
from sprocket.store.reading.queue_reader import ReadFilter, ReadResult, ReadStatus
from sprocket.store.store import Store

#: `initMode` of a pop: a group without offset begins at the first message. Source: ConsumeInitMode.
FROM_FIRST = 0

#: Queues that are read before others run on the loop.
_QUEUES_AT_ONCE = 64
_MOVED = (
    ReadStatus.OFFSET_TOO_SMALL,
    ReadStatus.OFFSET_OVERFLOW_BADLY,
    ReadStatus.OFFSET_FOUND_NULL,
)


class PopAsk(NamedTuple):
    """What a pop asks for.

    Attributes:
        queue_number: below 0 for all queues.
        queues: how many the topic has.
        wants: the filter; None for all messages.
        attempt: the attempt id of a pop in order.
        by_priority: of 100 such pops, how many go over the topic's queues by priority.
    """

    topic: str
    group: str
    queue_number: int
    queues: int
    count_max: int
    invisible_ms: int
    init_mode: int
    wants: ReadFilter | None
    is_order: bool = False
    attempt: str | None = None
    by_priority: int = 0


class Taking:
    """Gives messages out."""

    def __init__(
        self,
        store: Store,
        journal: PopJournal,
        orders: OrderTable,
        *,
        offsets: ConsumerOffsets,
        topics: Topics,
        volumes: Volumes,
        settings: BrokerSettings,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._store = store
        self._journal = journal
        self._orders = orders
        self._offsets = offsets
        self._topics = topics
        self._volumes = volumes
        self._settings = settings
        self._clock = clock
        self._entropy = entropy

    async def take(self, ask: PopAsk) -> Popped:
        """The messages that a pop gets.

        Raises:
            ReplyError, StoreError, DiskFull: a record about what is given out cannot be stored;
                what was taken before it comes again after its time.
        """
        if ask.is_order and not self._journal.has_orders:
            await self._journal.begin_orders()
        queues = list(self.queues_of(ask))
        void_ms = max(self._offsets.popped.void_ms(ask.group, *queue) for queue in queues)
        found = Popped(
            ask.topic,
            self._journal.broker,
            max(self._clock.now_ms(), void_ms + 1),
            ask.invisible_ms,
            ORDER_QUEUE if ask.is_order else self._journal.next_queue(),
        )
        for place, (topic, number) in enumerate(queues, 1):
            if place % _QUEUES_AT_ONCE == 0:
                await asyncio.sleep(0)
            await self._load(ask, found, topic, number)
            self._take_from(ask, found, topic, number)
        return found

    def queues_of(self, ask: PopAsk) -> Iterator[tuple[str, int]]:
        """The queues that a pop reads, the group's retry topics first or last.

        A pop by priority begins with the queue of the highest one; any other with any queue.
        """
        config, chance = self._settings.config, self._entropy.below(100)
        goes_by_priority = chance < ask.by_priority and not ask.is_order
        retries = [] if ask.is_order else list(self.retry_queues(ask.topic, ask.group, chance))
        is_first = chance < (
            config.pop_priority_retry_percent if goes_by_priority else config.pop_retry_percent
        )
        if is_first:
            yield from retries
        if ask.queue_number >= 0:
            yield ask.topic, ask.queue_number
        elif goes_by_priority:
            numbers = range(ask.queues)
            for number in reversed(numbers) if config.priority_ascending else numbers:
                yield ask.topic, number
        else:
            for number in range(ask.queues):
                yield ask.topic, (chance + number) % ask.queues
        if not is_first:
            yield from retries

    async def waiting(self, ask: PopAsk) -> Popped:
        """How many messages a pop would find, as `rest`; those of blocked queues do not count."""
        found = Popped(ask.topic, self._journal.broker, 0, 0, 0)
        for place, (topic, number) in enumerate(list(self.queues_of(ask)), 1):
            if place % _QUEUES_AT_ONCE == 0:
                await asyncio.sleep(0)
            if not (ask.is_order and self._is_blocked(ask, found, topic, number)):
                end = self._store.max_offset(topic, number)
                found.seen[topic, number] = end
                found.rest += max(0, end - self.offset(ask, topic, number))
        return found

    def retry_queues(self, topic: str, group: str, chance: int = 0) -> Iterator[tuple[str, int]]:
        """The queues of both retry topics of a group, as far as they exist; each first in turn."""
        for is_v2 in (chance % 2 == 0, chance % 2 == 1):
            name = pop_retry_topic(topic, group, is_v2=is_v2)
            known = self._topics.get(name)
            if known is not None:
                for number in range(known.read_queue_nums):
                    yield name, number

    def offset(self, ask: PopAsk, topic: str, number: int) -> int:
        """The offset from which a group pops a queue."""
        known = self._offsets.committed(ask.group, topic, number)
        if known is not None and known >= 0:
            return known
        low, high = self._store.min_offset(topic, number), self._store.max_offset(topic, number)
        if ask.init_mode == FROM_FIRST or is_retry_topic(topic) or low == 0:
            return low
        return max(high - 1, low)

    async def _load(self, ask: PopAsk, found: Popped, topic: str, number: int) -> None:
        """Loads what the read will use, if it is not in memory."""
        offset = self.offset(ask, topic, number)
        sought = {"count": ask.count_max, "bytes_max": self._settings.config.pull_bytes_max}
        if ask.wants is not None:
            sought["count"] = ask.wants.entries_max
        if found.count < ask.count_max and self._store.is_cold(topic, number, offset, **sought):
            await self._store.load(topic, number, offset, **sought)

    def _take_from(self, ask: PopAsk, found: Popped, topic: str, number: int) -> None:
        offset = self.offset(ask, topic, number)
        if ask.is_order and self._is_blocked(ask, found, topic, number):
            return
        if found.pop_ms <= self._offsets.popped.void_ms(ask.group, topic, number):
            found.is_unfinished = True  # it was reset just now: the next look has another time
            return
        count = ask.count_max - found.count
        if ask.is_order and count > 0:  # those that are done already are read and left out
            count += len(self._orders.done_offsets(ask.group, topic, number))
        bytes_max = self._settings.config.pull_bytes_max - found.size
        if count <= 0 or bytes_max <= 0:
            found.rest += max(0, self._store.max_offset(topic, number) - offset)
            return
        read = self._read(topic, number, offset, count, bytes_max, ask.wants)
        if read.status in _MOVED:
            offset = int(read.next_offset)
            read = self._read(topic, number, offset, count, bytes_max, ask.wants)
        found.seen[topic, number] = int(read.max_offset)
        found.rest += max(0, read.max_offset - read.next_offset)
        if read.count:
            self._give(ask, found, PoppedSpan(topic, number, offset, ()), read)
        elif read.status is ReadStatus.NO_MATCHED_MESSAGE:
            self._move(ask, topic, number, int(read.next_offset))
            found.is_unfinished |= read.next_offset < read.max_offset
        elif read.status in _MOVED:
            self._move(ask, topic, number, int(read.next_offset))

    def _read(
        self, topic: str, number: int, offset: int, count: int, bytes_max: int,
        wants: ReadFilter | None,
    ) -> ReadResult:  # fmt: skip
        return self._store.read(
            topic, number, offset, count_max=count, bytes_max=bytes_max, wants=wants
        )

    def _is_blocked(self, ask: PopAsk, found: Popped, topic: str, number: int) -> bool:
        until_ms = self._orders.blocked_until(
            ask.group, topic, number, attempt=ask.attempt, now_ms=self._clock.now_ms(),
            invisible_ms=ask.invisible_ms,
        )  # fmt: skip
        if until_ms is None:
            return False
        found.seen[topic, number] = self._store.max_offset(topic, number)
        if found.unlock_ms is None or until_ms < found.unlock_ms:
            found.unlock_ms = until_ms
        return True

    def _move(self, ask: PopAsk, topic: str, number: int, offset: int) -> None:
        if self._offsets.committed(ask.group, topic, number) != offset:
            self._offsets.pop_from(ask.group, topic, queue_number=number, offset=offset)

    def _give(self, ask: PopAsk, found: Popped, span: PoppedSpan, read: ReadResult) -> None:
        """Gives out the messages of a read."""
        messages = list(messages_of(read))
        if ask.is_order:
            done = self._orders.done_offsets(ask.group, span.topic, span.queue_number)
            left = ask.count_max - found.count
            messages = [each for each in messages if each[0] not in done][:left]
        if not messages:
            self._move(ask, span.topic, span.queue_number, int(read.next_offset))
            return
        span = span._replace(offsets=[offset for offset, _ in messages])
        if ask.is_order:
            self._give_in_order(ask, found, span)
        else:
            found.last = self._journal.give_out(
                span.topic, ask.group, span.queue_number, span.offsets, start=span.start_offset,
                pop_ms=found.pop_ms, invisible_ms=found.invisible_ms,
                revive_queue=found.revive_queue,
            )  # fmt: skip
            self._move(ask, span.topic, span.queue_number, int(read.next_offset))
        found.add(span, [view for _, view in messages])
        self._volumes.got(ask.group, span.topic, count=len(messages), size=read.bytes)

    # The offset stays at the first message until that is acknowledged. It is set here for a group
    # that has none, so that its lag is known.
    def _give_in_order(self, ask: PopAsk, found: Popped, span: PoppedSpan) -> None:
        row = self._orders.given(
            ask.group, span.topic, span.queue_number, span.offsets, pop_ms=found.pop_ms,
            invisible_ms=found.invisible_ms, attempt=ask.attempt, start=span.start_offset,
        )  # fmt: skip
        found.last = self._journal.keep_order(ask.group, span.topic, span.queue_number, row)
        self._move(ask, span.topic, span.queue_number, span.start_offset)
        found.order_counts.append(
            order_counts_text(span.topic, span.queue_number, span.offsets, row.counts or {})
        )
