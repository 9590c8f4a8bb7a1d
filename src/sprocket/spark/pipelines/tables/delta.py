"""A Delta table in a folder, by the library `deltalake`, without Delta's jars for Spark.

A commit of a batch has a transaction of the query: its id and the batch's number. Delta keeps the
last number of each query in its log, and refuses a second commit that was prepared beside another
of the same query (Delta's protocol, "Transaction Identifiers").
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sprocket.base.errors import SprocketError, UsageError
from sprocket.spark.pipelines.tables.table import (
    DATA,
    ColumnRange,
    PartitionValue,
    TableConflict,
    TableFile,
    added_columns,
    check_new,
    check_present,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable as Opened

_APP = "sprocket-"


class DeltaTable:
    """See `LakeTable`.

    Args:
        path: its folder, as Spark names it.
        by: partition columns of a table that is created.
        storage: options of `deltalake` for an object store, such as AWS_REGION.
    """

    def __init__(self, path: str, by: Sequence[str], storage: Mapping[str, str]) -> None:
        check_deltalake()
        # Hadoop's name of S3; Delta's library knows the others by the same names.
        self._path = path.replace("s3a://", "s3://", 1)
        self._by = list(by)
        self._storage = dict(storage)

    def exists(self) -> bool:
        """See `LakeTable`."""
        from deltalake import DeltaTable as Table

        return bool(Table.is_deltatable(self._path, storage_options=self._storage or None))

    def last(self, query: str) -> int:
        """See `LakeTable`."""
        if not self.exists():
            return -1
        found = self._open().transaction_version(_APP + query)
        return -1 if found is None else int(found)

    def schema(self) -> pa.Schema:
        """See `LakeTable`."""
        import pyarrow as pa

        return pa.schema(self._open().schema().to_arrow())

    def append(
        self,
        files: Sequence[TableFile],
        columns: pa.Schema,
        query: str,
        number: int,
        instead_of: Sequence[TableFile] = (),
    ) -> None:
        """See `LakeTable`."""
        from deltalake import CommitProperties, Transaction

        table = self._opened_for(columns)
        last = table.transaction_version(_APP + query)
        check_new(number, -1 if last is None else int(last), self._path)
        commit = CommitProperties(
            custom_metadata={"sprocket.batch": str(number)},
            app_transactions=[Transaction(_APP + query, number)],
            max_commit_retries=0,
        )
        self._commit(table, self._actions(table, instead_of, files, changes=True), commit)

    def files(self) -> list[TableFile]:
        """See `LakeTable`."""
        return self._files(self._open())

    def exchange(self, old: Sequence[TableFile], new: Sequence[TableFile]) -> None:
        """See `LakeTable`."""
        from deltalake import CommitProperties

        table = self._open()
        actions = self._actions(table, old, new, changes=False)
        self._commit(table, actions, CommitProperties(max_commit_retries=0))

    def drop_unused(self, older_than: datetime.timedelta) -> int:
        """See `LakeTable`."""
        hours = int(older_than.total_seconds() // 3600)
        removed = self._open().vacuum(
            retention_hours=hours, dry_run=False, enforce_retention_duration=False
        )
        return len(removed)

    def _open(self) -> Opened:
        from deltalake import DeltaTable as Table

        return Table(self._path, storage_options=self._storage or None)

    def _files(self, table: Opened) -> list[TableFile]:
        import pyarrow as pa

        if table.deletion_vectors().read_all().num_rows:
            raise UsageError(
                f"{self._path} has deletion vectors of another engine: read it with that"
            )
        rows = pa.table(table.get_add_actions(flatten=False)).to_pylist()
        return [self._file(row) for row in rows]

    def _opened_for(self, columns: pa.Schema) -> Opened:
        """The table, created or with new columns if need be."""
        from deltalake import DeltaTable as Table
        from deltalake import Schema

        if not self.exists():
            return Table.create(
                self._path,
                schema=Schema.from_arrow(columns),
                partition_by=self._by or None,
                storage_options=self._storage or None,
            )
        table = self._open()
        if added_columns(self.schema(), columns):
            table.alter.add_columns(list(Schema.from_arrow(columns).fields))
            table = self._open()
        return table

    def _actions(
        self, table: Opened, old: Sequence[TableFile], new: Sequence[TableFile], *, changes: bool
    ) -> list[Any]:
        """What the log is told: files that come and go, and whether that changes rows."""
        from deltalake.transaction import RemoveAction

        if old:
            check_present(old, (one.name for one in self._files(table)), self._path)
        now_ms = time.time_ns() // 1_000_000
        made: list[Any] = [_added(one, is_new=changes) for one in new]
        for one in old:
            values = _texts(one.partition)
            made.append(RemoveAction(one.name, changes, now_ms, one.size, values))
        return made

    def _commit(self, table: Opened, actions: list[Any], commit: Any) -> None:
        from deltalake.exceptions import CommitFailedError, DeltaError

        by = list(table.metadata().partition_columns)
        try:
            table.create_write_transaction(
                actions, "append", table.schema(), by, commit_properties=commit
            )
        except CommitFailedError as error:
            raise TableConflict(
                f"{self._path} was changed by another writer at the same time: {error}"
            ) from error
        except DeltaError as error:
            raise SprocketError(f"{self._path} cannot be written: {error}") from error

    def _file(self, row: Mapping[str, Any]) -> TableFile:
        name = unquote(row["path"])
        if not name.startswith(f"{DATA}/"):
            raise UsageError(
                f"{self._path} was rewritten by another engine ({name}): read it with that"
            )
        partition = row.get("partition") or {}
        return TableFile(
            name, row["size_bytes"], row["modification_time"], row["num_records"], partition, {}
        )


def check_deltalake() -> None:
    """Raises UsageError if `deltalake` is not installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError:
        raise UsageError(
            "tables of Delta need the package deltalake: pip install 'sprocketmq[delta]'"
        ) from None


def _added(file: TableFile, *, is_new: bool) -> Any:
    from deltalake.transaction import AddAction

    return AddAction(
        file.name,
        file.size,
        _texts(file.partition),
        file.changed_ms,
        is_new,
        json.dumps(_statistics(file)),
    )


def _texts(partition: Mapping[str, PartitionValue]) -> dict[str, str | None]:
    """Partition values as Delta's log writes them; an empty text is null there, by its protocol."""
    return {name: _text(value) for name, value in partition.items()}


def _text(value: PartitionValue) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _statistics(file: TableFile) -> dict[str, Any]:
    """Delta's statistics of a file ("Per-file Statistics" of its protocol)."""
    known = {name: one for name, one in file.ranges.items() if name not in file.partition}
    bounded = {name: one for name, one in known.items() if one.lowest is not None}
    return {
        "numRecords": file.rows,
        "minValues": {name: _plain(one, one.lowest) for name, one in bounded.items()},
        "maxValues": {name: _plain(one, one.highest) for name, one in bounded.items()},
        "nullCount": {name: one.nulls for name, one in known.items()},
    }


def _plain(known: ColumnRange, value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%f") + ("Z" if value.tzinfo else "")
    return value.isoformat() if isinstance(value, datetime.date) else value
