"""Writes rows as Parquet files of a table, and reads what the driver must know from their ends.

A file holds rows of one partition. Files are named by a hash of it: whatever a topic, a tag or a
property contains, no path is made of it. Partition columns are in the files too, and no path looks
like `name=value`, of which some readers would make a column.
"""

from __future__ import annotations

import contextlib
import datetime
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import SprocketError, UsageError
from sprocket.spark.pipelines.parts.batch_folders import OPEN_FILES
from sprocket.spark.pipelines.parts.folder import FileInFolder, Folder
from sprocket.spark.pipelines.tables.table import DATA, ColumnRange, PartitionValue, TableFile

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData
    from pyspark.sql import DataFrame, SparkSession

_HASHED = "sprocket_part"
_HASH_LENGTH = 32
#: Most files of one batch. A column with a value for each row would make as many files as rows.
FILES_MAX = 10_000
#: The end of a Parquet file: the length of its footer in four bytes, and a mark of four.
_END = 8
_FIRST_READ = 64 * 1024
#: Longer texts are left out of ranges: a long one is of no use to readers that skip files.
_TEXT_MAX = 256


def write(rows: DataFrame, folder: Folder, by: Sequence[str], label: str) -> list[TableFile]:
    """Writes rows to a new folder of the table, and describes the files.

    Args:
        by: partition columns.
        label: the folder in `data/` that gets the new folder.

    Raises:
        UsageError: the partition columns have too many values.
    """
    from pyspark.sql import functions as f

    inside = f"{DATA}/{label}/{uuid.uuid4().hex}"
    session = rows.sparkSession
    session.conf.set(*OPEN_FILES)
    if by:
        values = f.to_json(f.struct(*(f.col(name).cast("string") for name in by)))
        rows = rows.withColumn(_HASHED, f.substring(f.sha2(values, 256), 1, _HASH_LENGTH))
    # Times as other engines read them, not as Hive did.
    with session_setting(session, "spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"):
        writer = rows.write.mode("errorifexists")
        (writer.partitionBy(_HASHED) if by else writer).parquet(folder.inner(inside))
    return _described(session, folder, _flat(folder, inside), by)


def _flat(folder: Folder, inside: str) -> list[FileInFolder]:
    """The Parquet files that Spark wrote below a folder, moved out of their folders of hashes."""
    listed = [one for one in folder.files(inside) if one.name.endswith(".parquet")]
    if len(listed) > FILES_MAX:
        folder.remove(inside)
        raise UsageError(
            f"a batch would make {len(listed):,} files, since its rows have so many partitions: "
            "partition by columns with few values"
        )
    found, folders = [], set()
    for one in listed:
        parts = one.name.removeprefix(f"{inside}/").split("/")
        if len(parts) > 1:
            name = f"{inside}/{parts[0].removeprefix(f'{_HASHED}=')}-{parts[1]}"
            folder.move(one.name, name)
            folders.add(parts[0])
            one = one._replace(name=name)
        found.append(one)
    for empty in folders:
        folder.remove(f"{inside}/{empty}")
    return found


def _described(
    session: SparkSession, folder: Folder, listed: Sequence[FileInFolder], by: Sequence[str]
) -> list[TableFile]:
    """What the table must know of files; those without rows are removed."""
    found = []
    for one in listed:
        footer = footer_of(folder, one)
        if not footer.num_rows:
            folder.remove(one.name)
            continue
        ranges = ranges_of(footer)
        partition = {name: _value(session, folder, one, ranges, footer, name) for name in by}
        found.append(TableFile(*one, footer.num_rows, partition, ranges))
    return found


def footer_of(folder: Folder, file: FileInFolder) -> FileMetaData:
    """The footer of a Parquet file; only the end of the file is read."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    tail = folder.tail(file, _FIRST_READ)
    length = int.from_bytes(tail[-_END:-4], "little") + _END
    if length > len(tail):
        tail = folder.tail(file, length)
    return parquet.read_metadata(pa.BufferReader(b"PAR1" + tail))


def ranges_of(footer: FileMetaData) -> dict[str, ColumnRange]:
    """What a footer says of the columns at the top that have a plain type."""
    found: dict[str, ColumnRange] = {}
    unknown: set[str] = set()
    for group in range(footer.num_row_groups):
        row_group = footer.row_group(group)
        for at in range(row_group.num_columns):
            column = row_group.column(at)
            name = column.path_in_schema
            made = _range(column, row_group.num_rows) if "." not in name else None
            if made is None or name in unknown:
                unknown.add(name)
                found.pop(name, None)
            else:
                found[name] = _joined(found.get(name), made)
    return found


def _range(column: Any, rows: int) -> ColumnRange | None:
    statistics = column.statistics if column.is_stats_set else None
    if statistics is None or not statistics.has_null_count:
        return None
    nulls = statistics.null_count
    if not statistics.has_min_max:
        return ColumnRange(None, None, nulls)
    # Python has no words for some of what a file may hold: years beyond 9999, broken UTF-8.
    with contextlib.suppress(ValueError, OverflowError):
        low, high = statistics.min, statistics.max
        if _is_short(low) and _is_short(high):
            return ColumnRange(low, high, nulls)
    return ColumnRange(None, None, nulls)


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _TEXT_MAX
    return isinstance(value, bool | int | datetime.date)  # a datetime is a date


def _joined(one: ColumnRange | None, other: ColumnRange) -> ColumnRange:
    if one is None:
        return other
    nulls = one.nulls + other.nulls
    if None in (one.lowest, other.lowest):
        return ColumnRange(None, None, nulls)
    return ColumnRange(min(one.lowest, other.lowest), max(one.highest, other.highest), nulls)


def _value(
    session: SparkSession,
    folder: Folder,
    file: FileInFolder,
    ranges: dict[str, ColumnRange],
    footer: FileMetaData,
    name: str,
) -> PartitionValue:
    """The one value that a partition column has in a file."""
    known = ranges.get(name)
    if known is not None and known.nulls == footer.num_rows:
        return None
    if known is not None and known.lowest is not None:
        if known.lowest != known.highest or known.nulls:
            raise SprocketError(f"{file.name} has rows of several partitions by {name}")
        value: PartitionValue = known.lowest
        return value
    # Parquet keeps no range of a long text, so the value is read.
    row = session.read.parquet(folder.inner(file.name)).select(name).first()
    return None if row is None else row[0]


@contextlib.contextmanager
def session_setting(session: SparkSession, name: str, value: str) -> Iterator[None]:
    """Sets one of Spark's settings for a block."""
    before = session.conf.get(name)
    session.conf.set(name, value)
    try:
        yield
    finally:
        session.conf.set(name, before or value)
