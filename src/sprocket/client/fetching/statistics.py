"""Statistics of a consumer by topic: over the last minute, and since the consumer started. Pure.

Rates and times cover the last minute. They are counted in slots of ten seconds, so each count costs
a few additions, and the memory is fixed. Source of the figures: ConsumerStatsManager of RocketMQ
5.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sprocket.client.fetching.window import Window
from sprocket.message.queue import QueueId

SLOT_SECONDS = 10.0
#: The current slot, and a minute of finished ones.
_SLOTS = 7


class TopicStatistics(NamedTuple):
    """Statistics of one topic at one consumer.

    Attributes:
        pulls_per_second: pulls that returned messages.
        pulled_per_second: messages that pulls returned.
        pull_ms: average duration of such a pull, including the time for which the broker held it.
        consumed_per_second: messages whose listener succeeded.
        failed_per_second: messages whose listener failed or returned `Later`.
        listener_ms: average duration of a listener call; when iterating or polling, the time until
            the next message or poll was requested.
        pulled, consumed, failed: numbers of messages since the consumer started.
        expired: messages whose listener took longer than the consume timeout.
        throttled: how often fetching from a queue stopped at a limit, by the limit: `count`,
            `bytes` or `span` (see `ConsumerConfig.window_count_max` and its neighbours).
        waiting: messages that are fetched and not delivered yet.
        in_flight: messages that are delivered and not finished.
        waiting_bytes: bytes of the bodies of both.
    """

    pulls_per_second: float = 0.0
    pulled_per_second: float = 0.0
    pull_ms: float = 0.0
    consumed_per_second: float = 0.0
    failed_per_second: float = 0.0
    listener_ms: float = 0.0
    pulled: int = 0
    consumed: int = 0
    failed: int = 0
    expired: int = 0
    throttled: Mapping[str, int] = MappingProxyType({})
    waiting: int = 0
    in_flight: int = 0
    waiting_bytes: int = 0


class WindowStatistics(NamedTuple):
    """The messages of one queue that are fetched and not finished now.

    Attributes:
        position: the offset of the first message that is not finished; this offset is committed.
        next_offset: the offset of the next fetch.
        waiting: messages that are fetched and not delivered yet.
        in_flight: messages that are delivered and not finished.
        size: bytes of the bodies of both.
        span: the distance in offsets between the first and the last of them.
        full_by: the limit that stops fetching: `count`, `bytes` or `span`; None if there is none.
    """

    queue: QueueId
    position: int
    next_offset: int
    waiting: int
    in_flight: int
    size: int
    span: int
    full_by: str | None

    @classmethod
    def of(cls, queue: QueueId, window: Window) -> WindowStatistics:
        """Returns the statistics of that queue's window."""
        return cls(
            queue,
            window.committable,
            window.next_offset,
            window.count - window.in_flight,
            window.in_flight,
            window.bytes,
            window.span,
            window.full_by,
        )


class Statistics(NamedTuple):
    """Statistics of a consumer.

    Attributes:
        group: its group.
        topics: by topic. A message of the retry topic counts for the retry topic when it is
            fetched, and for its original topic when it is delivered.
        windows: the queues that the consumer holds, sorted.
    """

    group: str
    topics: Mapping[str, TopicStatistics]
    windows: tuple[WindowStatistics, ...] = ()

    @property
    def queues(self) -> int:
        """How many queues the consumer holds."""
        return len(self.windows)


class _Slot:
    """Counts of ten seconds, or of the whole time."""

    __slots__ = (
        "call_seconds", "calls", "consumed", "failed", "number", "pull_seconds", "pulled", "pulls",
    )  # fmt: skip

    def __init__(self) -> None:
        self.clear(-1)

    def clear(self, number: float) -> None:
        self.number = number
        self.pulls = self.pulled = self.calls = self.consumed = self.failed = 0
        self.pull_seconds = self.call_seconds = 0.0


class _Topic:
    __slots__ = ("began", "expired", "recent", "throttled", "total")

    def __init__(self, now: float) -> None:
        self.began = now
        self.total = _Slot()
        self.recent = [_Slot() for _ in range(_SLOTS)]
        self.expired = 0
        self.throttled: dict[str, int] = {}

    def at(self, now: float) -> _Slot:
        """Returns the slot of the time `now`."""
        number = now // SLOT_SECONDS
        slot = self.recent[int(number) % _SLOTS]
        if slot.number != number:
            slot.clear(number)
        return slot

    def snapshot(self, now: float) -> TopicStatistics:
        number = now // SLOT_SECONDS
        slots = [slot for slot in self.recent if number - _SLOTS < slot.number <= number]
        seconds = (_SLOTS - 1) * SLOT_SECONDS + now % SLOT_SECONDS
        seconds = max(min(seconds, now - self.began), 1.0)
        pulls = sum(slot.pulls for slot in slots)
        calls = sum(slot.calls for slot in slots)
        return TopicStatistics(
            pulls_per_second=pulls / seconds,
            pulled_per_second=sum(slot.pulled for slot in slots) / seconds,
            pull_ms=1000 * sum(slot.pull_seconds for slot in slots) / max(pulls, 1),
            consumed_per_second=sum(slot.consumed for slot in slots) / seconds,
            failed_per_second=sum(slot.failed for slot in slots) / seconds,
            listener_ms=1000 * sum(slot.call_seconds for slot in slots) / max(calls, 1),
            pulled=self.total.pulled,
            consumed=self.total.consumed,
            failed=self.total.failed,
            expired=self.expired,
            throttled=dict(self.throttled),
        )


class Counters:
    """Counters of one consumer; `now` is seconds on a monotonic clock."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._topics: dict[str, _Topic] = {}

    def pulled(self, topic: str, now: float, *, count: int, seconds: float) -> None:
        """Counts a pull that returned messages."""
        about = self._topics.get(topic) or self._add(topic, now)
        for slot in (about.at(now), about.total):
            slot.pulls += 1
            slot.pulled += count
            slot.pull_seconds += seconds

    def called(
        self, topic: str, now: float, *, count: int, seconds: float, failed: int = 0
    ) -> None:
        """Counts a listener call with `count` messages, `failed` of which will be redelivered."""
        about = self._topics.get(topic) or self._add(topic, now)
        slot, total = about.at(now), about.total
        slot.calls += 1
        slot.call_seconds += seconds
        if failed:
            slot.failed += failed
            total.failed += failed
            count -= failed
        slot.consumed += count
        total.consumed += count

    def consumed(self, topic: str, now: float, seconds: float) -> None:
        """Counts a successful call with one message; faster than `called`, for most calls."""
        about = self._topics.get(topic) or self._add(topic, now)
        slot = about.at(now)
        slot.calls += 1
        slot.call_seconds += seconds
        slot.consumed += 1
        about.total.consumed += 1

    def expired(self, topic: str, now: float) -> None:
        """Counts a message that is sent back because its listener took too long."""
        (self._topics.get(topic) or self._add(topic, now)).expired += 1

    def throttled(self, topic: str, now: float, limit: str) -> None:
        """Counts that fetching from a queue stopped at a limit."""
        counts = (self._topics.get(topic) or self._add(topic, now)).throttled
        counts[limit] = counts.get(limit, 0) + 1

    def _add(self, topic: str, now: float) -> _Topic:
        return self._topics.setdefault(topic, _Topic(now))

    def snapshot(self, now: float, windows: Iterable[WindowStatistics] = ()) -> Statistics:
        """Returns all statistics.

        Args:
            windows: the windows of the queues that are held.
        """
        windows = tuple(windows)
        topics = {topic: about.snapshot(now) for topic, about in sorted(self._topics.items())}
        for window in windows:
            one = topics.get(window.queue.topic, TopicStatistics())
            topics[window.queue.topic] = one._replace(
                waiting=one.waiting + window.waiting,
                in_flight=one.in_flight + window.in_flight,
                waiting_bytes=one.waiting_bytes + window.size,
            )
        return Statistics(self._group, topics, windows)
