"""A folder to which each micro-batch is added as a whole, exactly once.

    orders-archive/…                            the rows, in one of the layouts below
    orders-archive/_sprocket/committed.json     the last whole batch, its query, and totals
    orders-archive/_sprocket/checkpoint/        Spark's checkpoint

How rows lie in the folder is a `BatchLayout`: Parquet in folders of the batches' numbers, or a
table of Delta or Iceberg. A batch that is repeated after a kill gets the same messages from Spark's
checkpoint. It replaces what its first try wrote, or is left out if that was committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.folder import HIDDEN, Folder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

logger = logging.getLogger(__name__)

#: The file that names the last whole batch.
MARK = f"{HIDDEN}/committed.json"
_CHECKPOINT = f"{HIDDEN}/checkpoint"
#: Spark writes a file here, named by its number, for each micro-batch that is done.
_DONE = f"{_CHECKPOINT}/commits"
#: Totals of a batch that is about to be committed.
_PENDING = f"{HIDDEN}/pending.json"


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


class BatchLayout(Protocol):
    """How the rows of batches lie in a folder."""

    def last(self, query: str) -> int:
        """The last batch of a query of which the layout itself knows that it is whole; -1: none."""
        ...

    def stage(self, rows: DataFrame, number: int) -> Any:
        """Writes the rows of a batch, so that readers do not see them yet or know what to skip."""
        ...

    def totals(self, staged: Any) -> Mapping[str, int]:
        """What was counted while a batch was staged, by name, besides the measures."""
        ...

    def commit(self, staged: Any, query: str, number: int) -> None:
        """Makes a staged batch visible as a whole."""
        ...

    def read(self, last: int) -> DataFrame:
        """The rows of whole batches, of which `last` is the last one."""
        ...


class Batches:
    """Writes and reads such a folder.

    Args:
        folder: the folder.
        layout: how its rows lie in it.
    """

    def __init__(self, folder: Folder, layout: BatchLayout) -> None:
        self.layout = layout
        self.folder = folder
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
        if self.is_empty:
            raise UsageError(f"{self.folder} holds nothing yet")
        return self.layout.read(self.mark.last)

    # Spark repeats a micro-batch that a crash cut off. What its first try staged is replaced, or
    # was committed by a layout that knows what it has: then only the mark is missing, and the
    # totals, which were saved before. The measures are observed while the rows are written, so
    # the rows are read once.
    def _append(self, frame: DataFrame, number: int, measures: Mapping[str, Column]) -> None:
        from pyspark.sql import Observation

        if number <= self.mark.last:
            return
        query = self._query()
        if number <= self.layout.last(query):
            found = self._pending(number)
        else:
            seen = Observation()
            named = [value.alias(name) for name, value in measures.items()]
            staged = self.layout.stage(frame.observe(seen, *named) if named else frame, number)
            found = {name: int(value or 0) for name, value in seen.get.items()} if named else {}
            found = {**found, **self.layout.totals(staged)}
            self.folder.replace(_PENDING, {"batch": number, "totals": found})
            self.layout.commit(staged, query, number)
        self.totals = _sum(self.totals, found)
        self._commit(Mark(query, number, _sum(self.mark.totals, found)))
        self.appended += 1

    def _pending(self, number: int) -> dict[str, int]:
        """The totals of a batch that was committed before its mark was written."""
        saved = self.folder.read(_PENDING) or {}
        if saved.get("batch") == number and isinstance(saved.get("totals"), dict):
            return _sum({}, saved["totals"])
        logger.warning("totals of batch %d in %s are gone: they are left out", number, self.folder)
        return {}

    def _restore_mark(self, measures: Mapping[str, Column]) -> None:
        """Makes a mark that was removed anew from the checkpoint and the rows in the folder.

        Spark's checkpoint names a batch as done only after its mark was written, so a checkpoint
        with such batches had a mark.
        """
        query = self._query()
        last = max(self._last_done(), self.layout.last(query) if query else -1)
        if self.mark.query or not query or last < 0:
            return
        self.mark = Mark(query, last)
        totals: dict[str, int] = {}
        if measures and not self.is_empty:
            row = self.read().agg(*(value.alias(name) for name, value in measures.items()))
            totals = _sum(
                {}, {name: value or 0 for name, value in row.collect()[0].asDict().items()}
            )
        logger.warning(
            "%s is gone; what the folder holds was counted again: %s",
            self.folder.inner(MARK), totals,
        )  # fmt: skip
        self._commit(Mark(query, last, totals))

    def _last_done(self) -> int:
        """The number of the last batch that Spark's checkpoint names as done; -1 for none."""
        names = self.folder.names(_DONE)
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _commit(self, mark: Mark) -> None:
        self.folder.replace(
            MARK, {"query": mark.query, "last": mark.last, "totals": dict(mark.totals)}
        )
        self.mark = mark

    def _load(self) -> Mark:
        found = self.folder.read(MARK)
        if found is None:
            return Mark()
        try:
            return Mark(str(found["query"]), int(found["last"]), _sum({}, found["totals"]))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UsageError(f"{self.folder.inner(MARK)} has a shape that is not ours") from None

    def _query(self) -> str:
        """The id in Spark's checkpoint; empty if there is none."""
        metadata: Any = self.folder.read(f"{_CHECKPOINT}/metadata")
        return str(metadata["id"]) if metadata and "id" in metadata else ""


def _sum(some: Mapping[str, int], more: Mapping[str, Any]) -> dict[str, int]:
    return {name: some.get(name, 0) + int(more.get(name, 0)) for name in {**some, **more}}
