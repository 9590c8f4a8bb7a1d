"""Records the lag of consumer groups over time: a sample of every queue in each round.

Samples are added to a folder (Parquet or CSV) and never changed; the report covers all samples in
it. A run adds nothing twice, and a gap between two runs is a gap in the lines.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sprocket.base.errors import SprocketError
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.parts.job import Job, setting
from sprocket.spark.pipelines.parts.progress import Interrupt, Progress, Watch, unwatched
from sprocket.spark.pipelines.parts.report import Bars, Lines, Report, Table, moment
from sprocket.spark.pipelines.parts.spread import Points, over_time
from sprocket.spark.pipelines.tables.opened import open_table
from sprocket.spark.pipelines.tables.table_layout import TableLayout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sprocket.admin.caller import Caller

_COLUMNS = (
    "sampled_ms bigint, consumer_group string, topic string, broker string, queue_id int, "
    "committed bigint, end_offset bigint, behind bigint, consumed_ms bigint"
)
_GROUPS_MAX, _QUEUES_MAX = 1000, 200
#: Samples are written when there are so many of them, or when so many seconds have passed.
_FLUSH_ROWS, _FLUSH_S = 20_000, 60.0
_LOOK_S = 0.05


class Sample(NamedTuple):
    """Position of a group in a queue at a moment: a row of the folder.

    Attributes:
        consumed_ms: store time of the last consumed message, ms; 0 for none.
    """

    sampled_ms: int
    group: str
    topic: str
    broker: str
    queue_id: int
    committed: int
    end: int
    behind: int
    consumed_ms: int


class ReportedLag(NamedTuple):
    """A group in the report.

    Attributes:
        behind: lag in the last round, in messages; `worst` is the largest of all rounds.
        worst_ms: when the lag was the largest.
        per_second: messages consumed a second, from the first round to the last.
    """

    group: str
    behind: int
    worst: int
    worst_ms: int
    samples: int
    per_second: float


@dataclass(frozen=True)
class Sampled:
    """What a run did, and what its folder contains.

    Attributes:
        rows: samples of queues that this run added.
        failed: rounds for which the cluster did not answer.
        queues: the queues with the largest lag in the last round, 200 at most.
    """

    rows: int
    rounds: int
    failed: int
    groups: tuple[ReportedLag, ...]
    queues: tuple[tuple[str, str, str, int, int], ...]
    lines: Points
    folder: str
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same figures as a report."""
        headings = ("group", "behind", "worst", "worst at", "samples", "consumed per second")
        rows = [
            (g.group, g.behind, g.worst, moment(g.worst_ms), g.samples, round(g.per_second, 2))
            for g in self.groups
        ]
        named = [(one.group, one.behind) for one in self.groups[:20]]
        return Report(
            "Lag",
            {
                "samples added": self.rows,
                "rounds": self.rounds,
                "rounds without an answer": self.failed,
                "folder": self.folder,
                "seconds": round(self.seconds, 3),
            },
            (
                Lines("Messages behind", "messages", self.lines),
                Table("Groups", headings, rows),
                Bars("Behind now", "messages", named),
                Table(
                    "Queues that are most behind",
                    ("group", "topic", "broker", "queue", "behind"),
                    self.queues,
                ),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Lag(Job):
    """Samples the lag of groups, and reports it over time."""

    folder: str = setting("Folder to which samples are added.", option="to")
    groups: tuple[str, ...] = setting(
        "Consumer group; without it, all groups. May be repeated.",
        option="group",
        kind="words",
        default=(),
    )
    every_s: float = setting(
        "Seconds between two rounds.", option="every", kind="number", default=10.0
    )
    rounds: int | None = setting(
        "Number of rounds; 0 only reports. Without it, until Ctrl-C.",
        option="rounds",
        kind="whole",
        default=None,
    )
    form: str = setting(
        "Format of the files, or of the table that they are.",
        option="format",
        default="parquet",
        choices=("parquet", "csv", "delta", "iceberg"),
    )
    storage: tuple[str, ...] = setting(
        "Option NAME=VALUE of the table's library for an object store; may be repeated.",
        option="storage",
        kind="words",
        default=(),
    )

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Sampled:
        """Takes the rounds, then reports all samples in the folder.

        Raises:
            SprocketError: the cluster did not answer in the first round.
        """
        started = time.monotonic()
        sampler = _Sampler(self, session, watch)
        with Interrupt() as interrupt:
            sampler.run(interrupt)
        groups, queues, lines = self._found(session)
        return Sampled(
            rows=sampler.rows,
            rounds=sampler.rounds,
            failed=sampler.failed,
            groups=groups,
            queues=queues,
            lines=lines,
            folder=self.folder,
            seconds=time.monotonic() - started,
            is_interrupted=interrupt.is_set and self.rounds is not None,
        )

    def read(self, session: SparkSession) -> DataFrame:
        """All samples in the folder."""
        schema = f"{_COLUMNS}, date string"
        if self._is_table:
            found = self._table(session).rows()
            if found is not None:
                return found
            return session.createDataFrame([], f"{_COLUMNS}, date date")
        folder = Folder(session, self.folder)
        if not folder.names():
            return session.createDataFrame([], schema)
        read = session.read.schema(schema)
        return read.csv(folder.path) if self.form == "csv" else read.parquet(folder.path)

    def write(self, session: SparkSession, samples: Sequence[Sample]) -> None:
        """Adds samples to the folder."""
        from pyspark.sql import functions as f

        frame = session.createDataFrame(list(samples), _COLUMNS).coalesce(1)
        at = f.timestamp_millis("sampled_ms")
        if self._is_table:
            dated = frame.withColumn("date", f.to_date(at))
            return self._table(session).add(dated, "samples")
        date = f.date_format(at, "yyyy-MM-dd")
        writer = frame.withColumn("date", date).write.mode("append").partitionBy("date")
        path = Folder(session, self.folder).path
        return writer.csv(path) if self.form == "csv" else writer.parquet(path)

    @property
    def _is_table(self) -> bool:
        return self.form in ("delta", "iceberg")

    def _table(self, session: SparkSession) -> TableLayout:
        return open_table(session, self.folder, self.form, ("date",), self.storage)

    async def sample(self, caller: Caller, now_ms: int) -> list[Sample]:
        """One round: a sample of each queue of each group, at `now_ms`."""
        from sprocket.admin import groups, positions

        found = []
        for group in self.groups or await groups.names(caller):
            for one in (await positions.lag(caller, group)).queues:
                queue = (one.topic, one.broker, one.number)
                position = (one.committed, one.end, one.behind, one.consumed_ms)
                found.append(Sample(now_ms, group, *queue, *position))
        return found

    # Rates are last offset minus first, over the time between: samples that are missing because a
    # round failed then change nothing. `max_by` finds the last round without sorting all samples.
    def _found(self, session: SparkSession) -> tuple[Any, Any, Points]:
        from pyspark.sql import functions as f

        samples = self.read(session)
        rounds = samples.groupBy("consumer_group", "sampled_ms").agg(
            f.sum("behind").alias("behind"), f.sum("committed").alias("committed")
        )
        last = f.max_by("behind", "sampled_ms").alias("last")
        moved = f.max_by("committed", "sampled_ms") - f.min_by("committed", "sampled_ms")
        spent = (f.max("sampled_ms") - f.min("sampled_ms")) / 1000
        by_group = rounds.groupBy("consumer_group").agg(
            last,
            f.max("behind"),
            f.max_by("sampled_ms", "behind"),
            f.count(f.lit(1)),
            f.coalesce(f.try_divide(moved, spent), f.lit(0.0)),
        )
        ordered = by_group.orderBy(f.desc("last"), "consumer_group").limit(_GROUPS_MAX)
        groups = tuple(ReportedLag(*row) for row in ordered.collect())
        newest = samples.agg(f.max("sampled_ms").alias("newest"))
        queues = (
            samples.join(newest, f.col("sampled_ms") == f.col("newest"))
            .select("consumer_group", "topic", "broker", "queue_id", "behind")
            .orderBy(f.desc("behind"), "consumer_group", "topic", "broker", "queue_id")
            .limit(_QUEUES_MAX)
        )
        value = f.max_by("behind", "sampled_ms")
        spread = over_time(rounds, name="consumer_group", at="sampled_ms", value=value)
        return groups, tuple(tuple(row) for row in queues.collect()), spread.lines


class _Sampler:
    """Takes the rounds of a run."""

    def __init__(self, job: Lag, session: SparkSession, watch: Watch) -> None:
        self._job = job
        self._session = session
        self._watch = watch
        self._waiting: list[Sample] = []
        self._flushed = time.monotonic()
        self.rows = self.rounds = self.failed = 0

    def run(self, interrupt: Interrupt) -> None:
        due = time.monotonic()
        wanted = self._job.rounds
        try:
            while not interrupt.is_set and (wanted is None or self.rounds + self.failed < wanted):
                self._round()
                due += self._job.every_s
                if wanted is None or self.rounds + self.failed < wanted:
                    _wait(due, interrupt)
        finally:
            self._flush()

    def _round(self) -> None:
        now_ms = time.time_ns() // 1_000_000
        try:
            found = self._job.servers.ask(lambda caller: self._job.sample(caller, now_ms))
        except SprocketError:
            if not self.rounds:
                raise
            self.failed += 1
            return
        self.rounds += 1
        self.rows += len(found)
        self._waiting += found
        self._watch(Progress(self.rows, None, sum(one.behind for one in found)))
        is_late = time.monotonic() - self._flushed >= _FLUSH_S
        if is_late or len(self._waiting) >= _FLUSH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._job.write(self._session, self._waiting)
            self._waiting = []
        self._flushed = time.monotonic()


def _wait(due: float, interrupt: Interrupt) -> None:
    while not interrupt.is_set and (left := due - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK_S))
