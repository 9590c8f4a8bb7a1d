"""A consumer's statistics as metrics, in the text format that Prometheus reads. Pure.

The names of totals end in `_total`; times are in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sprocket.base.exposition import CONTENT_TYPE, heading, line
from sprocket.client.fetching.statistics import Statistics, TopicStatistics, WindowStatistics

__all__ = ["CONTENT_TYPE", "exposition"]

_PREFIX = "sprocket_consumer_"


class _Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


_KINDS: dict[str, tuple[str, str]] = {
    "queues": ("gauge", "Queues that the consumer holds."),
    "pulled_total": ("counter", "Messages that pulls returned."),
    "consumed_total": ("counter", "Messages whose listener succeeded."),
    "failed_total": ("counter", "Messages whose listener failed or returned Later."),
    "expired_total": ("counter", "Messages sent back because their listener took too long."),
    "throttled_total": ("counter", "How often fetching from a queue stopped at a limit."),
    "pull_seconds": ("gauge", "Average time of a pull with messages in the last minute."),
    "listener_seconds": ("gauge", "Average time of a listener call in the last minute."),
    "window_messages": ("gauge", "Messages of a queue that are fetched and not finished."),
    "window_bytes": ("gauge", "Bytes of the bodies of these messages."),
    "window_span": ("gauge", "Distance in offsets between the first and the last of them."),
    "window_full": ("gauge", "Whether fetching is stopped by a limit."),
    "position": ("gauge", "Offset of the queue's first message that is not finished."),
}


def exposition(statistics: Statistics | Iterable[Statistics]) -> str:
    """Returns the metrics of one or several consumers as text.

    Args:
        statistics: the results of `consumer.statistics()`; at most one for each group.
    """
    given = [statistics] if isinstance(statistics, Statistics) else list(statistics)
    samples: dict[str, list[_Sample]] = {name: [] for name in _KINDS}
    for each in given:
        for sample in _samples(each):
            samples[sample.name].append(sample)
    lines = []
    for name, (kind, meaning) in _KINDS.items():
        if samples[name]:
            lines.append(heading(f"{_PREFIX}{name}", kind, meaning))
            lines.extend(
                line(f"{_PREFIX}{name}", each.labels, each.value) for each in samples[name]
            )
    return "".join(lines)


def _samples(statistics: Statistics) -> Iterator[_Sample]:
    group = {"group": statistics.group}
    yield _Sample("queues", group, statistics.queues)
    for topic, counted in statistics.topics.items():
        yield from _of_topic({**group, "topic": topic}, counted)
    for window in statistics.windows:
        queue = {"topic": window.queue.topic, "broker": window.queue.broker}
        yield from _of_window({**group, **queue, "queue": str(window.queue.number)}, window)


def _of_topic(labels: dict[str, str], counted: TopicStatistics) -> Iterator[_Sample]:
    yield _Sample("pulled_total", labels, counted.pulled)
    yield _Sample("consumed_total", labels, counted.consumed)
    yield _Sample("failed_total", labels, counted.failed)
    yield _Sample("expired_total", labels, counted.expired)
    for limit, times in sorted(counted.throttled.items()):
        yield _Sample("throttled_total", {**labels, "limit": limit}, times)
    yield _Sample("pull_seconds", labels, counted.pull_ms / 1000)
    yield _Sample("listener_seconds", labels, counted.listener_ms / 1000)


def _of_window(labels: dict[str, str], window: WindowStatistics) -> Iterator[_Sample]:
    yield _Sample("window_messages", {**labels, "state": "waiting"}, window.waiting)
    yield _Sample("window_messages", {**labels, "state": "in_flight"}, window.in_flight)
    yield _Sample("window_bytes", labels, window.size)
    yield _Sample("window_span", labels, window.span)
    yield _Sample("window_full", labels, window.full_by is not None)
    yield _Sample("position", labels, window.position)
