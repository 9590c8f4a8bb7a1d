"""Writes topics to partitioned Parquet, or to a table of Delta or Iceberg, each message once.

    archive = Archive(nameservers="127.0.0.1:9876", topics=("orders",), folder="orders-archive")
    done = archive.run(session)

Folders of Parquet are `topic=…/date=…/batch=…`, by the day of storing (UTC); a table has its own
list of files. `batches` describes why each message is there exactly once after crashes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts import bodies
from sprocket.spark.pipelines.parts.batches import Batches
from sprocket.spark.pipelines.parts.folder import HIDDEN
from sprocket.spark.pipelines.parts.job import (
    TopicJob,
    batch_rows_setting,
    every_setting,
    follows_setting,
    setting,
)
from sprocket.spark.pipelines.parts.progress import Watch, unwatched
from sprocket.spark.pipelines.parts.report import Bars, Report, Table
from sprocket.spark.pipelines.parts.streams import run_query, trigger
from sprocket.spark.pipelines.tables.columns import arrow_columns, check_partition, in_calendar
from sprocket.spark.pipelines.tables.opened import PARQUET, TableSettings, read_back

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: Columns of an archive.
COLUMNS = (
    "topic string, broker string, queue_id int, queue_offset bigint, key string, tag string, "
    "body binary, properties map<string,string>, born_timestamp timestamp, "
    "store_timestamp timestamp, message_id string, flag int, reconsume_times int, born_host string"
)
BY = ("topic", "date")
_ABOUT = f"{HIDDEN}/archive.json"
#: Most topics in a report.
_TOPICS_MAX = 1000


@dataclass(frozen=True)
class Archived:
    """What a run did, and what the archive holds now.

    Attributes:
        rows: messages archived by this run.
        corrupt: messages of them whose body is no JSON of the schema.
        batches: micro-batches of this run.
        total_rows: messages in the archive.
        topics: messages of each topic in the archive, the largest first, 1000 at most.
        is_interrupted: whether Ctrl-C ended it.
    """

    rows: int
    corrupt: int
    batches: int
    total_rows: int
    topics: tuple[tuple[str, int], ...]
    folder: str
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same figures as a report."""
        facts = {
            "messages archived": self.rows,
            "with a corrupt body": self.corrupt,
            "micro-batches": self.batches,
            "messages in the archive": self.total_rows,
            "folder": self.folder,
            "seconds": round(self.seconds, 3),
            "stopped before the end": self.is_interrupted,
        }
        table = Table("Messages in the archive", ("topic", "messages"), self.topics)
        return Report("Archive", facts, (table, Bars("By topic", "messages", self.topics[:20])))


@dataclass(frozen=True, kw_only=True)
class Archive(TableSettings, TopicJob):
    """Writes topics to Parquet, Delta or Iceberg, each message exactly once."""

    folder: str = setting("The folder that grows; a path or s3a://, hdfs:// …", option="to")
    partition_by: tuple[str, ...] = setting(
        "Column by which the folder is partitioned; may be repeated. `properties.region` and "
        "`data.region` name what is inside of a column. Without it: topic and date.",
        option="partition-by",
        kind="words",
        default=(),
    )
    body: str = setting(
        "Bodies as they are (raw), opened as JSON (json), or decoded by the source's options "
        "bodyFormat, bodySchema and schemaRegistry (decoded).",
        option="body",
        default="raw",
        choices=("raw", "json", "decoded"),
    )
    schema: str | None = setting(
        "Columns of JSON bodies: `amount double, items array<string>`. Without it they are found "
        "in the first messages, once for the archive.",
        option="schema",
        default=None,
    )
    keeps_body: bool = setting(
        "Keep the raw body beside what was opened, too; always so where columns were found.",
        option="keep-body",
        kind="switch",
        default=False,
    )
    sample_rows: int = setting(
        "Messages to find the columns in.", option="sample", kind="whole", default=1000, least=1
    )
    follows: bool = follows_setting()
    every_s: float = every_setting(10.0)
    batch_rows: int = batch_rows_setting(1_000_000)
    group: str | None = setting(
        "Consumer group whose offsets follow what is archived, for lag tools.",
        option="group",
        default=None,
    )

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Archived:
        """Archives the messages behind the offsets in the folder's checkpoint.

        Raises:
            UsageError: the settings contradict each other, or the folder holds something else.
            StreamFailed: reading or writing failed; the next run continues from there.
        """
        from pyspark.sql import functions as f

        started = time.monotonic()
        self._check_partition(session)
        batches = self.opened(session, self.folder, self._by(), before=BY)
        schema, keeps_body = self._schema(session, batches)

        def rows(frame: DataFrame) -> DataFrame:
            dated = self._dated(frame)
            if schema is not None:
                dated = bodies.opened(dated, schema, keeps_body=keeps_body)
            return self._partitioned(dated)

        corrupt = f.count(bodies.CORRUPT) if schema is not None else f.count(f.lit(None))
        write = batches.append(rows, {"rows": f.count(f.lit(1)), "corrupt": corrupt})
        writer = (
            self._stream(session, schema)
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", batches.checkpoint)
            .trigger(**trigger(follows=self.follows, every_s=self.every_s))
        )
        is_whole = run_query(writer, watch)
        return Archived(
            rows=batches.totals.get("rows", 0),
            corrupt=batches.totals.get("corrupt", 0),
            batches=batches.appended,
            total_rows=batches.mark.totals.get("rows", 0),
            topics=_topics(batches),
            folder=self.folder,
            seconds=time.monotonic() - started,
            is_interrupted=not is_whole,
        )

    def check(self) -> None:
        """See `Job.check`."""
        if self.body == "decoded":
            bodies.decoded_ddl(self.reading())
        super().check()

    def _by(self) -> tuple[str, ...]:
        """The partition columns; of `properties.region` it is `region`."""
        return tuple(name.rpartition(".")[2] for name in self.partition_by) or BY

    def _check_partition(self, session: SparkSession) -> None:
        """Raises UsageError for partition columns that are not there, before a folder is begun."""
        plain = [path for path in self.partition_by if "." not in path]
        check_partition(self._dated(session.createDataFrame([], COLUMNS)).schema, plain)

    def _dated(self, frame: DataFrame) -> DataFrame:
        """The rows with the day of storing (UTC): a text in folders' names, a date in tables."""
        from pyspark.sql import functions as f

        if self.form == PARQUET:
            return frame.withColumn("date", f.date_format("store_timestamp", "yyyy-MM-dd"))
        timed = in_calendar(frame, "born_timestamp", "store_timestamp")
        return timed.withColumn("date", f.to_date("store_timestamp"))

    def _partitioned(self, frame: DataFrame) -> DataFrame:
        """The rows with a column for each partition column that is inside of another."""
        from pyspark.sql import functions as f

        there = {name.lower() for name in frame.columns}
        for path in self.partition_by:
            outside, _, name = path.rpartition(".")
            if outside:
                if name.lower() in there:
                    raise UsageError(f"{path} would be a second column {name}")
                there.add(name.lower())
                frame = frame.withColumn(name, f.col(outside)[name])
        return frame

    def _stream(self, session: SparkSession, schema: StructType | None) -> DataFrame:
        has_values = schema is not None and self.body == "decoded"
        columns = bodies.with_value(COLUMNS, schema) if has_values else COLUMNS
        return self.stream(session, columns, batch_rows=self.batch_rows, group=self.group)

    def _schema(self, session: SparkSession, batches: Batches) -> tuple[StructType | None, bool]:
        """The schema of bodies, None for raw ones, and whether raw bodies are kept.

        Raises:
            UsageError: the settings contradict each other, or a table cannot have the columns.
        """
        from pyspark.sql.types import StructField, StructType

        if self.body == "raw":
            if self.schema is not None:
                raise UsageError("a schema is for bodies that are opened: body json")
            schema = None
        elif self.schema is not None:
            if self.body == "decoded":
                raise UsageError("the columns of decoded bodies are those of option bodySchema")
            schema = bodies.struct(self.schema)
        else:
            known = batches.folder.read(_ABOUT)
            saved = known and known.get("schema") and StructType.fromJson(known["schema"])
            if saved and (self.body == "json" or self.form == PARQUET):
                return saved, True
            is_decoded = self.body == "decoded"
            schema = self._decoded() if is_decoded else self._inferred(session)
            if saved and not bodies.is_wider(schema, saved):
                return saved, True
        if schema is not None and self.form != PARQUET:
            arrow_columns(StructType([StructField(bodies.DATA, schema)]))
        self._remember(batches, schema)
        return schema, self.keeps_body or (schema is not None and self.schema is None)

    def _decoded(self) -> StructType:
        made = bodies.decoded(self.reading())
        return made if self.form == PARQUET else bodies.without_intervals(made)

    def _inferred(self, session: SparkSession) -> StructType:
        read = session.read.format("rocketmq").schema("body binary")
        rows = self.sample_rows
        return bodies.inferred(session, read.options(**self.reading()).load(), rows)

    def _remember(self, batches: Batches, schema: StructType | None) -> None:
        """Saves the archive's schema; raises UsageError if the folder has another one.

        A table takes a schema that has more columns than before: older rows have null there.
        """
        from pyspark.sql.types import StructType

        wanted = {"schema": None if schema is None else schema.jsonValue()}
        known = batches.folder.read(_ABOUT)
        if known == wanted:
            return
        if known is not None and (
            self.form == PARQUET
            or schema is None
            or known.get("schema") is None
            or not bodies.is_wider(schema, StructType.fromJson(known["schema"]))
        ):
            more = "" if self.form == PARQUET else " (a table takes a schema with more columns)"
            raise UsageError(
                f"{self.folder} was begun with other bodies or another schema: "
                f"give a new folder{more}"
            )
        batches.folder.replace(_ABOUT, wanted)


def read(session: SparkSession, folder: str) -> DataFrame:
    """The messages of an archive: whole batches only, also while one is being written.

    Raises:
        UsageError: the archive is empty.
    """
    return opened(session, folder).read()


def opened(session: SparkSession, folder: str) -> Batches:
    """An archive in whatever format it was begun."""
    return read_back(session, folder, before=BY)


def _topics(batches: Batches) -> tuple[tuple[str, int], ...]:
    if batches.is_empty:
        return ()
    counted = batches.read().groupBy("topic").count().orderBy("count", ascending=False)
    return tuple((row["topic"], row["count"]) for row in counted.limit(_TOPICS_MAX).collect())
