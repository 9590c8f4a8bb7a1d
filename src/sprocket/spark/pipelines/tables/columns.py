"""Checks a frame's columns for a table, and describes them in Arrow's types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

#: Delta's log refuses these in names of columns; so other writers could not change the table.
_FORBIDDEN = " ,;{}()\n\t="
_NAME_LENGTH_MAX = 255
#: From the year 1 to 9999, microseconds since 1970.
_CALENDAR = (-62_135_596_800_000_000, 253_402_300_799_999_999)
#: What a table can be partitioned by: these have one way to be written in all formats.
_PARTITION_TYPES = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "date")


def arrow_columns(schema: StructType) -> pa.Schema:
    """A frame's columns in Arrow's types, each of them nullable, so that later ones may lack them.

    Raises:
        UsageError: two names differ by capitals only, or a name or type cannot be in a table.
    """
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        made = to_arrow_schema(schema, timezone="UTC")
    except (PySparkException, ValueError) as error:
        raise UsageError(f"a table cannot have these columns: {error}") from None
    _check(made, "")
    return pa.schema([_nullable(field) for field in made])


def check_partition(schema: StructType, by: Sequence[str]) -> None:
    """Raises UsageError unless a table with these columns can be partitioned by some of them."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name in by:
        if name not in types:
            raise UsageError(f"no column {name} to partition by; there are: {', '.join(types)}")
        if types[name] not in _PARTITION_TYPES:
            raise UsageError(
                f"a table is partitioned by texts, whole numbers, truth values and dates; {name} "
                f"is {types[name]}"
            )
    if len(set(by)) != len(by):
        raise UsageError(f"a column to partition by is named twice: {', '.join(by)}")
    if by and len(by) == len(types):
        raise UsageError("a table needs a column besides those it is partitioned by")


def in_calendar(frame: DataFrame, *names: str) -> DataFrame:
    """The frame with null for times before the year 1 and after 9999, which engines cannot read.

    A client writes into its messages what it likes as the time of sending.
    """
    from pyspark.sql import functions as f

    for name in names:
        at = f.col(name)
        frame = frame.withColumn(name, f.when(f.unix_micros(at).between(*_CALENDAR), at))
    return frame


def name_fault(name: str) -> str | None:
    """Why a table cannot have a column of a name; None if it can."""
    is_short = 0 < len(name.encode(errors="replace")) <= _NAME_LENGTH_MAX
    if is_short and not any(one in _FORBIDDEN for one in name) and _is_text(name):
        return None
    return (
        f"a table cannot have a column of the name {name[:80]!a}: no blanks, none of "
        f"{_FORBIDDEN.strip()}, and 255 bytes at most"
    )


def _is_text(name: str) -> bool:
    """Whether it has no half of a surrogate pair, which JSON can name."""
    return not any("\ud800" <= one <= "\udfff" for one in name)


def _check(fields: Iterable[Any], inside: str) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        name = f"{inside}{field.name}"
        other = seen.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise UsageError(
                f"columns {inside}{other} and {name} differ by capitals only, which is one column "
                "in a table: give a schema with one of them"
            )
        fault = name_fault(field.name)
        if fault is not None:
            raise UsageError(f"{fault}; give a schema without it")
        _check(_inside(field.type), f"{name}.")


def _inside(kind: Any) -> list[Any]:
    """The fields in a type."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_list(kind):
        return _inside(kind.value_type)
    if pa.types.is_map(kind):
        return [*_inside(kind.key_type), *_inside(kind.item_type)]
    return []


def _nullable(field: Any) -> Any:
    import pyarrow as pa

    return pa.field(field.name, _open(field.type), nullable=True)


def _open(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([_nullable(one) for one in kind])
    if pa.types.is_list(kind):
        return pa.list_(_open(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _open(kind.item_type))
    return kind
