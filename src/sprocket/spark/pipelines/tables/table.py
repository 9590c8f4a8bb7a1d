"""What pipelines need of a table format: add files with a batch's number, exchange them, list them.

Spark's executors write Parquet files below `data/`, where nobody sees them, and the driver commits
their names. A commit carries the number of its batch, so a batch is committed once, whoever tries
it how often. Readers see the files of one commit together.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sprocket.base.errors import SprocketError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

#: Where the files of tables lie in their folder.
DATA = "data"
#: A value of a column by which a table is partitioned.
PartitionValue = str | int | bool | datetime.date | None


class TableConflict(SprocketError):
    """Another writer changed the table meanwhile; nothing was committed."""


@dataclass(frozen=True)
class ColumnRange:
    """What a file holds of a column.

    Attributes:
        lowest, highest: None where they are unknown.
        nulls: how many values are null.
    """

    lowest: Any
    highest: Any
    nulls: int


@dataclass(frozen=True)
class TableFile:
    """A Parquet file of a table.

    Attributes:
        name: its path from the table's folder on.
        size: bytes.
        changed_ms: when it was written, ms since 1970.
        rows: how many it has; None if the table does not say.
        partition: by column; the same for all its rows.
        ranges: what is known of the values of its columns, for readers that skip files.
    """

    name: str
    size: int
    changed_ms: int
    rows: int | None
    partition: Mapping[str, PartitionValue]
    ranges: Mapping[str, ColumnRange]


class LakeTable(Protocol):
    """A table of one format."""

    def exists(self) -> bool:
        """Whether it has been created."""
        ...

    def last(self, query: str) -> int:
        """The last batch of a query that was committed; -1 for none."""
        ...

    def schema(self) -> pa.Schema:
        """Its columns now."""
        ...

    def append(
        self,
        files: Sequence[TableFile],
        columns: pa.Schema,
        query: str,
        number: int,
        instead_of: Sequence[TableFile] = (),
    ) -> None:
        """Adds files as one batch; creates the table, or adds columns, where needed.

        Args:
            instead_of: files that leave the table with the same commit.

        Raises:
            TableConflict: another writer was faster: the batch is there, or those files are not.
            UsageError: the columns do not fit the table's.
        """
        ...

    def files(self) -> list[TableFile]:
        """Its files now.

        Raises:
            UsageError: another engine rewrote it in a way that only a reader of its format knows.
        """
        ...

    def exchange(self, old: Sequence[TableFile], new: Sequence[TableFile]) -> None:
        """Puts files in the place of others that have the same rows.

        Raises:
            TableConflict: another writer was faster.
        """
        ...

    def drop_unused(self, older_than: datetime.timedelta) -> int:
        """Removes files that no state of the table younger than that has; returns how many."""
        ...


def check_present(old: Sequence[TableFile], there: Iterable[str], table: str) -> None:
    """Raises TableConflict unless all files are in a table, by their names."""
    gone = {one.name for one in old}.difference(there)
    if gone:
        raise TableConflict(f"{table} was changed by another writer: {min(gone)} is gone")


def check_new(number: int, last: int, table: str) -> None:
    """Raises TableConflict if a batch is in a table already: another driver runs the same query."""
    if number <= last:
        raise TableConflict(
            f"{table} was changed by another writer at the same time: batch {number} is in it"
        )


def added_columns(have: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a schema has columns, also inside of structs, that a table lacks.

    Raises:
        UsageError: a column has another type than in the table.
    """
    return _adds(list(have), list(wanted), "")


def _adds(have: list[Any], wanted: list[Any], inside: str) -> bool:
    import pyarrow as pa

    known = {field.name.lower(): field for field in have}
    is_more = False
    for field in wanted:
        old = known.get(field.name.lower())
        if old is None:
            is_more = True
        elif pa.types.is_struct(field.type) and pa.types.is_struct(old.type):
            is_more |= _adds(list(old.type), list(field.type), f"{inside}{field.name}.")
        elif not _is_same(old.type, field.type):
            raise UsageError(
                f"column {inside}{field.name} is {old.type} in the table, and would be "
                f"{field.type}: a column keeps its type; give a new folder, or another column"
            )
    return is_more


def _is_same(one: Any, other: Any) -> bool:
    """Whether types are the same but for names inside of lists and maps, and large offsets."""
    import pyarrow as pa

    for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view):
        if is_kind(one):
            return bool(_is_text(other))
    if pa.types.is_list(one) or pa.types.is_large_list(one):
        return hasattr(other, "value_type") and _is_same(one.value_type, other.value_type)
    if pa.types.is_map(one):
        return bool(
            pa.types.is_map(other)
            and _is_same(one.key_type, other.key_type)
            and _is_same(one.item_type, other.item_type)
        )
    if pa.types.is_struct(one):
        names = {f.name for f in one}
        return bool(
            pa.types.is_struct(other)
            and names == {f.name for f in other}
            and all(_is_same(f.type, other.field(f.name).type) for f in one)
        )
    if pa.types.is_binary(one) or pa.types.is_large_binary(one):
        return bool(pa.types.is_binary(other) or pa.types.is_large_binary(other))
    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return (one.tz is None) == (other.tz is None)
    is_same: bool = one == other
    return is_same


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(one(kind) for one in kinds)
