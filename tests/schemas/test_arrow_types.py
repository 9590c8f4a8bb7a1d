"""Schemas become columns that Spark knows."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("fastavro")
pytest.importorskip("pyarrow")

from google.protobuf import descriptor_pb2

from sprocket.base.errors import UsageError
from sprocket.schemas.arrow_types import arrow_type, ddl
from sprocket.schemas.avro_bodies import AvroBodies
from sprocket.schemas.errors import SchemaInvalid
from sprocket.schemas.json_bodies import JsonBodies
from sprocket.schemas.protobuf_bodies import ProtobufBodies
from tests.schemas.parts import AVRO_CHAIN, AVRO_ORDER, order_files


def avro(schema: Any) -> str:
    return ddl(arrow_type(AvroBodies(schema if isinstance(schema, str) else json.dumps(schema))))


def test_a_record_is_a_struct() -> None:
    assert avro(AVRO_ORDER) == (
        "struct<`id`: string, `amount`: double, `count`: bigint, `tags`: array<string>, "
        "`state`: string>"
    )
    assert avro('{"type":"map","values":{"type":"array","items":"int"}}') == (
        "map<string, array<int>>"
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        ({"type": "long", "logicalType": "time-micros"}, "string"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "long", "logicalType": "unheard-of"}, "bigint"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "decimal(9, 2)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2}, "string"),
        ({"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"}, "binary"),
        (["null", "int"], "int"),
        (["int", "long"], "bigint"),
        (["int", "string"], "string"),
        (["null"], "string"),
        ({"type": "record", "name": "E", "fields": []}, "string"),
    ],
)
def test_other_types_of_avro(schema: Any, expected: str) -> None:
    assert avro(schema) == expected


def test_a_type_that_contains_itself_is_a_text_from_there() -> None:
    assert avro(AVRO_CHAIN) == "struct<`next`: string>"
    found = ddl(arrow_type(ProtobufBodies(order_files(), "shop.Order")))
    assert "`next`: string" in found
    assert "`counts`: map<string, decimal(20, 0)>" in found
    assert "`price`: struct<`cents`: bigint, `currency`: string>" in found
    assert "`at`: timestamp" in found
    assert "`score`: bigint" in found


def test_types_that_double_with_each_level_are_bounded() -> None:
    kind: Any = "int"
    for level in range(30):
        name = f"R{level}"
        inner = {"type": "record", "name": name, "fields": [{"name": "a", "type": kind}]}
        inner["fields"].append({"name": "b", "type": f"R{level - 1}" if level else "int"})
        kind = inner
    with pytest.raises(SchemaInvalid, match="columns"):
        avro(kind)


def test_names_are_quoted() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    file.message_type.add(name="M").field.add(name="order", number=1, type=5, label=1)
    assert ddl(arrow_type(ProtobufBodies([file.SerializeToString()]))) == "struct<`order`: int>"


def test_json_says_no_columns() -> None:
    with pytest.raises(UsageError, match="JSON does not say"):
        arrow_type(JsonBodies())
