"""Micro-batches as Parquet in folders of their numbers: `topic=orders/date=2030-01-31/batch=17/…`.

A batch that is repeated replaces the folders `batch=N` of its first try, since Spark gives it the
same rows. Whether a batch is whole only the mark beside the data knows. Choice and price:
docs/decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sprocket.spark.pipelines.parts.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = "batch"
#: Folders that a task writes at the same time; if there are more, Spark sorts the rows first.
OPEN_FILES = ("spark.sql.maxConcurrentOutputFileWriters", "64")


class BatchFolders:
    """The layout of plain Parquet.

    Args:
        by: columns whose values become folders, outermost first.
    """

    def __init__(self, session: SparkSession, folder: Folder, *, by: Sequence[str]) -> None:
        self._session = session
        self._folder = folder
        self._by = tuple(by)

    def last(self, query: str) -> int:
        """See `BatchLayout`: folders do not know whether they are whole."""
        return -1

    def stage(self, rows: DataFrame, number: int) -> None:
        """Writes the folders of a batch, or replaces them."""
        from pyspark.sql import functions as f

        rows.sparkSession.conf.set(*OPEN_FILES)
        (
            rows.withColumn(BATCH, f.lit(number))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy(*self._by, BATCH)
            .parquet(self._folder.path)
        )

    def totals(self, staged: Any) -> dict[str, int]:
        """See `BatchLayout`: nothing is counted."""
        return {}

    def commit(self, staged: Any, query: str, number: int) -> None:
        """Does nothing: the mark beside the data commits."""

    def read(self, last: int) -> DataFrame:
        """The rows of all batches up to `last`. Columns that come from folder names are text."""
        from pyspark.sql import functions as f

        names = "spark.sql.sources.partitionColumnTypeInference.enabled"
        before = self._session.conf.get(names)
        try:
            # A topic may be named 007, of which Spark would make the number 7.
            self._session.conf.set(names, "false")
            frame = self._session.read.parquet(self._folder.path)
        finally:
            self._session.conf.set(names, before or "true")
        return frame.withColumn(BATCH, f.col(BATCH).cast("bigint")).where(f.col(BATCH) <= last)
