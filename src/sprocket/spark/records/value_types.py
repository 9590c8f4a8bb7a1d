"""Spark's types of the column `value` as the Arrow types that Spark expects for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_PLAIN = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(),
    "bigint": pa.int64(), "float": pa.float32(), "double": pa.float64(), "string": pa.string(),
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"), "interval day to second": pa.duration("us"),
}  # fmt: skip


def arrow_type_of(kind: DataType) -> pa.DataType:
    """The Arrow type of a type of Spark's.

    Raises:
        UsageError: no body can be decoded into it.
    """
    given: Any = kind
    name = given.typeName()
    if name == "struct":
        fields = [
            pa.field(one.name, arrow_type_of(one.dataType), nullable=one.nullable)
            for one in given.fields
        ]
        return pa.struct(fields)
    if name == "array":
        item = arrow_type_of(given.elementType)
        return pa.list_(pa.field("element", item, nullable=given.containsNull))
    if name == "map":
        item = pa.field("value", arrow_type_of(given.valueType), nullable=given.valueContainsNull)
        return pa.map_(arrow_type_of(given.keyType), item)
    if name == "decimal":
        return pa.decimal128(given.precision, given.scale)
    found = _PLAIN.get(given.simpleString())
    if found is None:
        raise UsageError(f"column value cannot hold {given.simpleString()}")
    return found
