"""Counters of messages and bytes, by topic and group, over the last minute, hour and day. Pure.

Counting costs a look-up and three additions. Every ten seconds `sample` remembers the values of the
counters that have changed, so a quiet topic uses no memory for samples.
Source: BrokerStatsManager, StatsItem of RocketMQ 5.x.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class VolumePeriod(NamedTuple):
    """A period up to now, and the pause between its samples, ms."""

    length_ms: int
    every_ms: int


MINUTE = VolumePeriod(60_000, 10_000)
HOUR = VolumePeriod(3_600_000, 600_000)
DAY = VolumePeriod(86_400_000, 3_600_000)
SPANS = (MINUTE, HOUR, DAY)

#: A rate is computed over at least this time, so that one first message gives no huge rate, ms.
_RATE_MS_MIN = 10_000


class VolumeSnapshot(NamedTuple):
    """What a counter counted in a period.

    Attributes:
        calls: requests that carried the messages.
        ms: length of the period; shorter soon after the start.
    """

    messages: int
    bytes: int
    calls: int
    ms: int

    @property
    def per_second(self) -> float:
        """Messages per second."""
        return 1000 * self.messages / self.ms


NOTHING = VolumeSnapshot(0, 0, 0, _RATE_MS_MIN)


class _CounterSample(NamedTuple):
    """The values of a counter at one moment."""

    at_ms: int
    messages: int
    bytes: int
    calls: int


class Flow:
    """The counters of one topic, or of one group in a topic."""

    __slots__ = ("_past", "bytes", "calls", "messages")

    def __init__(self, began_ms: int) -> None:
        self.messages = self.bytes = self.calls = 0
        #: Samples of each span, the oldest first; the first is from before the span, or the start.
        self._past = tuple(deque([_CounterSample(began_ms, 0, 0, 0)]) for _ in SPANS)

    def sample(self, now_ms: int) -> None:
        """Adds a sample to each span for which one is due."""
        sample = _CounterSample(now_ms, self.messages, self.bytes, self.calls)
        for span, past in zip(SPANS, self._past, strict=True):
            last = past[-1]
            if last.calls != self.calls and now_ms - last.at_ms >= span.every_ms:
                past.append(sample)
            while len(past) > 1 and past[1].at_ms <= now_ms - span.length_ms:
                past.popleft()

    def is_old(self, now_ms: int) -> bool:
        """Whether nothing was counted for more than a day."""
        last = self._past[-1][-1]
        return last.calls == self.calls and now_ms - last.at_ms > DAY.length_ms + DAY.every_ms

    def in_last(self, span: VolumePeriod, now_ms: int) -> VolumeSnapshot:
        """What was counted in the last span, up to now."""
        past = self._past[SPANS.index(span)]
        before = past[0]
        for sample in past:
            if sample.at_ms > now_ms - span.length_ms:
                break
            before = sample
        since_ms = max(before.at_ms, now_ms - span.length_ms - span.every_ms)
        return VolumeSnapshot(
            self.messages - before.messages,
            self.bytes - before.bytes,
            self.calls - before.calls,
            max(now_ms - since_ms, _RATE_MS_MIN),
        )


class Volumes:
    """All counters of a broker.

    Args:
        now_ms: the time of the start, ms.
        flows_max: how many topics are counted, and how many pairs of topic and group; further ones
            are not counted.
    """

    def __init__(self, now_ms: int, *, flows_max: int = 20_000) -> None:
        self._sampled_ms = now_ms
        self._flows_max = flows_max
        self._puts: dict[str, Flow] = {}
        self._gets: dict[tuple[str, str], Flow] = {}
        self._returns: dict[tuple[str, str], Flow] = {}

    def put(self, topic: str, size: int, count: int = 1, calls: int = 1) -> None:
        """Counts messages stored in a topic by some calls; `size` is the bytes of all of them."""
        flow = self._puts.get(topic) or self._new(self._puts, topic)
        flow.messages += count
        flow.bytes += size
        flow.calls += calls

    def got(self, group: str, topic: str, *, count: int, size: int) -> None:
        """Counts messages of a topic that a group pulled; `size` is the bytes of all of them."""
        flow = self._gets.get((topic, group)) or self._new(self._gets, (topic, group))
        flow.messages += count
        flow.bytes += size
        flow.calls += 1

    def returned(self, group: str, topic: str) -> None:
        """Counts a message that a group sent back."""
        flow = self._returns.get((topic, group)) or self._new(self._returns, (topic, group))
        flow.messages += 1
        flow.calls += 1

    def _new(self, table: dict[K, Flow], key: K) -> Flow:
        flow = Flow(self._sampled_ms)
        if len(table) < self._flows_max:
            table[key] = flow
        return flow

    def sample(self, now_ms: int) -> None:
        """Samples all counters; to be called every few seconds."""
        if now_ms - self._sampled_ms < MINUTE.every_ms:
            return
        self._sampled_ms = now_ms
        _sample(self._puts, now_ms)
        _sample(self._gets, now_ms)
        _sample(self._returns, now_ms)

    def of_topic(self, topic: str) -> Flow | None:
        """The counters of sends to a topic; None if there was none for a day."""
        return self._puts.get(topic)

    def of_group(self, group: str, topic: str) -> Flow | None:
        """The counters of a group's pulls; None if there was none for a day."""
        return self._gets.get((topic, group))

    def returns_of(self, group: str, topic: str) -> Flow | None:
        """The counters of a group's send-backs; None if there was none for a day."""
        return self._returns.get((topic, group))

    def puts(self) -> list[tuple[str, Flow]]:
        """The counters of all topics."""
        return list(self._puts.items())

    def gets(self) -> list[tuple[tuple[str, str], Flow]]:
        """The counters of all pairs of topic and group that pulls counted."""
        return list(self._gets.items())

    def put_over(self, span: VolumePeriod, now_ms: int) -> VolumeSnapshot:
        """All sends to all topics in the last span."""
        return _sum(self._puts, span, now_ms)

    def got_over(self, span: VolumePeriod, now_ms: int) -> VolumeSnapshot:
        """All pulls of all groups in the last span."""
        return _sum(self._gets, span, now_ms)

    def forget_topic(self, topic: str) -> None:
        """Removes the counters of a topic and of all groups in it."""
        self._puts.pop(topic, None)
        for table in (self._gets, self._returns):
            for key in [key for key in table if key[0] == topic]:
                del table[key]

    def forget_group(self, group: str) -> None:
        """Removes the counters of a group."""
        for table in (self._gets, self._returns):
            for key in [key for key in table if key[1] == group]:
                del table[key]


def _sample(table: dict[K, Flow], now_ms: int) -> None:
    old = []
    for key, flow in table.items():
        flow.sample(now_ms)
        if flow.is_old(now_ms):
            old.append(key)
    for key in old:
        del table[key]


def _sum(table: dict[K, Flow], span: VolumePeriod, now_ms: int) -> VolumeSnapshot:
    volumes = [flow.in_last(span, now_ms) for flow in table.values()] or [NOTHING]
    return VolumeSnapshot(
        sum(volume.messages for volume in volumes),
        sum(volume.bytes for volume in volumes),
        sum(volume.calls for volume in volumes),
        max(volume.ms for volume in volumes),
    )
