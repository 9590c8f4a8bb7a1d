"""Parses the trace messages of RocketMQ's clients into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sprocket.message.traces import EVENT_END, FIELD_END, FIELDS, OLD_PUB_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

#: Columns made of them, with their types.
COLUMNS = {
    "at_ms": "bigint",
    "group": "string",
    "topic": "string",
    "message_id": "string",
    "request_id": "string",
    "tag": "string",
    "keys": "string",
    "cost_ms": "bigint",
    "retries": "int",
    "is_ok": "boolean",
    "code": "int",
    "state": "string",
}


def events(frame: DataFrame) -> DataFrame:
    """The events in trace messages (column `body`), one a row; other texts are left out.

    The event of a batch has all its message ids, separated by commas: it becomes a row for each.
    """
    from pyspark.sql import functions as f

    text = f.explode(f.split(f.col("body").cast("string"), EVENT_END)).alias("text")
    parts = frame.select("store_timestamp", text).select(
        "store_timestamp", f.split("text", FIELD_END).alias("parts")
    )
    kind = f.col("parts")[0]
    wanted = parts.where(kind.isin(*FIELDS))
    columns = [_column(name, type_).alias(name) for name, type_ in COLUMNS.items()]
    flat = wanted.select("store_timestamp", kind.alias("kind"), *columns)
    return flat.withColumn("message_id", f.explode(f.split("message_id", ",")))


def _column(name: str, type_: str) -> Column:
    from pyspark.sql import functions as f

    parts = f.col("parts")
    value = f.lit(None).cast("string")
    for kind, fields in FIELDS.items():
        if name in fields:
            at = fields.index(name) + 1
            found = f.get(parts, f.lit(at))
            if kind == "Pub" and name == "is_ok":
                is_old = f.size(parts) == OLD_PUB_FIELDS
                found = f.when(is_old, f.get(parts, f.lit(at - 1))).otherwise(found)
            value = f.when(parts[0] == kind, found).otherwise(value)
    known = f.when(~value.isin("", "null"), value)
    return known.try_cast(type_)
