"""Micro-batches of messages as changes of a table: the layout of `apply`.

    orders/…                              the table
    orders/_sprocket/columns.json         its columns and key, as given or learnt from messages
    orders/_sprocket/aside/batch=17/      messages of a micro-batch that could not be applied

Both are written before the table is changed, and again in the same way when a batch is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.changes import frames
from sprocket.spark.pipelines.changes.rows import ChangeReader
from sprocket.spark.pipelines.changes.shape import PLACE, RowShape
from sprocket.spark.pipelines.parts.folder import HIDDEN, Folder
from sprocket.spark.pipelines.tables.columns import arrow_columns
from sprocket.spark.pipelines.tables.merge_layout import MergeLayout, adaptive, cached
from sprocket.spark.pipelines.tables.table_layout import StagedFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

_COLUMNS = f"{HIDDEN}/columns.json"
#: Messages that could not be applied.
ASIDE = f"{HIDDEN}/aside"


class ChangeLayout:
    """See `BatchLayout`; rows are messages as they were read.

    Args:
        layout: of the table.
        reader: reads the messages.
        given: the columns and the key that are given, or what is known of them.
    """

    def __init__(
        self, folder: Folder, layout: MergeLayout, reader: ChangeReader, given: RowShape
    ) -> None:
        self._folder = folder
        self._layout = layout
        self._reader = reader
        self._shape = self._known(given)

    def last(self, query: str) -> int:
        """See `BatchLayout`."""
        return self._layout.last(query)

    def stage(self, rows: DataFrame, number: int) -> StagedFiles:
        """Writes what a micro-batch changes, and sets aside what cannot be applied."""
        with adaptive(rows.sparkSession), cached(rows) as messages:
            is_known = self._is_known()
            if is_known:
                self._save(self._shape)
            else:
                self._learn(messages)
            with cached(frames.effects_of(messages, self._reader, self._shape)) as found:
                counts = frames.counts(found)
                if not is_known or frames.NEW_COLUMNS not in counts:
                    return self._staged(found, number, counts)
            self._learn(messages)
            with cached(frames.effects_of(messages, self._reader, self._shape)) as found:
                return self._staged(found, number, frames.counts(found))

    def totals(self, staged: StagedFiles) -> Mapping[str, int]:
        """See `BatchLayout`."""
        return staged.totals

    def commit(self, staged: StagedFiles, query: str, number: int) -> None:
        """See `BatchLayout`."""
        self._layout.commit(staged, query, number)

    def read(self, last: int) -> DataFrame:
        """The rows of the table now."""
        return self._layout.read(last)

    def count(self) -> int:
        """How many rows the table has."""
        return self._layout.count()

    @property
    def shape(self) -> RowShape:
        """The table's columns and key."""
        return self._shape

    def _known(self, given: RowShape) -> RowShape:
        """What is saved; raises UsageError if what is given contradicts it."""
        saved = self._folder.read(_COLUMNS)
        if saved is None:
            return given
        known = RowShape.from_json(saved)
        if given.key and known.key and given.key != known.key:
            raise UsageError(
                f"{self._folder} has the key {', '.join(known.key)}: give a new folder for another"
            )
        if not given.is_given:
            return known
        for name, kind in known.columns.items():
            if given.columns.get(name) != kind:
                raise UsageError(
                    f"{self._folder} has the column {name} {kind}: a schema may add columns only"
                )
        return RowShape(given.columns, known.key or given.key, known.source, is_given=True)

    # Messages are read once more to learn from them, so that is left out while nothing is new.
    def _is_known(self) -> bool:
        shape = self._shape
        return bool(shape.columns and shape.key and (shape.source or self._reader.sources))

    def _learn(self, rows: DataFrame) -> None:
        """Adds the columns that messages have, and saves them."""
        seen = frames.seen(rows, self._reader)
        shape = self._shape.grown(seen, takes_any_source=bool(self._reader.sources))
        for name in shape.key:
            if shape.is_given and name not in shape.columns:
                raise UsageError(f"the key {name} of the messages is no column of the schema")
        for name in set(shape.refused) - set(self._shape.refused):
            logger.warning("column %a is not in the table: %s", name, shape.refused[name])
        self._save(shape)
        self._shape = shape

    def _save(self, shape: RowShape) -> None:
        if self._folder.read(_COLUMNS) != shape.as_json():
            self._folder.replace(_COLUMNS, shape.as_json())

    def _staged(self, found: DataFrame, number: int, counts: dict[str, int]) -> StagedFiles:
        self._set_aside(found, number, counts)
        staged = self._merged(found, number, counts)
        return staged._replace(totals={**staged.totals, **counts})

    def _set_aside(self, found: DataFrame, number: int, counts: Mapping[str, int]) -> None:
        place = f"{ASIDE}/batch={number}"
        if not counts["aside"]:
            self._folder.remove(place)
            return
        kept = ("topic", "broker", "queue_id", "queue_offset", "step", "reason", "body")
        rows = found.where("effect = 'aside'").select(*kept).coalesce(1)
        rows.write.mode("overwrite").parquet(self._folder.inner(place))

    def _merged(self, found: DataFrame, number: int, counts: dict[str, int]) -> StagedFiles:
        if not counts["upserts"] + counts["deletes"]:
            columns: Any = found.select("row.*").schema
            return StagedFiles([], arrow_columns(columns))
        batch = frames.folded(found, self._shape)
        return self._layout.merge(batch, number, key=self._shape.key, place=PLACE)
