"""Reports how long messages take from sender to consumer, from RocketMQ's trace messages.

Clients with tracing write to `RMQ_SYS_TRACE_TOPIC` when a message was sent and when it was
consumed. Latency is from the begin of the send to the begin of consumption. These are times of two
clocks: it is wrong by as much as they differ, and negative latencies are counted apart.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.message.topic import TRACE
from sprocket.spark.pipelines.parts import trace_text
from sprocket.spark.pipelines.parts.job import Job, setting
from sprocket.spark.pipelines.parts.progress import Progress, Watch, unwatched
from sprocket.spark.pipelines.parts.report import Bars, Lines, Report, Table
from sprocket.spark.pipelines.parts.spread import Points, over_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = "store_timestamp timestamp, body binary"
_ROWS_MAX = 500
#: Bounds of the histogram, ms.
_BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 60_000)


class ConsumeLatency(NamedTuple):
    """Deliveries from a topic to a group. Times in ms.

    Attributes:
        consumed: deliveries, repeated ones too.
        failed: deliveries of them that ended with a failure of the consumer.
        retries: deliveries of them after a message's first.
        work: median time that consumption took.
    """

    topic: str
    group: str
    consumed: int
    failed: int
    retries: int
    p50: float | None
    p90: float | None
    p99: float | None
    longest: float | None
    work: float | None


class SendLatency(NamedTuple):
    """Sends to a topic. Times in ms.

    Attributes:
        unseen: messages that are in no group's trace.
    """

    topic: str
    sent: int
    failed: int
    unseen: int
    p50: float | None
    p99: float | None


@dataclass(frozen=True)
class Traced:
    """What the trace contains.

    Attributes:
        rows: events.
        backwards: deliveries whose time is before that of the send, because clocks differ.
        lines: median latency over time, by group.
        histogram: numbers of deliveries by latency.
    """

    rows: int
    ways: tuple[ConsumeLatency, ...]
    sends: tuple[SendLatency, ...]
    backwards: int
    histogram: tuple[tuple[str, int], ...]
    lines: Points
    seconds: float

    def report(self) -> Report:
        """The same figures as a report."""
        ways = ("topic", "group", "consumed", "failed", "retries", "p50 ms", "p90 ms", "p99 ms",
                "longest ms", "work ms")  # fmt: skip
        sends = ("topic", "sent", "failed", "not seen consumed", "p50 ms", "p99 ms")
        return Report(
            "Trace",
            {
                "events": self.rows,
                "consumed before sent, by disagreeing clocks": self.backwards,
                "seconds": round(self.seconds, 3),
            },
            (
                Table("From send to consumption", ways, self.ways),
                Lines("Median latency", "ms", self.lines),
                Bars("Deliveries by latency", "messages", self.histogram),
                Table("Sends", sends, self.sends),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Trace(Job):
    """Reports latency from sender to consumer, from RocketMQ's trace messages."""

    topic: str = setting("Topic of the trace.", option="topic", default=TRACE)
    since_ms: int | None = setting(
        "Only events stored at that time or later.", option="since", kind="time", default=None
    )
    until_ms: int | None = setting(
        "Only events stored before that time.", option="until", kind="time", default=None
    )

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Traced:
        """Reads the trace and sums it up.

        Raises:
            SprocketError: reading failed, or there is no trace.
        """
        started = time.monotonic()
        events = trace_text.events(self._read(session)).persist()
        ways = deliveries(events).persist()
        try:
            rows = events.count()
            backwards, histogram = _histogram(ways)
            lines = over_time(
                ways.where("latency >= 0"), name="group", at="at_ms", value=_median("latency")
            )
            found = Traced(
                rows=rows,
                ways=_ways(ways),
                sends=_sends(events),
                backwards=backwards,
                histogram=histogram,
                lines=lines.lines,
                seconds=time.monotonic() - started,
            )
        finally:
            ways.unpersist()
            events.unpersist()
        watch(Progress(found.rows, found.rows / max(found.seconds, 1e-3), 0))
        return found

    def _read(self, session: SparkSession) -> DataFrame:
        options = {**self.source(), "subscribe": self.topic}
        if self.since_ms is not None:
            options["startingTimestamp"] = str(self.since_ms)
        if self.until_ms is not None:
            options["endingTimestamp"] = str(self.until_ms)
        return session.read.format("rocketmq").schema(_COLUMNS).options(**options).load()


def deliveries(events: DataFrame) -> DataFrame:
    """A row for each delivery: `topic`, `group`, `at_ms`, `latency`, `work`, `is_ok`, `retries`.

    Latency and topic are null where the trace has no event of the send.
    """
    from pyspark.sql import functions as f

    sent = (
        events.where("kind = 'Pub'")
        .groupBy("message_id")
        .agg(f.min("at_ms").alias("sent_ms"), f.first("topic").alias("topic"))
    )
    begun = events.where("kind = 'SubBefore'").select(
        "message_id", "request_id", "group", "at_ms", "retries"
    )
    ended = (
        events.where("kind = 'SubAfter'")
        .groupBy("message_id", "request_id")
        .agg(f.max("cost_ms").alias("work"), f.max("is_ok").alias("is_ok"))
    )
    joined = begun.join(ended, ["message_id", "request_id"], "left")
    joined = joined.join(sent, "message_id", "left")
    return joined.withColumn("latency", f.col("at_ms") - f.col("sent_ms"))


def _ways(ways: DataFrame) -> tuple[ConsumeLatency, ...]:
    from pyspark.sql import functions as f

    forward = f.when(f.col("latency") >= 0, f.col("latency"))
    shares = f.percentile_approx(forward, [0.5, 0.9, 0.99], 10_000)
    found = (
        ways.groupBy(f.coalesce("topic", f.lit("-")).alias("topic"), "group")
        .agg(
            f.count(f.lit(1)).alias("consumed"),
            f.count_if(~f.col("is_ok")).alias("failed"),
            f.count_if(f.col("retries") > 0).alias("retries"),
            shares.alias("shares"),
            f.max(forward).alias("longest"),
            _median("work").alias("work"),
        )
        .orderBy(f.desc("consumed"), "topic", "group")
        .limit(_ROWS_MAX)
        .collect()
    )
    return tuple(
        ConsumeLatency(
            r.topic, r.group, r.consumed, r.failed, r.retries, *_three(r.shares), r.longest, r.work
        )
        for r in found
    )


def _sends(events: DataFrame) -> tuple[SendLatency, ...]:
    from pyspark.sql import functions as f

    seen = events.where("kind = 'SubBefore'").select("message_id").distinct()
    seen = seen.withColumn("is_seen", f.lit(True))
    sent = events.where("kind = 'Pub'").join(seen, "message_id", "left")
    found = (
        sent.groupBy("topic")
        .agg(
            f.count(f.lit(1)).alias("sent"),
            f.count_if(~f.col("is_ok")).alias("failed"),
            f.count_if(f.col("is_seen").isNull()).alias("unseen"),
            f.percentile_approx("cost_ms", [0.5, 0.99], 10_000).alias("shares"),
        )
        .orderBy(f.desc("sent"), "topic")
        .limit(_ROWS_MAX)
        .collect()
    )
    return tuple(
        SendLatency(r.topic or "-", r.sent, r.failed, r.unseen, *(r.shares or (None, None)))
        for r in found
    )


# One aggregation counts all bars, so the deliveries are read once. A join or a group-by over bars
# would need a shuffle and would leave empty bars out.
def _histogram(ways: DataFrame) -> tuple[int, tuple[tuple[str, int], ...]]:
    """How many latencies are negative, and how many are between each two bounds."""
    from pyspark.sql import functions as f

    latency = f.col("latency")
    edges = [0, *_BOUNDS]
    counts = [
        f.count_if((latency >= low) & (latency < high))
        for low, high in zip(edges, _BOUNDS, strict=False)
    ]
    found: list[Any] = list(
        ways.agg(f.count_if(latency < 0), *counts, f.count_if(latency >= _BOUNDS[-1])).collect()[0]
    )
    names = [*(f"below {bound} ms" for bound in _BOUNDS), f"{_BOUNDS[-1]} ms and more"]
    bars = list(zip(names, found[1:], strict=True))
    while bars and not bars[-1][1]:
        bars.pop()
    return found[0], tuple(bars)


def _median(column: str) -> Any:
    from pyspark.sql import functions as f

    return f.percentile_approx(column, 0.5, 10_000)


def _three(shares: Any) -> tuple[Any, Any, Any]:
    return tuple(shares) if shares else (None, None, None)
