"""The histograms of a broker: sizes of messages, and how long things take. Pure.

They are kept only where somebody reads metrics. Source of bounds and labels: BrokerMetricsManager,
RemotingMetricsManager, DefaultStoreMetricsManager of RocketMQ 5.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

from sprocket.base.histogram import Histogram
from sprocket.broker.tables.volumes import Volumes

K = TypeVar("K", bound=Hashable)

#: Bytes.
_SIZES = (1024, 4096, 512 << 10, 1 << 20, 2 << 20, 4 << 20)
#: Milliseconds.
_CALLS = (1, 3, 5, 7, 10, 100, 1_000, 2_000, 3_000)
_CREATIONS = (10, 100, 1_000, 3_000, 5_000)
#: Seconds.
_COMMITS = (5, 60, 600, 3_600, 43_200, 86_400)
_DELAYS = (60, 600, 3_600, 43_200, 86_400, 259_200)
#: Histograms of one kind; what would need further ones is not counted.
_MOST = 20_000


class CallKind(NamedTuple):
    """What is alike in the calls that one histogram counts.

    Attributes:
        code, response: request code and response code.
        is_held: whether the reply may wait for messages.
        result: RocketMQ's word for how it ended.
    """

    code: int
    response: int
    is_held: bool
    result: str


class TopicCreation(NamedTuple):
    """What is alike in creations of topics."""

    is_done: bool
    is_system: bool


class BrokerMeasures:
    """All histograms of a broker, whatever role it has meanwhile.

    Attributes:
        sizes: bytes of the records of messages, by topic.
        calls: ms of requests until their replies are written.
        new_topics, new_groups: ms of requests that create some.
        commits: s between the sending of a transaction's message and its commit, by topic.
        delays: s that messages with a delivery time are to wait, by topic.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, Histogram] = {}
        self.calls: dict[CallKind, Histogram] = {}
        self.new_topics: dict[TopicCreation, Histogram] = {}
        self.new_groups: dict[bool, Histogram] = {}
        self.commits: dict[str, Histogram] = {}
        self.delays: dict[str, Histogram] = {}

    def stored(self, topic: str, size: float, count: int) -> None:
        """Counts messages that were stored; `size` is the bytes of one."""
        _observe(self.sizes, topic, _SIZES, size, count)

    def called(self, kind: CallKind, ms: float, count: int = 1) -> None:
        """Counts requests that took so long each."""
        _observe(self.calls, kind, _CALLS, ms, count)

    def topic_made(self, kind: TopicCreation, ms: float) -> None:
        """Counts a request that creates topics."""
        _observe(self.new_topics, kind, _CREATIONS, ms, 1)

    def group_made(self, is_done: bool, ms: float) -> None:
        """Counts a request that creates groups."""
        _observe(self.new_groups, is_done, _CREATIONS, ms, 1)

    def committed(self, topic: str, after_ms: int) -> None:
        """Counts a transaction that was committed so long after its message was sent."""
        _observe(self.commits, topic, _COMMITS, max(after_ms, 0) // 1_000, 1)

    def forget(self, topic: str) -> None:
        """Drops what is known of a topic that was deleted."""
        for table in (self.sizes, self.commits, self.delays):
            table.pop(topic, None)

    def delayed(self, topic: str, for_ms: int) -> None:
        """Counts a message that is to wait so long."""
        _observe(self.delays, topic, _DELAYS, max(for_ms, 0) // 1_000, 1)


def _observe(
    table: dict[K, Histogram], key: K, bounds: Sequence[float], value: float, count: int
) -> None:
    found = table.get(key)
    if found is None:
        if len(table) >= _MOST:
            return
        found = table[key] = Histogram(bounds)
    found.observe(value, count)


class MeasuredVolumes(Volumes):
    """Volumes that count the sizes of messages as well.

    Messages that are stored together count with their mean size, as at RocketMQ.
    """

    def __init__(self, now_ms: int, measures: BrokerMeasures) -> None:
        super().__init__(now_ms)
        self._measures = measures

    # Written out and with a short way for small messages: 0.5 µs more than without became 0.15.
    def put(self, topic: str, size: int, count: int = 1, calls: int = 1) -> None:
        """See `Volumes`."""
        flow = self._puts.get(topic) or self._new(self._puts, topic)
        flow.messages += count
        flow.bytes += size
        flow.calls += calls
        sizes = self._measures.sizes.get(topic)
        if sizes is not None and size <= _SIZES[0]:
            sizes.counts[0] += count
            sizes.total += size
        elif count:
            self._measures.stored(topic, size / count, count)
