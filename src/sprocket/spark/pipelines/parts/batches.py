"""A folder of Parquet to which each micro-batch is added as a whole, exactly once.

    orders-archive/topic=orders/date=2030-01-31/batch=17/part-….parquet
    orders-archive/_sprocket/committed.json     the last whole batch, its query, and totals
    orders-archive/_sprocket/checkpoint/        Spark's checkpoint

A batch that is repeated after a kill replaces the folders `batch=N` of its first try: Spark gives
it the same messages, so it makes the same folders. `read` returns only batches that
`committed.json` names as whole. Choice and price: docs/decisions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.folder import HIDDEN, Folder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

logger = logging.getLogger(__name__)

BATCH = "batch"
_MARK = f"{HIDDEN}/committed.json"
_CHECKPOINT = f"{HIDDEN}/checkpoint"
#: Spark writes a file here, named by its number, for each micro-batch that is done.
_DONE = f"{_CHECKPOINT}/commits"
#: Folders that a task writes at the same time; if there are more, Spark sorts the rows first.
_OPEN_FILES = "64"


@dataclass(frozen=True)
class Mark:
    """The committed batches of the folder.

    Attributes:
        query: id of the query that writes the folder; Spark keeps it in its checkpoint.
        last: number of the last whole batch; -1 for none.
        totals: sums over all batches, by name.
    """

    query: str = ""
    last: int = -1
    totals: Mapping[str, int] = field(default_factory=dict)


class Batches:
    """Writes and reads such a folder.

    Args:
        session: the Spark session.
        path: the folder.
        by: columns whose values become folders, outermost first.
    """

    def __init__(self, session: SparkSession, path: str, *, by: Sequence[str]) -> None:
        self._session = session
        self._by = tuple(by)
        self.folder = Folder(session, path)
        self.checkpoint = self.folder.inner(_CHECKPOINT)
        self.mark = self._load()
        #: Sums over the batches of this run.
        self.totals: dict[str, int] = {}
        self.appended = 0

    def check(self) -> None:
        """Raises UsageError unless the folder is new, or its checkpoint is of the same query."""
        query = self._query()
        if query == self.mark.query:
            if not query and self.folder.names():
                raise UsageError(f"{self.folder} holds something else: give a folder of its own")
        elif self.mark.query:
            raise UsageError(
                f"{self.folder} was written by a query whose checkpoint is gone from {HIDDEN}: "
                "to continue would repeat messages; give a new folder"
            )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read: no whole batch, or none with rows."""
        return self.mark.last < 0 or not self.folder.names()

    def append(
        self, make: Callable[[DataFrame], DataFrame], measures: Mapping[str, Column]
    ) -> Callable[[DataFrame, int], None]:
        """A function for `foreachBatch` that adds the rows of a micro-batch to the folder.

        Args:
            make: turns the rows that were read into the rows to write.
            measures: aggregates over the rows to write; whole numbers, added up in the totals.
        """
        self._restore_mark(measures)

        def write(frame: DataFrame, number: int) -> None:
            self._append(make(frame), number, measures)

        return write

    def read(self) -> DataFrame:
        """The rows of all whole batches. Columns that come from folder names are text.

        Raises:
            UsageError: there is no whole batch.
        """
        from pyspark.sql import functions as f

        if self.is_empty:
            raise UsageError(f"{self.folder} holds nothing yet")
        names = "spark.sql.sources.partitionColumnTypeInference.enabled"
        before = self._session.conf.get(names)
        try:
            # A topic may be named 007, of which Spark would make the number 7.
            self._session.conf.set(names, "false")
            frame = self._session.read.parquet(self.folder.path)
        finally:
            self._session.conf.set(names, before or "true")
        return frame.withColumn(BATCH, f.col(BATCH).cast("bigint")).where(
            f.col(BATCH) <= self.mark.last
        )

    # Spark repeats a micro-batch that a crash cut off. It overwrites only its own folders, so that
    # leaves nothing twice, and the mark is written when all files are there. The measures are
    # observed during the write, so the rows are read once.
    def _append(self, frame: DataFrame, number: int, measures: Mapping[str, Column]) -> None:
        from pyspark.sql import Observation
        from pyspark.sql import functions as f

        if number <= self.mark.last:
            return
        seen = Observation()
        rows = frame.observe(seen, *(value.alias(name) for name, value in measures.items()))
        frame.sparkSession.conf.set("spark.sql.maxConcurrentOutputFileWriters", _OPEN_FILES)
        (
            rows.withColumn(BATCH, f.lit(number))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(*self._by, BATCH)
            .parquet(self.folder.path)
        )
        found = {name: int(value or 0) for name, value in seen.get.items()}
        self.totals = _sum(self.totals, found)
        self._commit(Mark(self._query(), number, _sum(self.mark.totals, found)))
        self.appended += 1

    def _restore_mark(self, measures: Mapping[str, Column]) -> None:
        """Makes a mark that was removed anew from the checkpoint and the rows in the folder.

        Spark's checkpoint names a batch as done only after its mark was written, so a checkpoint
        with such batches had a mark.
        """
        query, last = self._query(), self._last_done()
        if self.mark.query or not query or last < 0:
            return
        self.mark = Mark(query, last)
        totals: dict[str, int] = {}
        if not self.is_empty:
            row = self.read().agg(*(value.alias(name) for name, value in measures.items()))
            totals = _sum(
                {}, {name: value or 0 for name, value in row.collect()[0].asDict().items()}
            )
        logger.warning(
            "%s is gone; what the folder holds was counted again: %s",
            self.folder.inner(_MARK), totals,
        )  # fmt: skip
        self._commit(Mark(query, last, totals))

    def _last_done(self) -> int:
        """The number of the last batch that Spark's checkpoint names as done; -1 for none."""
        names = self.folder.names(_DONE)
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _commit(self, mark: Mark) -> None:
        self.folder.replace(
            _MARK, {"query": mark.query, "last": mark.last, "totals": dict(mark.totals)}
        )
        self.mark = mark

    def _load(self) -> Mark:
        found = self.folder.read(_MARK)
        if found is None:
            return Mark()
        try:
            return Mark(str(found["query"]), int(found["last"]), _sum({}, found["totals"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UsageError(f"{self.folder.inner(_MARK)} has a shape that is not ours") from None

    def _query(self) -> str:
        """The id in Spark's checkpoint; empty if there is none."""
        metadata: Any = self.folder.read(f"{_CHECKPOINT}/metadata")
        return str(metadata["id"]) if metadata and "id" in metadata else ""


def _sum(some: Mapping[str, int], more: Mapping[str, Any]) -> dict[str, int]:
    return {name: some.get(name, 0) + int(more.get(name, 0)) for name in {**some, **more}}
