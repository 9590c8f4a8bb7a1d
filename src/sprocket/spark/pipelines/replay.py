"""Sends the messages of an archive, or of a span of a topic, once more, at a rate.

    again = Replay(nameservers="127.0.0.1:9876", archive="orders-archive", to="orders-again")
    done = again.run(session)

Keys, tags, properties and flag are kept, and a property names the origin of each message. A run
after a stop continues behind the last whole slice: at most `slice_rows` messages are sent twice.
Both copies have the same origin, by which consumers can drop the second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from sprocket.base.errors import UsageError
from sprocket.message.queue import QueueId
from sprocket.message.topic import check_topic
from sprocket.spark.pipelines import archive as archives
from sprocket.spark.pipelines.parts import bodies, offsets
from sprocket.spark.pipelines.parts.batch_folders import BATCH
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.parts.job import Job, setting, to_profile_setting
from sprocket.spark.pipelines.parts.offsets import Offsets
from sprocket.spark.pipelines.parts.progress import Watch, unwatched
from sprocket.spark.pipelines.parts.queue_witnesses import QueueWitnesses
from sprocket.spark.pipelines.parts.report import Report
from sprocket.spark.pipelines.parts.servers import AccessKeys, Servers
from sprocket.spark.pipelines.parts.slices import SliceProgress, Slices, WorkUnit

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from sprocket.remoting.profiles import Profile
    from sprocket.remoting.tls.settings import ClientTls

#: The property with the origin of a message: `orders@broker-a:3/17`.
MARK = "REPLAYED_FROM"
_COLUMNS = (
    "topic string, broker string, queue_id int, queue_offset bigint, key string, tag string, "
    "body binary, properties map<string,string>, born_timestamp timestamp, "
    "store_timestamp timestamp, flag int, reconsume_times int"
)
#: Most queues in a batch of an archive; a batch that we wrote has fewer.
_QUEUES_MAX = 100_000


@dataclass(frozen=True)
class Replayed:
    """What a run did.

    Attributes:
        rows: messages sent by this run, each acknowledged.
        total_rows: messages sent by all runs of this job.
        repeats_max: how many of them can have been sent twice for each run that was killed.
    """

    rows: int
    total_rows: int
    repeats_max: int
    to: str
    state: str
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same figures as a report."""
        return Report(
            "Replay",
            {
                "messages sent": self.rows,
                "by all runs": self.total_rows,
                "repeats at most after a kill": self.repeats_max,
                "to topic": self.to,
                "state": self.state,
                "seconds": round(self.seconds, 3),
                "stopped before the end": self.is_interrupted,
            },
        )


@dataclass(frozen=True, kw_only=True)
class Replay(Job):
    """Sends the messages of an archive, or of a span of topics, to a topic once more."""

    to: str = setting("Topic that gets the messages.", option="to")
    archive: str | None = setting("Folder of an archive to read.", option="archive", default=None)
    topics: tuple[str, ...] = setting(
        "Topic to read; without it, all of an archive. May be repeated.",
        option="topic",
        kind="words",
        default=(),
    )
    since_ms: int | None = setting(
        "Only messages stored at that time or later.", option="since", kind="time", default=None
    )
    until_ms: int | None = setting(
        "Only messages stored before that time.", option="until", kind="time", default=None
    )
    where: str | None = setting(
        "Only rows for which this SQL expression is true: `tag = 'paid'`.",
        option="where",
        default=None,
    )
    rate: float | None = setting(
        "Most messages a second, averaged over two seconds.",
        option="rate",
        kind="number",
        default=None,
    )
    slice_rows: int = setting(
        "Most messages sent between two saves of the progress.",
        option="slice-rows",
        kind="whole",
        default=100_000,
        least=1,
    )
    queue_by: str = setting(
        "Queues in turn, or by the hash of the key so that a key keeps its order.",
        option="queue-by",
        default="key",
        choices=("key", "turn"),
    )
    to_nameservers: str | None = setting(
        "Name servers of the topic to write, if it is another cluster.",
        option="to-nameserver",
        default=None,
    )
    to_profile: Profile | None = to_profile_setting()  # noqa: RUF009 - a dataclass field
    allows_loss: bool = setting(
        "Continue if messages were deleted before they were read, instead of failing.",
        option="allow-loss",
        kind="switch",
        default=False,
    )
    state: str | None = setting(
        "Folder for the saved progress; each job needs its own.",
        option="state",
        default=None,
    )
    to_keys: AccessKeys | None = None
    to_tls: ClientTls | Literal[False] | None = None

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Replayed:
        """Sends what is left of the job.

        Raises:
            UsageError: the settings contradict each other.
            SprocketError: reading or sending failed; the next run continues from there.
        """
        self._check()
        started = time.monotonic()
        place = self.state or f"sprocket-state/replay-{self._name()}"
        memory = SliceProgress(Folder(session, place), self._name())
        slices = Slices(memory, rows=self.slice_rows, rate=self.rate, watch=watch)
        units = self._archived(session, memory) if self.archive else self._stored(session)
        is_whole = slices.run(units, self._send)
        return Replayed(
            rows=slices.done,
            total_rows=memory.rows,
            repeats_max=self.slice_rows,
            to=self.to,
            state=place,
            seconds=time.monotonic() - started,
            is_interrupted=not is_whole,
        )

    def _check(self) -> None:
        check_topic(self.to)
        if not (self.archive or self.topics):
            raise UsageError("say what to replay: an archive, or topics")
        is_same = self._target.nameservers == self.nameservers
        if not self.archive and self.to in self.topics and is_same and self.until_ms is None:
            raise UsageError(f"{self.to} into itself needs an end: until")

    @property
    def _target(self) -> Servers:
        if self.to_nameservers is None and self.to_profile is None:
            return self.servers
        given = (self.to_keys, self.to_tls, self.to_profile)
        return self.servers.another(self.to_nameservers, *given)

    def _name(self) -> str:
        more = () if self.to_profile is None else ("to_profile",)
        return self.digest(
            "nameservers", "to", "archive", "topics", "since_ms", "until_ms", "where",
            "to_nameservers", *more,
        )  # fmt: skip

    def _stored(self, session: SparkSession) -> Iterator[WorkUnit]:
        """One unit for all topics. Without an end time it grows from run to run."""
        start, end = offsets.span(
            self.servers, self.topics, since_ms=self.since_ms, until_ms=self.until_ms
        )
        options = {**self.source(), "failOnDataLoss": str(not self.allows_loss)}
        rows = partial(offsets.rows, session, options, _COLUMNS)
        yield WorkUnit(0, start, end, rows, QueueWitnesses(options))

    def _archived(self, session: SparkSession, memory: SliceProgress) -> Iterator[WorkUnit]:
        """A unit for each batch of an archive, whose files are in folders of their own."""
        from pyspark.sql import functions as f

        assert self.archive is not None
        whole = archives.read(session, self.archive)
        chosen = bodies.closed(self._chosen(whole))
        numbers = chosen.where(f.col(BATCH) >= memory.unit).select(BATCH).distinct().orderBy(BATCH)
        for row in numbers.toLocalIterator():
            number = row[BATCH]
            one = chosen.where(f.col(BATCH) == number)
            start, end = _bounds(one)
            yield WorkUnit(number, start, end, partial(_within, one))

    def _chosen(self, frame: DataFrame) -> DataFrame:
        from pyspark.sql import functions as f

        if self.topics:
            frame = frame.where(f.col("topic").isin(*self.topics))
        stored = f.col("store_timestamp")
        if self.since_ms is not None:
            at = f.timestamp_millis(f.lit(self.since_ms))
            frame = frame.where((stored >= at) & (f.col("date") >= _day(at)))
        if self.until_ms is not None:
            at = f.timestamp_millis(f.lit(self.until_ms))
            frame = frame.where((stored < at) & (f.col("date") <= _day(at)))
        return frame

    def _send(self, frame: DataFrame) -> int:
        """Sends rows and returns how many, when all are acknowledged."""
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        if self.where is not None:
            frame = chosen(frame, self.where)
        seen = Observation()
        if self.queue_by == "key":
            # A key keeps its order only if one task sends all rows of its queue, by offset.
            places = ("topic", "broker", "queue_id")
            frame = frame.repartition(*places).sortWithinPartitions(*places, "queue_offset")
        (
            frame.withColumn("properties", offsets.marked(MARK, offsets.origin()))
            .select("key", "tag", "body", "properties", "flag")
            .observe(seen, f.count(f.lit(1)).alias("rows"))
            .write.format("rocketmq")
            .mode("append")
            .options(**self._target.options())
            .option("topic", self.to)
            .option("queueBy", self.queue_by)
            .save()
        )
        return int(seen.get["rows"])


def chosen(frame: DataFrame, where: str) -> DataFrame:
    """The rows for which an SQL expression is true.

    Raises:
        UsageError: the expression is wrong, or uses other columns.
    """
    from pyspark.errors import PySparkException

    try:
        return frame.where(where)
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"{where!r} cannot choose rows: {reason}") from None


def _day(at: Column) -> Column:
    from pyspark.sql import functions as f

    return f.date_format(at, "yyyy-MM-dd")


def _bounds(frame: DataFrame) -> tuple[Offsets, Offsets]:
    """The first offset of each queue in the rows, and the last one plus one."""
    from pyspark.sql import functions as f

    queues = frame.groupBy("topic", "broker", "queue_id").agg(
        f.min("queue_offset").alias("first"), f.max("queue_offset").alias("last")
    )
    start, end = {}, {}
    for row in queues.limit(_QUEUES_MAX).collect():
        queue = QueueId(row["topic"], row["broker"], row["queue_id"])
        start[queue], end[queue] = row["first"], row["last"] + 1
    return start, end


def _within(frame: DataFrame, start: Offsets, end: Offsets) -> DataFrame:
    """The rows whose offsets are in [start, end)."""
    from pyspark.sql import functions as f

    is_in = f.lit(False)
    for queue, last in end.items():
        if start[queue] >= last:
            continue
        is_queue = (f.col("topic") == queue.topic) & (f.col("broker") == queue.broker)
        is_queue &= f.col("queue_id") == queue.number
        at = f.col("queue_offset")
        is_in |= is_queue & (at >= start[queue]) & (at < last)
    return frame.where(is_in)
