"""An Iceberg table, by the library `pyiceberg`, without Iceberg's jars for Spark.

A commit of a batch sets a property of the table, `sprocket.batch.QUERY`, to the batch's number in
the same change that adds its files, and writes both into the snapshot's summary for people. The
property outlives snapshots that expire. `pyiceberg` would repeat a change that another writer was
faster than; that is switched off, since the other may have committed the same batch.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.parts.folder import Folder
from sprocket.spark.pipelines.tables.iceberg_folder import IcebergFolder
from sprocket.spark.pipelines.tables.table import (
    DATA,
    PartitionValue,
    TableConflict,
    TableFile,
    added_columns,
    check_new,
    check_present,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction

_BATCH = "sprocket.batch."
_PROPERTIES = {
    "commit.retry.num-retries": "0",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "write.parquet.compression-codec": "zstd",
}
#: Ids of partition fields begin here (Iceberg's spec, "Partition Evolution").
_FIELD_ID = 1000


class IcebergTable:
    """See `LakeTable`.

    Args:
        by: partition columns of a table that is created, each by its values.
        storage: properties of `pyiceberg` for an object store, such as s3.region.
        registered: `catalog.namespace.table` of a catalog in `pyiceberg`'s configuration; None
            for a folder without a catalog.
    """

    def __init__(
        self,
        folder: Folder,
        by: Sequence[str],
        storage: Mapping[str, str],
        registered: str | None = None,
    ) -> None:
        check_pyiceberg()
        self._folder = folder
        self._by = tuple(by)
        self._catalog: Any = IcebergFolder(folder, storage)
        self._name: tuple[str, ...] = ()
        if registered is not None:
            self._catalog, self._name = _catalog(registered, storage)

    def exists(self) -> bool:
        """See `LakeTable`."""
        if self._name:
            return bool(self._catalog.table_exists(self._name))
        return bool(self._catalog.exists())

    def last(self, query: str) -> int:
        """See `LakeTable`."""
        if not self.exists():
            return -1
        return int(self._open().properties.get(_BATCH + query, -1))

    def schema(self) -> pa.Schema:
        """See `LakeTable`."""
        return self._open().schema().as_arrow()

    def append(
        self,
        files: Sequence[TableFile],
        columns: pa.Schema,
        query: str,
        number: int,
        instead_of: Sequence[TableFile] = (),
    ) -> None:
        """See `LakeTable`."""
        if not self.exists():
            self._create(columns)
        table = self._open()
        check_new(number, int(table.properties.get(_BATCH + query, -1)), str(self._folder))
        with _change(table) as change:
            if added_columns(table.schema().as_arrow(), columns):
                with change.update_schema() as update:
                    update.union_by_name(columns)
            change.set_properties({_BATCH + query: str(number)})
            note = {"sprocket.query": query, "sprocket.batch": str(number)}
            self._put(table, change, instead_of, files, note)

    def files(self) -> list[TableFile]:
        """See `LakeTable`."""
        table = self._open()
        names = [field.name for field in table.spec().fields]
        return [
            self._file(table, task.file, names, task.delete_files)
            for task in table.scan().plan_files()
        ]

    def exchange(self, old: Sequence[TableFile], new: Sequence[TableFile]) -> None:
        """See `LakeTable`."""
        table = self._open()
        with _change(table) as change:
            self._put(table, change, old, new, {"sprocket.merged": "true"})

    def _put(
        self,
        table: Table,
        change: Transaction,
        old: Sequence[TableFile],
        new: Sequence[TableFile],
        note: dict[str, str],
    ) -> None:
        """Adds a snapshot with files that come and go to a change."""
        snapshot = change.update_snapshot(snapshot_properties=note)
        if not old:
            with snapshot.fast_append() as appended:
                for one in self._data_files(change, new):
                    appended.append_data_file(one)
            return
        start = f"{table.location()}/"
        there = {
            task.file.file_path.removeprefix(start): task.file for task in table.scan().plan_files()
        }
        check_present(old, there, str(self._folder))
        with snapshot.overwrite() as rewritten:
            for one in old:
                rewritten.delete_data_file(there[one.name])
            for made in self._data_files(change, new):
                rewritten.append_data_file(made)

    def drop_unused(self, older_than: datetime.timedelta) -> int:
        """See `LakeTable`."""
        before = datetime.datetime.now(datetime.UTC) - older_than
        table = self._open()
        table.maintenance.expire_snapshots().older_than(before).commit()
        table = self._open()
        used = _referenced(table)
        removed = 0
        for one in self._folder.files(DATA):
            is_old = one.changed_ms < before.timestamp() * 1000
            if is_old and f"{table.location()}/{one.name}" not in used:
                self._folder.remove(one.name)
                removed += 1
        return removed

    def _open(self) -> Table:
        found: Table = self._catalog.load_table(self._name)
        return found

    def _create(self, columns: pa.Schema) -> None:
        from pyiceberg.catalog import Catalog
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import assign_fresh_schema_ids
        from pyiceberg.table.metadata import new_table_metadata
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
        from pyiceberg.transforms import IdentityTransform

        schema = assign_fresh_schema_ids(Catalog._convert_schema_if_needed(columns))
        spec = PartitionSpec(
            *(
                PartitionField(
                    schema.find_field(name).field_id, _FIELD_ID + at, IdentityTransform(), name
                )
                for at, name in enumerate(self._by)
            )
        )
        # Spark's Parquet has no ids of columns, so the table says by which names they are found.
        names = {"schema.name-mapping.default": schema.name_mapping.model_dump_json()}
        properties = {**_PROPERTIES, **names}
        if self._name:
            self._catalog.create_namespace_if_not_exists(self._name[:-1])
            self._catalog.create_table(
                self._name,
                schema=schema,
                location=self._folder.path,
                partition_spec=spec,
                properties=properties,
            )
        else:
            self._catalog.create(
                new_table_metadata(schema, spec, UNSORTED_SORT_ORDER, self._folder.path, properties)
            )

    def _data_files(self, change: Transaction, files: Iterable[TableFile]) -> list[DataFile]:
        from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
        from pyiceberg.typedef import Record

        metadata = change.table_metadata
        schema, spec = metadata.schema(), metadata.spec()
        names = [field.name for field in spec.fields]
        return [
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"{metadata.location}/{one.name}",
                file_format=FileFormat.PARQUET,
                partition=Record(*(_stored(one.partition[name]) for name in names)),
                record_count=one.rows,
                file_size_in_bytes=one.size,
                spec_id=metadata.default_spec_id,
                sort_order_id=None,
                equality_ids=None,
                key_metadata=None,
                **_bounds(schema, one),
            )
            for one in files
        ]

    def _file(
        self, table: Table, file: DataFile, names: Sequence[str], deletes: Iterable[Any]
    ) -> TableFile:
        name = file.file_path.removeprefix(f"{table.location()}/")
        if not name.startswith(f"{DATA}/") or any(True for _ in deletes):
            raise UsageError(
                f"{self._folder} was changed by another engine ({name}): read it with that"
            )
        values = {each: file.partition[at] for at, each in enumerate(names)}
        return TableFile(name, file.file_size_in_bytes, 0, file.record_count, values, {})


def check_pyiceberg() -> None:
    """Raises UsageError if `pyiceberg` is not installed."""
    try:
        import pyiceberg  # noqa: F401
    except ImportError:
        raise UsageError(
            "tables of Iceberg need the package pyiceberg: pip install 'sprocketmq[iceberg]'"
        ) from None


class _change:
    """A transaction that is committed at the end of the block, or not at all."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._made: Transaction = table.transaction()

    def __enter__(self) -> Transaction:
        return self._made

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        from pyiceberg.exceptions import CommitFailedException, ValidationException

        if error is not None:
            return
        try:
            self._made.commit_transaction()
        except (CommitFailedException, ValidationException) as failure:
            raise TableConflict(
                f"{self._table.location()} was changed by another writer at the same time: "
                f"{failure}"
            ) from failure


def _catalog(registered: str, storage: Mapping[str, str]) -> tuple[Any, tuple[str, ...]]:
    from pyiceberg.catalog import load_catalog

    name, *path = registered.split(".")
    if len(path) < 2 or not all((name, *path)):
        raise UsageError(f"a table of a catalog is catalog.namespace.table, not {registered!r}")
    try:
        return load_catalog(name, **storage), tuple(path)
    except (ValueError, ImportError) as error:
        raise UsageError(
            f"pyiceberg has no catalog {name} ({error}): it is set in ~/.pyiceberg.yaml or by "
            f"PYICEBERG_CATALOG__{name.upper()}__URI"
        ) from None


def _stored(value: PartitionValue) -> str | int | bool | None:
    from pyiceberg.utils.datetime import date_to_days

    return date_to_days(value) if isinstance(value, datetime.date) else value


def _bounds(schema: Schema, file: TableFile) -> dict[str, Any]:
    """Counts and bounds of columns by their ids."""
    from pyiceberg.conversions import to_bytes

    nulls, low, high = {}, {}, {}
    for name, known in file.ranges.items():
        field = schema.find_field(name)
        nulls[field.field_id] = known.nulls
        if known.lowest is not None:
            low[field.field_id] = to_bytes(field.field_type, known.lowest)
            high[field.field_id] = to_bytes(field.field_type, known.highest)
    counts = dict.fromkeys(nulls, file.rows)
    return {
        "value_counts": counts,
        "null_value_counts": nulls,
        "lower_bounds": low,
        "upper_bounds": high,
        "column_sizes": {},
        "nan_value_counts": {},
        "split_offsets": None,
    }


def _referenced(table: Table) -> set[str]:
    """Paths of all data files of all snapshots."""
    seen: set[str] = set()
    found: set[str] = set()
    for snapshot in table.snapshots():
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path not in seen:
                seen.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                found.update(entry.data_file.file_path for entry in entries)
    return found
