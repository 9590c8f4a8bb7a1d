"""Counts messages and bytes by topic, tag and minute of storing.

With a folder, each run counts only the messages that came since the last run, each exactly once,
and the report covers all runs. Without a folder, all messages in the topics are counted anew.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.job import TopicJob, setting
from sprocket.spark.pipelines.parts.progress import Progress, Watch, unwatched
from sprocket.spark.pipelines.parts.report import Bars, Lines, Report, Table, moment
from sprocket.spark.pipelines.parts.spread import Bucketed, over_time
from sprocket.spark.pipelines.parts.streams import run_query, trigger
from sprocket.spark.pipelines.tables.opened import PARQUET, TableSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = "topic string, tag string, store_timestamp timestamp, record_bytes int"
_MINUTE_MS = 60_000
#: Most rows of a table that come to the driver.
_ROWS_MAX = 1000
_NO_TAG = "-"
_BY = ("date",)


@dataclass(frozen=True)
class Counted:
    """What was counted.

    Attributes:
        rows: messages counted by this run.
        messages, bytes: covered by the report; bytes are sizes of records in the log.
        tags: topic, tag, messages, bytes: the most messages first, 1000 at most.
        tag_count: number of pairs of topic and tag.
        busiest: topic, minute (ms since 1970) and messages of the busiest minute, or None.
    """

    rows: int
    messages: int
    bytes: int
    topics: tuple[tuple[str, int, int], ...]
    tags: tuple[tuple[str, str, int, int], ...]
    tag_count: int
    busiest: tuple[str, int, int] | None
    per_minute: Bucketed
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same figures as a report."""
        facts: dict[str, Any] = {
            "messages": self.messages,
            "bytes": self.bytes,
            "counted by this run": self.rows,
            "seconds": round(self.seconds, 3),
            "stopped before the end": self.is_interrupted,
        }
        if self.busiest is not None:
            topic, at, count = self.busiest
            facts["busiest minute"] = moment(at)
            facts["its topic"], facts["its messages"] = topic, count
        left_out = self.tag_count - len(self.tags)
        note = f"{left_out} more pairs of topic and tag are left out" if left_out else ""
        return Report(
            "Volume",
            facts,
            (
                Lines("Messages a minute", "messages", self.per_minute.lines, _width(self)),
                Table("By topic", ("topic", "messages", "bytes"), self.topics),
                Bars("Bytes by topic", "B", [(one[0], one[2]) for one in self.topics[:20]]),
                Table("By topic and tag", ("topic", "tag", "messages", "bytes"), self.tags, note),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Volume(TableSettings, TopicJob):
    """Counts messages and bytes by topic, tag and minute."""

    until_ms: int | None = setting(
        "Only messages stored before that time.", option="until", kind="time", default=None
    )
    folder: str | None = setting(
        "Folder of what was counted; the next run adds what has come since.",
        option="to",
        default=None,
    )
    batch_rows: int = setting(
        "Most messages counted at a time with --to.",
        option="batch-rows",
        kind="whole",
        default=2_000_000,
    )

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Counted:
        """Counts, and reports.

        Raises:
            UsageError: the settings contradict each other.
            SprocketError: reading failed.
        """
        started = time.monotonic()
        is_whole = True
        if self.folder is None:
            if self.form != PARQUET:
                raise UsageError("a table needs a folder: --to")
            counts = counted(self._read(session)).persist()
            rows = None
        else:
            batches, is_whole = self._added(session, watch)
            rows = batches.totals.get("messages", 0)
            if batches.is_empty:
                counts = counted(session.createDataFrame([], _COLUMNS))
            else:
                counts = batches.read().drop("batch")
        try:
            found = _found(counts, rows, started, is_whole=is_whole)
        finally:
            counts.unpersist()
        if self.folder is None:
            watch(Progress(found.rows, found.rows / max(found.seconds, 1e-3), 0))
        return found

    def _read(self, session: SparkSession) -> DataFrame:
        options = self.reading()
        if self.until_ms is not None:
            options["endingTimestamp"] = str(self.until_ms)
        return session.read.format("rocketmq").schema(_COLUMNS).options(**options).load()

    def _added(self, session: SparkSession, watch: Watch) -> tuple[Batches, bool]:
        from pyspark.sql import functions as f

        assert self.folder is not None
        if self.until_ms is not None:
            raise UsageError("a folder that grows has no end: leave out until")
        batches = self.opened(session, self.folder, _BY, before=_BY)
        read = self.stream(session, _COLUMNS, batch_rows=self.batch_rows)
        measures = {"messages": f.sum("messages"), "bytes": f.sum("bytes")}
        writer = (
            read.writeStream.foreachBatch(batches.append(self._counted, measures))
            .option("checkpointLocation", batches.checkpoint)
            .trigger(**trigger(follows=False, every_s=0))
        )
        return batches, run_query(writer, watch)

    def _counted(self, frame: DataFrame) -> DataFrame:
        """The counts; the day is a text in folders' names, and a date in tables."""
        rows = counted(frame)
        if self.form == PARQUET:
            return rows
        from pyspark.sql import functions as f

        return rows.withColumn("date", f.to_date("date"))


def counted(frame: DataFrame) -> DataFrame:
    """Messages and bytes by topic, tag and minute, with the day as `date` for folders."""
    from pyspark.sql import functions as f

    minute = f.date_trunc("minute", "store_timestamp").alias("minute")
    return (
        frame.groupBy("topic", f.coalesce("tag", f.lit(_NO_TAG)).alias("tag"), minute)
        .agg(f.count(f.lit(1)).alias("messages"), f.sum("record_bytes").alias("bytes"))
        .withColumn("date", f.date_format("minute", "yyyy-MM-dd"))
    )


# The counts are small beside the messages: a row for each topic, tag and minute. So all tables of
# the report are aggregated from them, and the messages are read only once.
def _found(counts: DataFrame, rows: int | None, started: float, *, is_whole: bool) -> Counted:
    from pyspark.sql import functions as f

    messages, size = f.sum("messages").alias("messages"), f.sum("bytes").alias("bytes")
    order = f.desc("messages")
    topics = counts.groupBy("topic").agg(messages, size)
    tags = counts.groupBy("topic", "tag").agg(messages, size)
    minutes = counts.groupBy("topic", f.unix_millis("minute").alias("at")).agg(messages)
    whole = counts.agg(messages, size).collect()[0]
    top_topics = topics.orderBy(order, "topic").limit(_ROWS_MAX).collect()
    top_tags = tags.orderBy(order, "topic", "tag").limit(_ROWS_MAX).collect()
    busiest = minutes.orderBy(order, "at").limit(1).collect()
    spread = over_time(minutes, name="topic", at="at", value=f.sum("messages"), unit_ms=_MINUTE_MS)
    return Counted(
        rows=(whole["messages"] or 0) if rows is None else rows,
        messages=whole["messages"] or 0,
        bytes=whole["bytes"] or 0,
        topics=tuple(tuple(row) for row in top_topics),
        tags=tuple(tuple(row) for row in top_tags),
        tag_count=tags.count() if len(top_tags) == _ROWS_MAX else len(top_tags),
        busiest=next((tuple(row) for row in busiest), None),
        per_minute=_rate(spread),
        seconds=time.monotonic() - started,
        is_interrupted=not is_whole,
    )


def _rate(spread: Bucketed) -> Bucketed:
    """The sums of buckets, divided by the bucket's width: messages a minute."""
    minutes = spread.width_ms / _MINUTE_MS
    lines = {
        name: [(at, value / minutes) for at, value in points]
        for name, points in spread.lines.items()
    }
    return Bucketed(lines, spread.width_ms)


def _width(found: Counted) -> str:
    minutes = found.per_minute.width_ms // _MINUTE_MS
    return f"each point is the average of {minutes} minutes" if minutes > 1 else ""
