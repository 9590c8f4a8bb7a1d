"""Micro-batches as commits of a table: the layout of Delta and Iceberg."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from sprocket.base.errors import SprocketError
from sprocket.spark.pipelines.parts.batch_folders import BATCH
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.tables import files as table_files
from sprocket.spark.pipelines.tables.columns import arrow_columns, check_partition
from sprocket.spark.pipelines.tables.compaction import chosen
from sprocket.spark.pipelines.tables.table import DATA, LakeTable, TableConflict, TableFile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger(__name__)

#: Readers of a state of the table have so long until files that it alone has are removed.
KEPT = datetime.timedelta(days=7)
#: How often rows are offered to a table that others write at the same time.
_TRIES = 10


class StagedFiles(NamedTuple):
    """Files of a batch that are written and not yet in the table.

    Attributes:
        instead_of: files that leave the table with the batch.
        totals: what was counted, by name.
    """

    files: list[TableFile]
    columns: pa.Schema
    instead_of: Sequence[TableFile] = ()
    totals: Mapping[str, int] = MappingProxyType({})


class TableLayout:
    """Writes batches to a table, reads it, and merges its small files.

    Args:
        by: partition columns.
        compact_every: batches after which small files are merged; 0 for never.
    """

    def __init__(
        self,
        session: SparkSession,
        folder: Folder,
        table: LakeTable,
        *,
        by: Sequence[str],
        compact_every: int = 0,
    ) -> None:
        self._session = session
        self._folder = folder
        self._table = table
        self._by = tuple(by)
        self._compact_every = compact_every

    def last(self, query: str) -> int:
        """See `BatchLayout`: each commit of a table has its batch."""
        return self._table.last(query)

    def stage(self, rows: DataFrame, number: int) -> StagedFiles:
        """Writes the files of a batch; they are not in the table yet."""
        from pyspark.sql import functions as f

        rows = rows.withColumn(BATCH, f.lit(number).cast("bigint"))
        check_partition(rows.schema, self._by)
        columns = arrow_columns(rows.schema)
        return StagedFiles(table_files.write(rows, self._folder, self._by, str(number)), columns)

    def totals(self, staged: StagedFiles) -> Mapping[str, int]:
        """See `BatchLayout`."""
        return staged.totals

    def commit(self, staged: StagedFiles, query: str, number: int) -> None:
        """Adds the files to the table, and removes what earlier tries of the batch left."""
        if not staged.files and not staged.instead_of:
            return
        self._table.append(staged.files, staged.columns, query, number, staged.instead_of)
        self._remove_others(number, staged.files)
        if self._compact_every and (number + 1) % self._compact_every == 0:
            self.compact()

    def add(self, rows: DataFrame, name: str) -> None:
        """Adds rows, as the next batch of those that are added by this name.

        Raises:
            TableConflict: other writers were faster, again and again.
        """
        check_partition(rows.schema, self._by)
        columns = arrow_columns(rows.schema)
        written = table_files.write(rows, self._folder, self._by, name)
        for left in reversed(range(_TRIES)):
            try:
                self._table.append(written, columns, name, self._table.last(name) + 1)
                break
            except TableConflict:
                if not left:
                    raise

    def rows(self) -> DataFrame | None:
        """The rows of the table now, by Spark itself; None if it was not created yet."""
        return self._frame(self._table.files()) if self._table.exists() else None

    def read(self, last: int) -> DataFrame:
        """The rows of the table now."""
        return self._frame(self._table.files())

    def compact(self) -> int:
        """Merges small files; returns how many were merged. Readers go on with the old ones."""
        merged = 0
        while (some := chosen(self._table.files())) is not None:
            if not self._merged(some):
                break
            merged += len(some)
        self._table.drop_unused(KEPT)
        return merged

    def _merged(self, some: list[TableFile]) -> bool:
        """Puts a file for each partition in the place of many; False if another writer did."""
        rows = self._frame(some)
        rows = rows.repartition(*self._by) if self._by else rows.coalesce(1)
        new = table_files.write(rows, self._folder, self._by, "merged")
        if sum(one.rows or 0 for one in new) != sum(one.rows or 0 for one in some):
            raise SprocketError(f"files of {self._folder} changed while they were merged")
        try:
            self._table.exchange(some, new)
        except SprocketError as error:
            logger.warning("small files of %s stay for now: %s", self._folder, error)
            return False
        return True

    def _frame(self, files: Sequence[TableFile], session: SparkSession | None = None) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        session = session or self._session
        schema = from_arrow_schema(self._table.schema(), prefer_timestamp_ntz=True)
        if not files:
            return session.createDataFrame([], schema)
        paths = [self._folder.inner(one.name) for one in files]
        return session.read.schema(schema).parquet(*paths)

    def _remove_others(self, number: int, files: Sequence[TableFile]) -> None:
        """Removes folders of tries of a batch that was committed by another try."""
        used = {one.name.split("/")[2] for one in files}
        for name in self._folder.names(f"{DATA}/{number}"):
            if name not in used:
                self._folder.remove(f"{DATA}/{number}/{name}")
