"""Micro-batches that change rows of a table by their key: the files that hold them are rewritten.

A batch is a frame with a row for each key (`merge` describes its columns). The key columns of the
table are read to find the files that hold keys of the batch; Parquet's statistics spare those whose
keys lie outside of the batch's. These files are joined with the batch, written anew, and exchanged
in the commit that has the batch's number. Choice and price: docs/decisions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from sprocket.spark.pipelines.tables import files as table_files
from sprocket.spark.pipelines.tables.columns import arrow_columns
from sprocket.spark.pipelines.tables.table import TableFile
from sprocket.spark.pipelines.tables.table_layout import StagedFiles, TableLayout

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: About the size of files that a batch writes, bytes, and the most new rows for one of them.
_FILE_SIZE = 64 * 1024 * 1024
_FILE_ROWS = 1_000_000
_ADAPTIVE = "spark.sql.adaptive.enabled"
_OLD, _NEW = "old", "new"


class MergeLayout(TableLayout):
    """Changes rows of a table. It is not partitioned.

    A row remembers in the column `place` the change that it is from, and an older change of the
    same queue is left out; so is one of another queue that is older by its time.
    """

    def merge(
        self, batch: DataFrame, number: int, *, key: Sequence[str], place: str
    ) -> StagedFiles:
        """Writes the files of a batch; they are not in the table yet.

        Args:
            batch: a row for each key: `row`, a struct of the table's columns, each of which is a
                struct with a `value`, or null where the column keeps what it has; `is_deleted`;
                `is_whole`: whether what the row was before does not matter; `is_split`: whether its
                changes came from several queues; and the struct `place` with topic, broker,
                queue_id, queue_offset and changed_at.
            key: names of the key's columns.
            place: name of the table's column that remembers `place`.
        """
        with cached(batch) as rows:
            return self._merge(rows, number, key, place)

    def count(self) -> int:
        """How many rows the table has."""
        return sum(one.rows or 0 for one in self._table.files()) if self._table.exists() else 0

    def _merge(self, batch: DataFrame, number: int, key: Sequence[str], place: str) -> StagedFiles:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        known = _span(batch, key[0])
        columns = arrow_columns(_columns(batch, place))
        if not known["keys"]:
            return StagedFiles([], columns)
        touched = self._touched(batch, key, known) if self._table.exists() else []
        seen = Observation()
        rows = _joined(self._old(touched, batch, place), batch, key)
        rows = rows.observe(seen, *_measures(batch, place))
        size = sum(one.size for one in touched)
        count = max(1, math.ceil(size / _FILE_SIZE), math.ceil(known["keys"] / _FILE_ROWS))
        written = _after(rows, batch, place)
        by = [f.col(quoted(name)) for name in key]
        written = written.repartition(1) if count == 1 else written.repartitionByRange(count, *by)
        made = table_files.write(written, self._folder, (), str(number))
        totals = {name: int(value or 0) for name, value in seen.get.items()}
        return StagedFiles(made, columns, touched, totals)

    def _touched(
        self, batch: DataFrame, key: Sequence[str], known: Mapping[str, Any]
    ) -> list[TableFile]:
        """The files that hold a key of the batch."""
        from pyspark.sql import functions as f

        by_name: dict[str, list[TableFile]] = {}
        for one in self._table.files():
            by_name.setdefault(one.name.rpartition("/")[2], []).append(one)
        there = self._frame([one for some in by_name.values() for one in some], batch.sparkSession)
        names = [f"key_{at}" for at in range(len(key))]
        has = [f.col(quoted(one)).alias(name) for one, name in zip(key, names, strict=True)]
        wants = [
            f.col("row")[one]["value"].alias(name) for one, name in zip(key, names, strict=True)
        ]
        near = there.select(*has, f.col("_metadata.file_name").alias("file"))
        near = near.where(f.col("key_0").between(known["lowest"], known["highest"]))
        found = near.join(batch.select(*wants), names, "left_semi").select("file").distinct()
        return [one for row in found.collect() for one in by_name[row[0]]]

    def _old(self, touched: Sequence[TableFile], batch: DataFrame, place: str) -> DataFrame:
        """The rows of files, with null in columns that the table lacks."""
        from pyspark.sql import functions as f

        wanted = _columns(batch, place)
        session = batch.sparkSession
        if not touched:
            return session.createDataFrame([], wanted).select(f.struct("*").alias(_OLD))
        frame = self._frame(touched, session)
        # A column of the table that this batch's rows lack stays as it is.
        names = {field.name for field in wanted.fields}
        chosen = [
            f.col(quoted(field.name))
            if field.name in frame.columns
            else f.lit(None).cast(field.dataType).alias(field.name)
            for field in wanted.fields
        ]
        more = [f.col(quoted(name)) for name in frame.columns if name not in names]
        return frame.select(f.struct(*chosen, *more).alias(_OLD))


def _span(batch: DataFrame, first: str) -> Mapping[str, Any]:
    """How many keys a batch has, and between which values of the key's first column they lie."""
    from pyspark.sql import functions as f

    value = f.col("row")[first]["value"]
    found = batch.agg(
        f.count(f.lit(1)).alias("keys"), f.min(value).alias("lowest"), f.max(value).alias("highest")
    ).first()
    assert found is not None, "an aggregate has a row"
    return found.asDict()


def _columns(batch: DataFrame, place: str) -> StructType:
    """The columns of the table after a batch."""
    from pyspark.sql.types import StructField, StructType

    row: Any = batch.schema["row"].dataType
    made = [StructField(field.name, field.dataType["value"].dataType) for field in row.fields]
    return StructType([*made, StructField(place, batch.schema["place"].dataType)])


def _joined(old: DataFrame, batch: DataFrame, key: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as f

    new = batch.select(f.struct("*").alias(_NEW))
    same = [f.col(_OLD)[name] == f.col(_NEW)["row"][name]["value"] for name in key]
    return old.join(new, same, "full_outer")


def _is_same_queue(place: str) -> Column:
    """Whether a change is of the queue of the one that its row is from."""
    from pyspark.sql import functions as f

    was, now = f.col(_OLD)[place], f.col(_NEW)["place"]
    queue = ("topic", "broker", "queue_id")
    return f.struct(*(was[name] for name in queue)) == f.struct(*(now[name] for name in queue))


def _is_older(place: str) -> Column:
    """Whether a change is older than the one that its row is from."""
    from pyspark.sql import functions as f

    was, now = f.col(_OLD)[place], f.col(_NEW)["place"]
    older = f.when(_is_same_queue(place), now["queue_offset"] <= was["queue_offset"])
    return f.coalesce(older.otherwise(now["changed_at"] < was["changed_at"]), f.lit(False))


def _is_applied(place: str) -> Column:
    from pyspark.sql import functions as f

    return f.col(_NEW).isNotNull() & ~(f.col(_OLD).isNotNull() & _is_older(place))


def _measures(batch: DataFrame, place: str) -> Iterator[Column]:
    from pyspark.sql import functions as f

    was, now = f.col(_OLD).isNotNull(), f.col(_NEW).isNotNull()
    applied, gone = _is_applied(place), f.col(f"{_NEW}.is_deleted")
    row: Any = batch.schema["row"].dataType
    unsent = f.lit(False)
    for name in row.names:
        unsent = unsent | f.col(_NEW)["row"][name].isNull()
    is_fresh = ~was | f.col(f"{_NEW}.is_whole")
    counted = {
        "inserted": applied & ~was & ~gone,
        "updated": applied & was & ~gone,
        "deleted": applied & was & gone,
        "older": now & ~applied,
        "unsent": applied & ~gone & is_fresh & unsent,
        "split": now & (f.col(f"{_NEW}.is_split") | (was & ~_is_same_queue(place))),
    }
    for name, one in counted.items():
        yield f.count_if(one).alias(name)


def _after(rows: DataFrame, batch: DataFrame, place: str) -> DataFrame:
    """The rows as they are after the batch."""
    from pyspark.sql import functions as f

    applied, gone = _is_applied(place), f.col(f"{_NEW}.is_deleted")
    is_left = f.when(f.col(_NEW).isNull(), True).when(applied, ~gone)
    kept = rows.where(is_left.otherwise(f.col(_OLD).isNotNull()))
    names: Any = rows.schema[_OLD].dataType
    sent: Any = batch.schema["row"].dataType
    made = []
    for name in names.names:
        old = f.col(_OLD)[name]
        if name == place:
            value = f.when(applied, f.col(f"{_NEW}.place")).otherwise(old)
        elif name in sent.names:
            new = f.col(_NEW)["row"][name]
            value = (
                f.when(applied & new.isNotNull(), new["value"])
                .when(applied & f.col(f"{_NEW}.is_whole"), f.lit(None))
                .otherwise(old)
            )
        else:
            value = f.when(applied & f.col(f"{_NEW}.is_whole"), f.lit(None)).otherwise(old)
        made.append(value.alias(name))
    return kept.select(*made)


def quoted(name: str) -> str:
    """A column's name as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def adaptive(session: SparkSession) -> AbstractContextManager[None]:
    """Spark groups and joins with as many tasks as there is work; within streams it does not."""
    return table_files.session_setting(session, _ADAPTIVE, "true")


@contextmanager
def cached(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed once, however often it is used in the block."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()
