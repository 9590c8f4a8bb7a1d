"""How much goes through a broker: messages and bytes of each topic and group, over the last minute,
hour and day. Pure.

To count costs a look-up and three additions. Every ten seconds `sample` remembers how the counters
stand, but only those that moved, so that a quiet topic costs nothing.
Source: BrokerStatsManager, StatsItem of RocketMQ 5.x.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)


class VolumePeriod(NamedTuple):
    """A time to look back over, and how finely it is remembered, ms."""

    length_ms: int
    every_ms: int


MINUTE = VolumePeriod(60_000, 10_000)
HOUR = VolumePeriod(3_600_000, 600_000)
DAY = VolumePeriod(86_400_000, 3_600_000)
SPANS = (MINUTE, HOUR, DAY)

#: A rate counts over no shorter time, so that the first message is no flood, ms.
_RATE_MS_MIN = 10_000


class VolumeSnapshot(NamedTuple):
    """What went through in a span of time.

    Attributes:
        calls: requests in which the messages went.
        ms: how long the span was; shorter at the beginning.
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
    """How a counter stood at a moment."""

    at_ms: int
    messages: int
    bytes: int
    calls: int


class Flow:
    """The counters of one topic, or of one group in a topic."""

    __slots__ = ("_past", "bytes", "calls", "messages")

    def __init__(self, began_ms: int) -> None:
        self.messages = self.bytes = self.calls = 0
        #: By span, the oldest first; the first one is older than the span, or the beginning.
        self._past = tuple(deque([_CounterSample(began_ms, 0, 0, 0)]) for _ in SPANS)

    def sample(self, now_ms: int) -> None:
        """Remembers how the counters stand, in each span that is due."""
        stands = _CounterSample(now_ms, self.messages, self.bytes, self.calls)
        for span, past in zip(SPANS, self._past, strict=True):
            last = past[-1]
            if last.calls != self.calls and now_ms - last.at_ms >= span.every_ms:
                past.append(stands)
            while len(past) > 1 and past[1].at_ms <= now_ms - span.length_ms:
                past.popleft()

    def is_old(self, now_ms: int) -> bool:
        """Whether nothing went through for more than a day."""
        last = self._past[-1][-1]
        return last.calls == self.calls and now_ms - last.at_ms > DAY.length_ms + DAY.every_ms

    def in_last(self, span: VolumePeriod, now_ms: int) -> VolumeSnapshot:
        """What went through in the last span of time, up to now."""
        past = self._past[SPANS.index(span)]
        before = past[0]
        for stood in past:
            if stood.at_ms > now_ms - span.length_ms:
                break
            before = stood
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
        now_ms: when it begins.
        flows_max: topics that are counted, and as many pairs of topic and group; more are not.
    """

    def __init__(self, now_ms: int, *, flows_max: int = 20_000) -> None:
        self._sampled_ms = now_ms
        self._flows_max = flows_max
        self._puts: dict[str, Flow] = {}
        self._gets: dict[tuple[str, str], Flow] = {}
        self._returns: dict[tuple[str, str], Flow] = {}

    def put(self, topic: str, size: int, count: int = 1) -> None:
        """Messages of a topic came in; `size` in bytes of all of them."""
        flow = self._puts.get(topic) or self._new(self._puts, topic)
        flow.messages += count
        flow.bytes += size
        flow.calls += 1

    def got(self, group: str, topic: str, *, count: int, size: int) -> None:
        """Messages of a topic went out to a group; `size` in bytes of all of them."""
        flow = self._gets.get((topic, group)) or self._new(self._gets, (topic, group))
        flow.messages += count
        flow.bytes += size
        flow.calls += 1

    def returned(self, group: str, topic: str) -> None:
        """A group gave a message of a topic back."""
        flow = self._returns.get((topic, group)) or self._new(self._returns, (topic, group))
        flow.messages += 1
        flow.calls += 1

    def _new(self, table: dict[K, Flow], key: K) -> Flow:
        flow = Flow(self._sampled_ms)
        if len(table) < self._flows_max:
            table[key] = flow
        return flow

    def sample(self, now_ms: int) -> None:
        """Remembers how all counters stand; call it every few seconds."""
        if now_ms - self._sampled_ms < MINUTE.every_ms:
            return
        self._sampled_ms = now_ms
        _sample(self._puts, now_ms)
        _sample(self._gets, now_ms)
        _sample(self._returns, now_ms)

    def of_topic(self, topic: str) -> Flow | None:
        """What came in; None if nothing did lately."""
        return self._puts.get(topic)

    def of_group(self, group: str, topic: str) -> Flow | None:
        """What went out to a group; None if nothing did lately."""
        return self._gets.get((topic, group))

    def returns_of(self, group: str, topic: str) -> Flow | None:
        """What a group gave back; None if nothing lately."""
        return self._returns.get((topic, group))

    def put_over(self, span: VolumePeriod, now_ms: int) -> VolumeSnapshot:
        """What came in altogether."""
        return _sum(self._puts, span, now_ms)

    def got_over(self, span: VolumePeriod, now_ms: int) -> VolumeSnapshot:
        """What went out altogether."""
        return _sum(self._gets, span, now_ms)

    def forget_topic(self, topic: str) -> None:
        """Drops the counters of a topic and of groups in it."""
        self._puts.pop(topic, None)
        for table in (self._gets, self._returns):
            for key in [key for key in table if key[0] == topic]:
                del table[key]

    def forget_group(self, group: str) -> None:
        """Drops the counters of a group."""
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
