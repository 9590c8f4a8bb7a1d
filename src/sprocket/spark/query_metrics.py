"""Metrics of the queries of a session that read RocketMQ, in the text that Prometheus reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from sprocket.base.exposition import CONTENT_TYPE, heading, line
from sprocket.spark.query_progress import SourceProgress, bytes_observed, progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CONTENT_TYPE", "QueryMetrics", "listen"]

_PREFIX = "sprocket_spark_"
_KINDS = {
    "batches_total": ("counter", "Micro-batches that were done."),
    "rows_total": ("counter", "Rows that were read."),
    "bytes_total": ("counter", "Bytes of records that were read, where the query observes them."),
    "missing_total": ("counter", "Messages that were filtered out or gone."),
    "anew_total": ("counter", "How often a queue was not the one that had been read."),
    "behind_messages": ("gauge", "Messages of a topic that wait to be read."),
    "behind_messages_max": ("gauge", "Those of the queue of a topic in which most wait."),
    "behind_seconds": ("gauge", "No message that waits was stored longer ago."),
}
#: The totals of so many queries are kept; those that began first are left out then.
_QUERIES_MAX = 1000


@dataclass(slots=True)
class _Query:
    """The totals of a query, and its sources after the last micro-batch.

    Attributes:
        id: of the last query of its name.
    """

    name: str
    id: str
    totals: dict[str, int] = field(default_factory=dict)
    sources: tuple[SourceProgress, ...] = ()

    def add(self, **more: int) -> None:
        for name, value in more.items():
            self.totals[name] = self.totals.get(name, 0) + value


class QueryMetrics(StreamingQueryListener):
    """Counts what queries with a RocketMQ source did. Spark calls it from a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queries: dict[str, _Query] = {}

    def onQueryStarted(self, event: Any) -> None:
        """Spark has started a query."""

    def onQueryProgress(self, event: Any) -> None:
        """Spark has done a micro-batch."""
        self.record(event.progress)

    def onQueryIdle(self, event: Any) -> None:
        """A query has nothing to read."""

    def onQueryTerminated(self, event: Any) -> None:
        """A query has ended: its totals stay, and what waits for it is not known any more."""
        with self._lock:
            for query in self._queries.values():
                if query.id == str(event.id):
                    query.sources = ()

    def record(self, query_progress: Mapping[str, Any]) -> None:
        """Counts a micro-batch of a query; of one without a RocketMQ source nothing is kept."""
        sources = progress(query_progress)
        if not sources:
            return
        query_id = str(query_progress["id"])
        # One with a new checkpoint has a new id; two samples with the same labels are none at all.
        name = str(query_progress["name"] or query_id)
        size = bytes_observed(query_progress)
        with self._lock:
            query = self._queries.setdefault(name, _Query(name, query_id))
            query.id = query_id
            if len(self._queries) > _QUERIES_MAX:
                del self._queries[next(iter(self._queries))]
            query.sources = sources
            query.add(
                batches_total=1,
                rows_total=sum(one.rows for one in sources),
                missing_total=sum(one.missing or 0 for one in sources),
                anew_total=sum(len(one.anew) for one in sources),
            )
            if size is not None:
                query.add(bytes_total=size)

    def text(self) -> str:
        """The metrics, for a web server; `CONTENT_TYPE` is their type."""
        with self._lock:
            samples = [one for query in self._queries.values() for one in _samples(query)]
        lines = []
        for name, (kind, meaning) in _KINDS.items():
            whole = _PREFIX + name
            found = [line(whole, labels, value) for each, labels, value in samples if each == name]
            lines += [heading(whole, kind, meaning), *found] if found else []
        return "".join(lines)


def listen(session: SparkSession) -> QueryMetrics:
    """Counts, from now on, what the queries of a session do with RocketMQ sources."""
    metrics = QueryMetrics()
    session.streams.addListener(metrics)
    return metrics


def _samples(query: _Query) -> Iterator[tuple[str, dict[str, str], float]]:
    labels = {"query": query.name}
    for name, value in query.totals.items():
        yield name, labels, value
    for source in query.sources:
        of_source = {**labels, "source": str(source.source)}
        for topic in sorted({queue.topic for queue in source.behind}):
            counts = [n for queue, n in source.behind.items() if queue.topic == topic]
            of_topic = {**of_source, "topic": topic}
            yield "behind_messages", of_topic, sum(counts)
            yield "behind_messages_max", of_topic, max(counts)
        if source.behind_ms is not None:
            yield "behind_seconds", of_source, source.behind_ms / 1000
