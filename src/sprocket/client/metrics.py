"""A consumer's statistics as metrics, in the text format that Prometheus reads. Pure.

Totals end in `_total`, times are in seconds. Source: the text-based
exposition format 0.0.4 of Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from sprocket.client.fetching.statistics import Statistics, TopicStatistics, WindowStatistics

#: What a web server says of it.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_PREFIX = "sprocket_consumer_"


class _Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: float


_KINDS: dict[str, tuple[str, str]] = {
    "queues": ("gauge", "Queues that the consumer holds."),
    "pulled_total": ("counter", "Messages that pulls brought."),
    "consumed_total": ("counter", "Messages whose listener succeeded."),
    "failed_total": ("counter", "Messages whose listener failed, or said later."),
    "expired_total": ("counter", "Messages given back since their listener took too long."),
    "throttled_total": ("counter", "How often fetching from a queue stopped at a limit."),
    "pull_seconds": ("gauge", "Time of a pull that had messages, on average of the last minute."),
    "listener_seconds": ("gauge", "Time of a listener call, on average of the last minute."),
    "window_messages": ("gauge", "Messages of a queue that were fetched and are not finished."),
    "window_bytes": ("gauge", "Their bodies."),
    "window_span": ("gauge", "Distance in offsets between the first and the last of them."),
    "window_full": ("gauge", "Whether a limit keeps more from being fetched."),
    "position": ("gauge", "Offset of the queue's first message that is not finished."),
}


def exposition(statistics: Statistics | Iterable[Statistics]) -> str:
    """The metrics of one consumer, or of several, ready to be served.

    Args:
        statistics: what `consumer.statistics()` tells; at most one of each group.
    """
    given = [statistics] if isinstance(statistics, Statistics) else list(statistics)
    samples: dict[str, list[_Sample]] = {name: [] for name in _KINDS}
    for each in given:
        for sample in _samples(each):
            samples[sample.name].append(sample)
    lines = []
    for name, (kind, meaning) in _KINDS.items():
        if samples[name]:
            lines.append(f"# HELP {_PREFIX}{name} {meaning}")
            lines.append(f"# TYPE {_PREFIX}{name} {kind}")
            lines.extend(map(_line, samples[name]))
    return "".join(f"{line}\n" for line in lines)


def _samples(statistics: Statistics) -> Iterator[_Sample]:
    group = {"group": statistics.group}
    yield _Sample("queues", group, statistics.queues)
    for topic, told in statistics.topics.items():
        yield from _of_topic({**group, "topic": topic}, told)
    for window in statistics.windows:
        queue = {"topic": window.queue.topic, "broker": window.queue.broker}
        yield from _of_window({**group, **queue, "queue": str(window.queue.number)}, window)


def _of_topic(labels: dict[str, str], told: TopicStatistics) -> Iterator[_Sample]:
    yield _Sample("pulled_total", labels, told.pulled)
    yield _Sample("consumed_total", labels, told.consumed)
    yield _Sample("failed_total", labels, told.failed)
    yield _Sample("expired_total", labels, told.expired)
    for limit, times in sorted(told.throttled.items()):
        yield _Sample("throttled_total", {**labels, "limit": limit}, times)
    yield _Sample("pull_seconds", labels, told.pull_ms / 1000)
    yield _Sample("listener_seconds", labels, told.listener_ms / 1000)


def _of_window(labels: dict[str, str], window: WindowStatistics) -> Iterator[_Sample]:
    yield _Sample("window_messages", {**labels, "state": "waiting"}, window.waiting)
    yield _Sample("window_messages", {**labels, "state": "in_flight"}, window.in_flight)
    yield _Sample("window_bytes", labels, window.size)
    yield _Sample("window_span", labels, window.span)
    yield _Sample("window_full", labels, window.full_by is not None)
    yield _Sample("position", labels, window.position)


def _line(sample: _Sample) -> str:
    labels = ",".join(f'{name}="{_escaped(text)}"' for name, text in sample.labels.items())
    return f"{_PREFIX}{sample.name}{{{labels}}} {float(sample.value):.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
