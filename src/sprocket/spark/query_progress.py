"""What a query's progress says of its RocketMQ sources: rows, what waits, how old, what is gone.

Spark lets sources in Python report no metrics of their own, but the progress of a query has their
offsets, and those have what is needed: the ends of the queues, the last messages that were read,
and the queues that began anew. So nothing is asked of brokers. Pure.

Source of the form: `StreamingQueryProgress` of PySpark 4.2 and later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sprocket.message.queue import QueueId
from sprocket.spark.options.checkpoint import StreamOffsets, offsets_in
from sprocket.spark.reading.ranges import between, records_in

#: The name of an observation in which `bytes` counts what was read.
OBSERVATION = "rocketmq"


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """What the last micro-batch of a query did with one RocketMQ source, and what is left.

    Attributes:
        source: the number of the source in the query, from 0.
        rows: rows that Spark read. It counts them again each time that `foreachBatch` reads them.
        offsets: how many messages the micro-batch spanned; None if it has a queue whose beginning
            Spark does not report: a new one, or any in the first micro-batch of a query.
        missing: how many of these were no rows: `tags` or `sql` left them out, or, without a
            filter, they are gone, which only `failOnDataLoss=false` allows. None without `offsets`.
        anew: queues that are not those which were read before, and so were begun anew.
        behind: by queue, how many messages waited when the micro-batch was planned and were not in
            it.
        behind_ms: of the queues in which messages wait, how long before the micro-batch its oldest
            last message was stored, ms: no message that waits is older. 0 if none waits; None if no
            such queue has been read yet.
    """

    source: int
    rows: int
    offsets: int | None
    missing: int | None
    anew: tuple[QueueId, ...]
    behind: Mapping[QueueId, int]
    behind_ms: int | None

    @property
    def messages_behind(self) -> int:
        """How many messages wait in all queues."""
        return sum(self.behind.values())


def progress(query_progress: Mapping[str, Any] | None) -> tuple[SourceProgress, ...]:
    """What a query's progress says of each of its RocketMQ sources.

    Args:
        query_progress: `query.lastProgress`, one of `query.recentProgress`, or `event.progress` of
            a listener; None, as before the first micro-batch, gives nothing.
    """
    if query_progress is None:
        return ()
    planned_ms = _time_ms(query_progress["timestamp"])
    found = []
    for number, source in enumerate(query_progress["sources"]):
        end, latest = offsets_in(str(source["endOffset"])), offsets_in(str(source["latestOffset"]))
        if end is not None:
            start = offsets_in(str(source["startOffset"])) or StreamOffsets({})
            found.append(_source(number, source["numInputRows"], start, end, latest, planned_ms))
    return tuple(found)


def bytes_observed(query_progress: Mapping[str, Any]) -> int | None:
    """The bytes that a micro-batch read, where the query observes them; see `OBSERVATION`."""
    observed = query_progress.get("observedMetrics") or {}
    if OBSERVATION not in observed:
        return None
    row = observed[OBSERVATION]
    values = row.asDict() if hasattr(row, "asDict") else row
    return int(values.get("bytes") or 0)


def _source(
    number: int,
    rows: int,
    start: StreamOffsets,
    end: StreamOffsets,
    latest: StreamOffsets | None,
    planned_ms: int,
) -> SourceProgress:
    begin = {**start.next, **end.anew}
    is_known = all(queue in begin for queue in end.next)
    offsets = records_in(between(begin, end.next)) if is_known else None
    ends = {} if latest is None else latest.next
    behind = {queue: max(0, at - end.next.get(queue, 0)) for queue, at in ends.items()}
    waiting = [queue for queue, messages in behind.items() if messages]
    stored = [end.witnesses[queue].stored_ms for queue in waiting if queue in end.witnesses]
    age = max(0, planned_ms - min(stored)) if stored else None
    return SourceProgress(
        number,
        rows,
        offsets,
        None if offsets is None else max(0, offsets - rows),
        tuple(sorted(end.anew)),
        behind,
        age if waiting else 0,
    )


def _time_ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)
