"""What a consumer does, in numbers: by topic, over the last minute and since it began. Pure.

Rates and times are of the last minute, kept in slots of ten seconds, so that they cost a few
additions each and a fixed amount of memory. Source of what is told: ConsumerStatsManager of
RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sprocket.client.fetching.window import Window
from sprocket.message.queue import QueueId

SLOT_SECONDS = 10.0
#: The slot under way, and a minute of finished ones.
_SLOTS = 7


class TopicStatistics(NamedTuple):
    """What happened with one topic's messages at one consumer.

    Attributes:
        pulls_per_second, pulled_per_second: answers to pulls that had messages, and messages.
        pull_ms: how long such a pull took on average, waiting at the broker included.
        consumed_per_second, failed_per_second: messages whose listener succeeded, or did not.
        listener_ms: how long a listener call took on average; when iterating or polling, the time
            until the next message, or poll, was asked for.
        pulled, consumed, failed: messages since the consumer began.
        expired: messages whose listener took longer than the consume timeout.
        throttled: how often fetching from a queue stopped because a limit was reached, by the
            limit: `count`, `bytes` or `span` (see `ConsumerConfig.window_count_max` and others).
        waiting, in_flight, waiting_bytes: messages that were fetched and not handed out; handed
            out and not finished; and the bodies of both.
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
    """What is fetched of one queue and not finished, at the moment.

    Attributes:
        position: the offset of the first message that is not finished: what is committed.
        next_offset: the offset that is fetched next.
        waiting, in_flight: messages that were fetched and not handed out; handed out and not
            finished.
        size: the bodies of both, in bytes.
        span: the distance in offsets between the first and the last of them.
        full_by: the limit that keeps more from being fetched: `count`, `bytes`, `span`, or None.
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
        """What a window of that queue has at the moment."""
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
    """What a consumer did, and has at the moment.

    Attributes:
        group: its group.
        topics: by topic. What came by the retry topic counts for the topic it was sent to once it
            is with the listener, and for the retry topic before that.
        windows: the queues that it holds, sorted.
    """

    group: str
    topics: Mapping[str, TopicStatistics]
    windows: tuple[WindowStatistics, ...] = ()

    @property
    def queues(self) -> int:
        """How many queues it holds."""
        return len(self.windows)


class _Slot:
    """What happened in ten seconds, or in all the time."""

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
        """The slot to add to."""
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
    """Counts for one consumer; `now` is a monotonic clock's, in seconds."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._topics: dict[str, _Topic] = {}

    def pulled(self, topic: str, now: float, *, count: int, seconds: float) -> None:
        """A pull brought messages."""
        about = self._topics.get(topic) or self._add(topic, now)
        for slot in (about.at(now), about.total):
            slot.pulls += 1
            slot.pulled += count
            slot.pull_seconds += seconds

    def called(
        self, topic: str, now: float, *, count: int, seconds: float, failed: int = 0
    ) -> None:
        """A listener call with `count` messages ended, `failed` of which come again."""
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
        """As `called` for one message, which succeeded: where most calls are counted."""
        about = self._topics.get(topic) or self._add(topic, now)
        slot = about.at(now)
        slot.calls += 1
        slot.call_seconds += seconds
        slot.consumed += 1
        about.total.consumed += 1

    def expired(self, topic: str, now: float) -> None:
        """A message was given back since its listener took too long."""
        (self._topics.get(topic) or self._add(topic, now)).expired += 1

    def throttled(self, topic: str, now: float, limit: str) -> None:
        """Fetching from a queue stopped because a limit was reached."""
        counts = (self._topics.get(topic) or self._add(topic, now)).throttled
        counts[limit] = counts.get(limit, 0) + 1

    def _add(self, topic: str, now: float) -> _Topic:
        return self._topics.setdefault(topic, _Topic(now))

    def snapshot(self, now: float, windows: Iterable[WindowStatistics] = ()) -> Statistics:
        """All of it as a value.

        Args:
            windows: of the queues that are held.
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
