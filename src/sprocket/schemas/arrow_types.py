"""Schemas of Avro, Protobuf and JSON as Arrow types, and these as Spark's DDL. Pure.

Spark's own types hold what both can say: unsigned numbers of 32 bits become long, those of 64
decimals. A type that contains itself, a union of unlike types and a record without fields have no
columns: from there the value is a JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from sprocket.base.errors import UsageError
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.errors import SchemaInvalid
from sprocket.schemas.json_schema_bodies import JsonSchemaBodies
from sprocket.schemas.json_schema_types import FIELDS_MAX, json_schema_type
from sprocket.schemas.protobuf_bodies import (
    DURATION,
    TIMESTAMP,
    ProtobufBodies,
    is_map,
    is_repeated,
    map_fields,
    stands_for,
)

#: Digits of Spark's decimals.
_DIGITS_MAX = 38
_UTC = pa.timestamp("us", tz="UTC")

_AVRO = {
    "null": pa.string(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(),
}  # fmt: skip
_LOGICAL = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.string(),
    ("long", "time-micros"): pa.string(),
    ("long", "timestamp-millis"): _UTC,
    ("long", "timestamp-micros"): _UTC,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
#: By `FieldDescriptor.type` of Protobuf.
_PROTOBUF = {
    1: pa.float64(), 2: pa.float32(), 3: pa.int64(), 4: pa.decimal128(20, 0), 5: pa.int32(),
    6: pa.decimal128(20, 0), 7: pa.int64(), 8: pa.bool_(), 9: pa.string(), 12: pa.binary(),
    13: pa.int64(), 14: pa.string(), 15: pa.int32(), 16: pa.int64(), 17: pa.int32(),
    18: pa.int64(),
}  # fmt: skip
_DDL = {
    pa.bool_(): "boolean", pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int",
    pa.int64(): "bigint", pa.float32(): "float", pa.float64(): "double", pa.string(): "string",
    pa.binary(): "binary", pa.date32(): "date", _UTC: "timestamp",
    pa.timestamp("us"): "timestamp_ntz", pa.duration("us"): "interval day to second",
}  # fmt: skip


def arrow_type(codec: object) -> pa.DataType:
    """The type of the values of a codec.

    Raises:
        UsageError: the codec has no schema that says it.
        SchemaInvalid: the type has too many fields.
    """
    if isinstance(codec, AvroBodies):
        return _Types(codec.names).avro(codec.schema, ())
    if isinstance(codec, ProtobufBodies):
        return _Types({}).message(codec.descriptor, ())
    if isinstance(codec, JsonSchemaBodies):
        return json_schema_type(codec)
    raise UsageError("JSON does not say what columns it has: give their names and types")


def ddl(kind: pa.DataType) -> str:
    """A type as Spark's DDL."""
    if pa.types.is_struct(kind):
        inner = (kind.field(at) for at in range(kind.num_fields))
        return f"struct<{', '.join(f'{_quoted(one.name)}: {ddl(one.type)}' for one in inner)}>"
    if pa.types.is_list(kind):
        return f"array<{ddl(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{ddl(kind.key_type)}, {ddl(kind.item_type)}>"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision}, {kind.scale})"
    return _DDL[kind]


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


class _Types:
    """Makes the types of one schema, and counts their fields."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._count = 0

    def avro(self, schema: Any, within: tuple[str, ...]) -> pa.DataType:
        """The type of an Avro schema inside the records `within`."""
        if isinstance(schema, list):
            return self._union(schema, within)
        if isinstance(schema, str):
            return _AVRO.get(schema) or self.avro(self._names[schema], within)
        kind, logical = schema["type"], schema.get("logicalType")
        if kind in ("record", "error"):
            name = schema["name"]
            if name in within:
                return pa.string()
            fields = schema["fields"]
            return self._struct(
                (one["name"], self.avro(one["type"], (*within, name))) for one in fields
            )
        if kind == "array":
            return pa.list_(self.avro(schema["items"], within))
        if kind == "map":
            return pa.map_(pa.string(), self.avro(schema["values"], within))
        if logical == "decimal" and kind in ("bytes", "fixed"):
            return _decimal(schema)
        if logical == "uuid" or kind == "enum":
            return pa.string()
        if kind == "fixed":
            return pa.binary()
        if isinstance(kind, str) and (kind, logical) in _LOGICAL:
            return _LOGICAL[kind, logical]
        return self.avro(kind, within)

    def _union(self, branches: list[Any], within: tuple[str, ...]) -> pa.DataType:
        kinds = {self.avro(each, within) for each in branches if each != "null"}
        if len(kinds) == 1:
            return kinds.pop()
        for wide, narrow in ((pa.int64(), pa.int32()), (pa.float64(), pa.float32())):
            if kinds == {wide, narrow}:
                return wide
        return pa.string()

    def message(self, descriptor: Any, within: tuple[str, ...]) -> pa.DataType:
        """The type of a Protobuf message inside the messages `within`."""
        name = descriptor.full_name
        special = stands_for(descriptor)
        if special == TIMESTAMP:
            return _UTC
        if special == DURATION:
            return pa.duration("us")
        if special is not None:
            return _PROTOBUF[descriptor.fields[0].type]
        if name in within:
            return pa.string()
        inside = (*within, name)
        return self._struct((one.name, self._field(one, inside)) for one in descriptor.fields)

    def _field(self, field: Any, within: tuple[str, ...]) -> pa.DataType:
        if is_map(field):
            key, value = map_fields(field)
            return pa.map_(_PROTOBUF[key.type], self._single(value, within))
        kind = self._single(field, within)
        return pa.list_(kind) if is_repeated(field) else kind

    def _single(self, field: Any, within: tuple[str, ...]) -> pa.DataType:
        if field.message_type is not None:
            return self.message(field.message_type, within)
        return _PROTOBUF[field.type]

    def _struct(self, fields: Iterable[tuple[str, pa.DataType]]) -> pa.DataType:
        found = []
        for name, kind in fields:
            self._count += 1
            if self._count > FIELDS_MAX:
                raise SchemaInvalid(f"the schema has more than {FIELDS_MAX} columns")
            found.append(pa.field(name, kind))
        return pa.struct(found) if found else pa.string()


def _decimal(schema: Any) -> pa.DataType:
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    if type(scale) is not int or not 0 <= scale <= precision:
        raise SchemaInvalid(f"a decimal of {precision} digits with a scale of {scale}")
    return pa.decimal128(precision, scale) if 0 < precision <= _DIGITS_MAX else pa.string()
