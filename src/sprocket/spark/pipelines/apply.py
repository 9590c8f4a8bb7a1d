"""Applies change data of a database to a table of Delta or Iceberg, each change once.

    orders = Apply(nameservers="127.0.0.1:9876", topics=("shop.orders",), folder="orders-table")
    done = orders.run(session)

Messages are Canal's or Debezium's, in JSON. The table has a row for each key, as the database had
it after the last change that was applied. `batches` describes why a change is applied once after
crashes, and `change_layout` what is beside the table.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.changes.change_layout import ASIDE, ChangeLayout
from sprocket.spark.pipelines.changes.debezium import UNAVAILABLE
from sprocket.spark.pipelines.changes.frames import ASIDE_BECAUSE, COLUMNS, given_shape
from sprocket.spark.pipelines.changes.rows import ChangeReader
from sprocket.spark.pipelines.changes.shape import RowShape
from sprocket.spark.pipelines.parts.folder import Folder
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
from sprocket.spark.pipelines.tables.merge_layout import MergeLayout
from sprocket.spark.pipelines.tables.opened import FORMATS, PARQUET, TableSettings, pairs, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = tuple(one for one in FORMATS if one != PARQUET)


@dataclass(frozen=True)
class Applied:
    """What a run did, and what the table holds now.

    Attributes:
        messages: messages read by this run.
        totals: numbers of this run by name: upserts and deletes that were read; rows inserted,
            updated and deleted; changes that are aside, left_out, older than their row; unsent:
            new rows with columns whose value was never sent; split: keys with changes in several
            queues.
        aside: why messages of this run were set aside, and how many.
        total_aside: messages that were set aside since the table was begun.
        rows: rows of the table.
        key: its key; empty while it is not known.
        is_interrupted: whether Ctrl-C ended the run.
    """

    messages: int
    totals: Mapping[str, int]
    aside: tuple[tuple[str, int], ...]
    total_aside: int
    batches: int
    rows: int
    key: tuple[str, ...]
    folder: str
    seconds: float
    is_interrupted: bool

    def report(self) -> Report:
        """The same figures as a report."""
        found = self.totals
        facts = {
            "messages": self.messages,
            "changes written": found.get("upserts", 0),
            "changes deleted": found.get("deletes", 0),
            "rows inserted": found.get("inserted", 0),
            "rows updated": found.get("updated", 0),
            "rows deleted": found.get("deleted", 0),
            "set aside": found.get("aside", 0),
            "set aside by all runs": self.total_aside,
            "left out (DDL, tombstones, …)": found.get("left_out", 0),
            "older than their row": found.get("older", 0),
            "new rows with values never sent": found.get("unsent", 0),
            "keys in several queues": found.get("split", 0),
            "micro-batches": self.batches,
            "rows in the table": self.rows,
            "key": ", ".join(self.key) or "not known yet",
            "folder": self.folder,
            "seconds": round(self.seconds, 3),
            "stopped before the end": self.is_interrupted,
        }
        shown = Table(
            "Set aside",
            ("reason", "messages"),
            self.aside,
            note=f"They are in {ASIDE} of the table.",
        )
        changes = [(name, found.get(name, 0)) for name in ("inserted", "updated", "deleted")]
        return Report("Apply", facts, (Bars("Rows", "rows", changes), shown))


@dataclass(frozen=True, kw_only=True)
class Apply(TableSettings, TopicJob):
    """Applies change data of Canal or Debezium to a table of Delta or Iceberg."""

    form: str = setting("Format of the table.", option="format", default="delta", choices=_TABLES)
    compact_every: int = setting(
        "Merge small files, and remove those that no state of the last week has, after so many "
        "micro-batches; 0 for never.",
        option="compact-every",
        kind="whole",
        default=100,
    )
    folder: str = setting("The folder of the table; a path or s3a://, hdfs:// …", option="to")
    tables: tuple[str, ...] = setting(
        "Table of the database whose changes are applied, `shop.orders`; * stands for any "
        "characters. May be repeated. Without it, the only one of which the topic has changes.",
        option="table",
        kind="words",
        default=(),
    )
    key: tuple[str, ...] = setting(
        "Column of the key; may be repeated. Without it, the key that messages name.",
        option="key",
        kind="words",
        default=(),
    )
    schema: str | None = setting(
        "Columns of the table: `id bigint, amount decimal(20,2)`; others of messages are left out. "
        "Without it, they and their types are those of the messages.",
        option="schema",
        default=None,
    )
    unavailable: str = setting(
        "The text by which Debezium stands for a value that it does not have.",
        option="unavailable",
        default=UNAVAILABLE,
    )
    follows: bool = follows_setting()
    every_s: float = every_setting(10.0)
    batch_rows: int = batch_rows_setting(100_000)
    group: str | None = setting(
        "Consumer group whose offsets follow what is applied, for lag tools.",
        option="group",
        default=None,
    )

    def run(self, session: SparkSession, watch: Watch = unwatched) -> Applied:
        """Applies the messages behind the offsets in the table's checkpoint.

        Raises:
            UsageError: the settings contradict each other, the folder holds something else, or
                the topic has changes of several tables and none was chosen.
            StreamFailed: reading or writing failed; the next run continues from there.
        """
        started = time.monotonic()
        batches = self.opened(session, self.folder, (), before=())
        layout = batches.layout
        assert isinstance(layout, ChangeLayout), "it was made below"
        writer = (
            self.stream(session, COLUMNS, batch_rows=self.batch_rows, group=self.group)
            .writeStream.foreachBatch(batches.append(lambda frame: frame, {}))
            .option("checkpointLocation", batches.checkpoint)
            .trigger(**trigger(follows=self.follows, every_s=self.every_s))
        )
        is_whole = run_query(writer, watch)
        found = batches.totals
        aside = [
            (name.removeprefix(ASIDE_BECAUSE), count)
            for name, count in found.items()
            if name.startswith(ASIDE_BECAUSE)
        ]
        return Applied(
            messages=found.get("messages", 0),
            totals=found,
            aside=tuple(sorted(aside, key=lambda one: (-one[1], one[0]))),
            total_aside=batches.mark.totals.get("aside", 0),
            batches=batches.appended,
            rows=layout.count(),
            key=layout.shape.key,
            folder=self.folder,
            seconds=time.monotonic() - started,
            is_interrupted=not is_whole,
        )

    def check(self) -> None:
        """See `Job.check`."""
        if any(not one.strip() for one in (*self.tables, *self.key)):
            raise UsageError("a table and a column of the key have a name")
        super().check()

    def _layout(self, session: SparkSession, folder: Folder, by: Sequence[str]) -> ChangeLayout:
        table = table_of(self.form, folder, by, pairs(self.storage), self.registered)
        layout = MergeLayout(session, folder, table, by=by, compact_every=self.compact_every)
        given = (
            RowShape(key=self.key) if self.schema is None else given_shape(self.schema, self.key)
        )
        reader = ChangeReader(self.tables, self.unavailable, self.key)
        return ChangeLayout(folder, layout, reader, given)
