"""Opens the folder of a pipeline in the format that its settings, or the folder itself, name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.batch_folders import BatchFolders
from sprocket.spark.pipelines.parts.batches import MARK, Batches, BatchLayout
from sprocket.spark.pipelines.parts.folder import HIDDEN, Folder
from sprocket.spark.pipelines.parts.job import setting
from sprocket.spark.pipelines.tables.delta import DeltaTable
from sprocket.spark.pipelines.tables.iceberg import IcebergTable
from sprocket.spark.pipelines.tables.table import LakeTable
from sprocket.spark.pipelines.tables.table_layout import TableLayout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARQUET = "parquet"
FORMATS = ("parquet", "delta", "iceberg")
#: What the folder's rows are, and how they are partitioned; saved when it is begun.
_ABOUT = f"{HIDDEN}/table.json"


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Settings of pipelines whose folder may be a table."""

    form: str = setting(
        "Format of the folder: plain Parquet, or a table that other engines read.",
        option="format",
        default=PARQUET,
        choices=FORMATS,
    )
    compact_every: int = setting(
        "Merge small files of a table after so many micro-batches; 0 for never.",
        option="compact-every",
        kind="whole",
        default=0,
    )
    storage: tuple[str, ...] = setting(
        "Option NAME=VALUE of the table's library for an object store; may be repeated.",
        option="storage",
        kind="words",
        default=(),
    )

    registered: str | None = setting(
        "Iceberg table in a catalog of pyiceberg's configuration: catalog.namespace.table. Without "
        "it the folder alone is the table.",
        option="catalog-table",
        default=None,
    )

    def opened(
        self, session: SparkSession, path: str, by: Sequence[str], *, before: Sequence[str]
    ) -> Batches:
        """The folder, begun in this format or continued in it.

        Args:
            by: columns by which it is partitioned.
            before: how folders were partitioned that do not say it: Parquet of older releases.

        Raises:
            UsageError: the folder has another format or other partitions, or a package is missing.
        """
        if self.form == PARQUET and (self.compact_every or self.storage):
            raise UsageError("compact-every and storage are for tables: --format delta")
        folder = Folder(session, path)
        wanted: dict[str, Any] = {"format": self.form, "by": list(by)}
        if self.registered is not None:
            if self.form != "iceberg":
                raise UsageError("catalog-table is for tables of Iceberg: --format iceberg")
            wanted["table"] = self.registered
        known = folder.read(_ABOUT)
        if known is None and folder.read(MARK) is not None:
            known = {"format": PARQUET, "by": list(before)}
        if known is not None and known != wanted:
            raise UsageError(
                f"{folder} was begun as {_words(known)}, not as {_words(wanted)}: give a new folder"
            )
        batches = Batches(folder, self._layout(session, folder, by))
        batches.check()
        if known is None:
            folder.replace(_ABOUT, wanted)
        return batches

    def _layout(self, session: SparkSession, folder: Folder, by: Sequence[str]) -> BatchLayout:
        if self.form == PARQUET:
            return BatchFolders(session, folder, by=by)
        table = table_of(self.form, folder, by, pairs(self.storage), self.registered)
        return TableLayout(session, folder, table, by=by, compact_every=self.compact_every)


def open_table(
    session: SparkSession, path: str, form: str, by: Sequence[str], storage: Sequence[str]
) -> TableLayout:
    """A table that has no batches of a query; begun in this format or continued in it.

    Raises:
        UsageError: the folder has something else, or a package is missing.
    """
    folder = Folder(session, path)
    wanted = {"format": form, "by": list(by)}
    known = folder.read(_ABOUT)
    table = table_of(form, folder, by, pairs(storage))
    if known is None and folder.names():
        raise UsageError(f"{folder} holds something else: give a folder of its own")
    if known is not None and known != wanted:
        raise UsageError(f"{folder} was begun as {_words(known)}: give a new folder")
    if known is None:
        folder.replace(_ABOUT, wanted)
    return TableLayout(session, folder, table, by=by)


def read_back(
    session: SparkSession,
    path: str,
    *,
    before: Sequence[str] = (),
    storage: Mapping[str, str] | None = None,
) -> Batches:
    """A folder that was begun, in whatever format it has; `before` as for `opened`."""
    folder = Folder(session, path)
    known = folder.read(_ABOUT) or {"format": PARQUET, "by": list(before)}
    if known["format"] == PARQUET:
        return Batches(folder, BatchFolders(session, folder, by=known["by"]))
    table = table_of(str(known["format"]), folder, known["by"], storage or {}, known.get("table"))
    return Batches(folder, TableLayout(session, folder, table, by=known["by"]))


def table_of(
    form: str,
    folder: Folder,
    by: Sequence[str],
    storage: Mapping[str, str],
    registered: str | None = None,
) -> LakeTable:
    """A table of a format in a folder."""
    if form == "delta":
        return DeltaTable(folder.path, by, storage)
    if form == "iceberg":
        return IcebergTable(folder, by, storage, registered)
    raise UsageError(f"a table is one of {', '.join(FORMATS[1:])}: {form!r}")


def pairs(words: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE words as a table."""
    found = {}
    for word in words:
        name, separator, value = word.partition("=")
        if not separator or not name.strip():
            raise UsageError(f"an option is NAME=VALUE, not {word!r}")
        found[name.strip()] = value
    return found


def _words(about: Mapping[str, Any]) -> str:
    by = about.get("by")
    parts = f", by {', '.join(by)}" if isinstance(by, list) and by else ""
    return f"{about.get('format')}{parts}"
