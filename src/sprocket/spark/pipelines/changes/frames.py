"""Messages of a micro-batch as changes of rows, on Spark's executors.

Bodies are read in Python, a batch of Arrow at a time; which change of a key is the last one, and
what a row has of earlier ones, Spark finds by the places of the messages.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sprocket.base.errors import UsageError
from sprocket.spark.pipelines.changes.fitting import fit
from sprocket.spark.pipelines.changes.rows import NEW_COLUMN, ChangeReader, effects, seen_columns
from sprocket.spark.pipelines.changes.shape import COLUMNS_MAX, PLACE, RowShape, SeenColumn
from sprocket.spark.pipelines.parts.bodies import struct
from sprocket.spark.pipelines.tables.columns import name_fault
from sprocket.spark.pipelines.tables.merge_layout import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from sprocket.spark.pipelines.changes.rows import RowEffect

#: What is read of messages.
COLUMNS = (
    "topic string, broker string, queue_id int, queue_offset bigint, key string, body binary, "
    "store_timestamp timestamp"
)
_READ = ("topic", "broker", "queue_id", "queue_offset", "key", "body")
_SEEN = "source string, key array<string>, name string, kind string, stored bigint, position int"
_EFFECT = (
    "topic string, broker string, queue_id int, queue_offset bigint, step int, "
    "changed_at timestamp, effect string, reason string, body binary, absent array<string>"
)
#: Rows that a task hands to Spark at a time, and about the most bytes of bodies among them.
_ROWS, _BYTES = 10_000, 16 * 1024 * 1024
#: Most columns that one task tells of.
_SEEN_MAX = 10 * COLUMNS_MAX
#: Names of totals by effect; those of kinds of messages that are set aside begin with the other.
_COUNTED = {"upsert": "upserts", "delete": "deletes", "aside": "aside", "left out": "left_out"}
ASIDE_BECAUSE = "aside: "
#: The total of changes with columns that the shape does not have yet.
NEW_COLUMNS = f"{ASIDE_BECAUSE}{NEW_COLUMN}"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def given_shape(ddl: str, key: Iterable[str]) -> RowShape:
    """The shape of a table whose columns are given as DDL: `id bigint, amount decimal(20,2)`.

    Raises:
        UsageError: a column has a type that is not filled from messages, or the key is no column.
    """
    columns = {field.name: field.dataType.simpleString() for field in struct(ddl).fields}
    for name, kind in columns.items():
        try:
            fit(kind)
        except ValueError:
            raise UsageError(f"column {name} cannot be {kind}: give it a plain type") from None
        if (fault := name_fault(name)) is not None:
            raise UsageError(fault)
        if name.lower() == PLACE:
            raise UsageError(f"the table has another column {PLACE}")
    for name in key:
        if name not in columns:
            raise UsageError(f"the key {name} is no column of the schema: {', '.join(columns)}")
    return RowShape(columns, tuple(key), is_given=True)


def seen(frame: DataFrame, reader: ChangeReader) -> list[SeenColumn]:
    """The columns that messages have, those of older messages first."""
    from pyspark.sql import functions as f

    schema = _arrow_schema(_SEEN)

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        first: dict[SeenColumn, tuple[int, int]] = {}
        for batch in batches:
            told = (batch.column(name).to_pylist() for name in ("key", "body", "stored"))
            for key, body, stored in zip(*told, strict=True):
                for position, one in enumerate(seen_columns(body, key, reader)):
                    if one in first or len(first) < _SEEN_MAX:
                        at = (stored, position)
                        first[one] = min(at, first.get(one, at))
        rows = [(*one, *at) for one, at in first.items()]
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        arrays = [pa.array(some, one.type) for some, one in zip(columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    told = frame.select("key", "body", f.unix_micros("store_timestamp").alias("stored"))
    rows = told.mapInArrow(found, _SEEN).groupBy("source", "key", "name", "kind")
    ordered = rows.agg(f.min(f.struct("stored", "position")).alias("at"))
    some = ordered.orderBy("at", "source", "name", "kind").limit(_SEEN_MAX).collect()
    return [SeenColumn(row["source"], tuple(row["key"]), row["name"], row["kind"]) for row in some]


def effects_of(frame: DataFrame, reader: ChangeReader, shape: RowShape) -> DataFrame:
    """What messages do, in rows of the columns above and a struct `row` of the table's columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    # Without a column there is no change either, but Arrow's structs want one.
    columns = shape.columns or {"none": "boolean"}
    row = ", ".join(f"{quoted(name)}: {kind}" for name, kind in columns.items())
    schema = _arrow_schema(f"{_EFFECT}, row struct<{row}>")

    def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = zip(*(batch.column(name).to_pylist() for name in _READ), strict=True)
            yield from _batched(_rows(rows, reader, shape), schema)

    return frame.select(*_READ).mapInArrow(found, from_arrow_schema(schema))


def _arrow_schema(ddl: str) -> pa.Schema:
    """Made where Spark runs, since its workers cannot read DDL."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(struct(ddl), timezone="UTC")


def _rows(
    messages: Iterable[tuple[Any, ...]], reader: ChangeReader, shape: RowShape
) -> Iterator[tuple[Any, ...]]:
    for *place, keys, body in messages:
        for step, one in enumerate(effects(body, keys, reader, shape)):
            kept = body if one.effect == "aside" else None
            absent = list(one.absent) if one.absent else None
            at = _instant(one)
            yield (*place, step, at, one.effect, one.reason or None, kept, absent, one.values)


def _instant(one: RowEffect) -> datetime.datetime | None:
    if one.changed_ms is None:
        return None
    try:
        return _EPOCH + datetime.timedelta(milliseconds=one.changed_ms)
    except OverflowError:
        return None


def _batched(rows: Iterator[tuple[Any, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Rows in batches of a bounded size."""
    at_body = schema.names.index("body")
    taken: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        taken.append(row)
        size += len(row[at_body] or b"")
        if len(taken) >= _ROWS or size >= _BYTES:
            yield _record_batch(taken, schema)
            taken, size = [], 0
    if taken:
        yield _record_batch(taken, schema)


def _record_batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    *plain, values = zip(*rows, strict=True)
    *fields, row = schema
    arrays = [pa.array(each, one.type) for each, one in zip(plain, fields, strict=True)]
    inner = row.type
    columns = [pa.array([row.get(one.name) for row in values], one.type) for one in inner]
    struct = pa.StructArray.from_arrays(columns, fields=list(inner))
    return pa.RecordBatch.from_arrays([*arrays, struct], schema=schema)


def folded(found: DataFrame, shape: RowShape) -> DataFrame:
    """A row for each key, with what its changes do together; see `MergeLayout.merge`."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    keys = [f.col("row")[name].alias(f"key_{at}") for at, name in enumerate(shape.key)]
    by = [f"key_{at}" for at in range(len(keys))]
    changes = found.where(f.col("effect").isin("upsert", "delete")).select("*", *keys)
    whole = Window.partitionBy(*by)
    queue = f.struct("topic", "broker", "queue_id")
    split = f.min(queue).over(whole) != f.max(queue).over(whole)
    changes = changes.withColumn("is_split", split).withColumn("order", _order())
    is_delete = f.col("effect") == "delete"
    last_delete = f.max(f.when(is_delete, f.col("order"))).over(whole)
    later = changes.withColumn("last_delete", last_delete)
    later = later.where(f.col("last_delete").isNull() | (f.col("order") >= f.col("last_delete")))
    columns = [
        f.max_by(f.struct(f.col("row")[name].alias("value")), _given(name)).alias(f"column_{at}")
        for at, name in enumerate(shape.columns)
    ]
    place = f.struct("topic", "broker", "queue_id", "queue_offset", "changed_at")
    folded = later.groupBy(*by).agg(
        f.max_by(place, "order").alias("place"),
        f.max_by(is_delete, f.col("order")).alias("is_deleted"),
        f.bool_or(is_delete).alias("is_whole"),
        f.bool_or("is_split").alias("is_split"),
        *columns,
    )
    row = []
    for at, name in enumerate(shape.columns):
        value = f.col(f"column_{at}")
        if name in shape.key:  # a deletion has no values, but its key
            value = f.struct(f.col(by[shape.key.index(name)]).alias("value"))
        row.append(value.alias(name))
    return folded.select(f.struct(*row).alias("row"), "place", "is_deleted", "is_whole", "is_split")


def _order() -> Column:
    """The order of a key's changes: by offset, and by time first where they are of many queues."""
    from pyspark.sql import functions as f

    at = f.when(f.col("is_split"), f.col("changed_at"))
    return f.struct(
        at.alias("at"), "topic", "broker", "queue_id", f.col("queue_offset"), f.col("step")
    )


def _given(name: str) -> Column:
    """The order of a change, or null if it leaves a column as it is."""
    from pyspark.sql import functions as f

    is_absent = f.coalesce(f.array_contains("absent", name), f.lit(False))
    return f.when((f.col("effect") == "upsert") & ~is_absent, f.col("order"))


def counts(found: DataFrame) -> dict[str, int]:
    """How many messages and changes there are, and of each kind of reason why one is set aside."""
    from pyspark.sql import functions as f

    kind = f.split("reason", ": ").getItem(0).alias("kind")
    tallied = found.groupBy("effect", kind).agg(
        f.count(f.lit(1)).alias("count"), f.count_if(f.col("step") == 0).alias("messages")
    )
    made = dict.fromkeys(("messages", "upserts", "deletes", "aside", "left_out"), 0)
    for row in tallied.collect():
        name = _COUNTED[row["effect"]]
        made["messages"] += row["messages"]
        made[name] += row["count"]
        if name == "aside":
            why = f"{ASIDE_BECAUSE}{row['kind']}"
            made[why] = made.get(why, 0) + row["count"]
    return made
