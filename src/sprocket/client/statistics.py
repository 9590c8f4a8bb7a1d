"""What a consumer does, in numbers: by topic, over the last minute and since it began. Pure.

Rates and times are of the last minute, kept in slots of ten seconds, so that they cost a few
additions each and a fixed amount of memory. Source of what is told: ConsumerStatsManager of
RocketMQ 5.x.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sprocket.client.window import Window

SLOT_SECONDS = 10.0
#: The slot under way, and a minute of finished ones.
_SLOTS = 7


class TopicStatistics(NamedTuple):
    """What happened with one topic's messages at one consumer.

    Attributes:
        pulls_per_second, pulled_per_second: answers to pulls that had messages, and messages.
        pull_ms: how long such a pull took on average, waiting at the broker included.
        consumed_per_second, failed_per_second: messages whose listener succeeded, or did not.
        listener_ms: how long a listener call took on average.
        pulled, consumed, failed: messages since the consumer began.
        expired: messages whose listener took longer than the consume timeout.
        waiting, in_flight, waiting_bytes: messages that were fetched and not handed out; handed
            out and not finished; and the bodies of both. Filled by flow control's limits.
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
    waiting: int = 0
    in_flight: int = 0
    waiting_bytes: int = 0


class Statistics(NamedTuple):
    """What a consumer did, and has at the moment.

    Attributes:
        group: its group.
        topics: by topic. What came by the retry topic counts for the topic it was sent to once it
            is with the listener, and for the retry topic before that.
        queues: queues that it holds.
    """

    group: str
    topics: Mapping[str, TopicStatistics]
    queues: int = 0


class Held(NamedTuple):
    """What is in the windows of one topic at the moment."""

    topic: str
    waiting: int
    in_flight: int
    size: int


def held_in(topic: str, window: Window) -> Held:
    """What a window of that topic has at the moment."""
    return Held(topic, window.count - window.in_flight, window.in_flight, window.bytes)


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
    __slots__ = ("began", "expired", "recent", "total")

    def __init__(self, now: float) -> None:
        self.began = now
        self.total = _Slot()
        self.recent = [_Slot() for _ in range(_SLOTS)]
        self.expired = 0

    def at(self, now: float) -> _Slot:
        """The slot to add to."""
        number = now // SLOT_SECONDS
        slot = self.recent[int(number) % _SLOTS]
        if slot.number != number:
            slot.clear(number)
        return slot

    def told(self, now: float) -> TopicStatistics:
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
        self, topic: str, now: float, *, count: int, seconds: float, has_failed: bool
    ) -> None:
        """A listener call with `count` messages ended."""
        about = self._topics.get(topic) or self._add(topic, now)
        slot, total = about.at(now), about.total
        slot.calls += 1
        slot.call_seconds += seconds
        if has_failed:
            slot.failed += count
            total.failed += count
        else:
            slot.consumed += count
            total.consumed += count

    def expired(self, topic: str, now: float) -> None:
        """A message was given back since its listener took too long."""
        (self._topics.get(topic) or self._add(topic, now)).expired += 1

    def _add(self, topic: str, now: float) -> _Topic:
        return self._topics.setdefault(topic, _Topic(now))

    def told(self, now: float, held: Iterable[Held] = (), *, queues: int = 0) -> Statistics:
        """All of it as a value.

        Args:
            held: what is in windows at the moment, each queue's.
            queues: how many queues are held.
        """
        topics = {topic: about.told(now) for topic, about in sorted(self._topics.items())}
        for topic, waiting, in_flight, size in held:
            one = topics.get(topic, TopicStatistics())
            topics[topic] = one._replace(
                waiting=one.waiting + waiting,
                in_flight=one.in_flight + in_flight,
                waiting_bytes=one.waiting_bytes + size,
            )
        return Statistics(self._group, topics, queues)
