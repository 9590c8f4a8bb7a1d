"""Translates offsets of the source to offsets of the target, and commits them for groups.

The map consists of runs: source offsets [first, last] of a queue whose messages are consecutive in
a target queue. A group's committed offset is that of the next message it would read. It becomes
the target offset of that message, or of the next mirrored one: never a later one, so that nothing
is skipped, and never one before the group's offset at the target.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sprocket.message.queue import QueueId
from sprocket.spark.pipelines.parts import offsets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sprocket.admin.caller import Caller
    from sprocket.spark.pipelines.parts.servers import Servers

ORIGIN = "origin"
_SHAPE = r"^(.*)@(.*):(\d{1,9})/(\d{1,18})$"


class TranslatedOffset(NamedTuple):
    """A group's offset in a source queue, and the offset that this is at the target.

    Attributes:
        target, moved_to: target queue and offset; None if nothing of the queue was mirrored.
    """

    group: str
    queue: QueueId
    offset: int
    target: QueueId | None
    moved_to: int | None


def arrivals(frame: DataFrame, mark: str) -> DataFrame:
    """The mirrored rows of the target, with `origin` and its parts; other rows are left out."""
    from pyspark.sql import functions as f

    origin = f.col("properties")[mark]
    marked = frame.withColumn(ORIGIN, origin).where(f.col(ORIGIN).rlike(_SHAPE))
    part = [f.regexp_extract(ORIGIN, _SHAPE, number) for number in range(1, 5)]
    return marked.select(
        ORIGIN,
        part[0].alias("source_topic"),
        part[1].alias("source_broker"),
        part[2].cast("int").alias("source_queue"),
        part[3].cast("bigint").alias("source_offset"),
        "topic",
        "broker",
        "queue_id",
        "queue_offset",
    )


def segments(arrived: DataFrame) -> DataFrame:
    """The runs of mirrored rows. Of a message that arrived twice, the first copy counts."""
    from pyspark.sql import functions as f

    source = ("source_topic", "source_broker", "source_queue")
    target = ("topic", "broker", "queue_id")
    once = arrived.groupBy(*source, *target, "source_offset").agg(
        f.min("queue_offset").alias("queue_offset")
    )
    apart = (f.col("queue_offset") - f.col("source_offset")).alias("apart")
    return (
        once.groupBy(*source, *target, apart)
        .agg(
            f.min("source_offset").alias("source_first"),
            f.max("source_offset").alias("source_last"),
            f.count(f.lit(1)).alias("messages"),
        )
        .withColumn("target_first", f.col("source_first") + f.col("apart"))
        .drop("apart")
    )


class GroupOffsetSync:
    """Commits the groups' offsets of the source, translated, at the target.

    Args:
        source, target: the clusters.
        kept: all runs.
    """

    def __init__(self, source: Servers, target: Servers, kept: DataFrame) -> None:
        self._source = source
        self._target = target
        self._kept = kept

    def move(self, groups: Iterable[str]) -> tuple[TranslatedOffset, ...]:
        """Translates and commits the offsets of groups, and returns each of them.

        Raises:
            SprocketError: a cluster does not answer.
        """
        found: list[TranslatedOffset] = []
        topics = [row[0] for row in self._kept.select("source_topic").distinct().collect()]
        for group in groups:
            committed = self._source.ask(partial(_committed, group=group))
            wanted = {q: at for q, at in committed.items() if q.topic in topics and at >= 0}
            followed = self._translated(group, wanted)
            self._commit(group, followed)
            found += followed
        return tuple(found)

    # A run that contains the committed offset, or begins behind it, gives the next message to read;
    # where every run ends before it, the group has read all that was mirrored and gets the end of
    # the last one. Runs may be many, so Spark joins them, and only one row a queue comes back.
    def _translated(self, group: str, committed: Mapping[QueueId, int]) -> list[TranslatedOffset]:
        from pyspark.sql import functions as f

        if not committed:
            return []
        session = self._kept.sparkSession
        offsets_of_group = session.createDataFrame(
            [(*queue, at) for queue, at in committed.items()],
            "source_topic string, source_broker string, source_queue int, committed bigint",
        )
        places = ["source_topic", "source_broker", "source_queue"]
        runs = self._kept.join(f.broadcast(offsets_of_group), places)
        ahead = f.greatest(f.col("committed") - f.col("source_first"), f.lit(0))
        length = f.col("source_last") - f.col("source_first") + 1
        is_open = f.col("source_last") >= f.col("committed")
        next_ = f.min(f.when(is_open, f.col("target_first") + ahead))
        end = f.max(f.col("target_first") + length)
        rows = (
            runs.groupBy(*places, "topic", "broker", "queue_id")
            .agg(f.coalesce(next_, end).alias("at"), f.max("source_last").alias("newest"))
            .orderBy("newest")
            .collect()
        )
        found = {
            QueueId(r.source_topic, r.source_broker, r.source_queue): (
                QueueId(r.topic, r.broker, r.queue_id),
                r["at"],
            )
            for r in rows
        }
        return [
            TranslatedOffset(group, queue, at, *found.get(queue, (None, None)))
            for queue, at in sorted(committed.items())
        ]

    def _commit(self, group: str, followed: Iterable[TranslatedOffset]) -> None:
        """Commits offsets that move the group forward; the least of several for one queue."""
        wanted: dict[QueueId, int] = {}
        for one in followed:
            if one.target is not None and one.moved_to is not None:
                wanted[one.target] = min(one.moved_to, wanted.get(one.target, one.moved_to))
        current = self._target.ask(partial(_committed, group=group))
        ahead = {queue: at for queue, at in wanted.items() if at > current.get(queue, -1)}
        if ahead:
            self._target.ask(lambda caller: offsets.commit(caller, group, ahead))


async def _committed(caller: Caller, *, group: str) -> dict[QueueId, int]:
    from sprocket.admin import positions

    lag = await positions.lag(caller, group)
    return {QueueId(one.topic, one.broker, one.number): one.committed for one in lag.queues}
