"""JSON Schemas become columns: one type where the schema allows one, and JSON texts elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("jsonschema")
pytest.importorskip("pyarrow")

from sprocket.schemas.arrow_columns import ValueColumn
from sprocket.schemas.arrow_types import arrow_type, ddl
from sprocket.schemas.errors import SchemaInvalid
from sprocket.schemas.json_schema_bodies import JsonSchemaBodies


def columns(schema: Any, **given: Any) -> str:
    return ddl(arrow_type(JsonSchemaBodies(json.dumps(schema), **given)))


ORDER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "amount": {"type": ["number", "null"]},
        "paid": {"type": "boolean"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "first": {"anyOf": [{"$ref": "#/$defs/Line"}, {"type": "null"}]},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "state": {"enum": ["new", "paid"]},
        "never": False,
    },
    "required": ["id"],
    "$defs": {"Line": {"properties": {"count": {"type": "integer"}}}},
}


def test_an_object_is_a_struct() -> None:
    assert columns(ORDER) == (
        "struct<`id`: string, `amount`: double, `paid`: boolean, "
        "`lines`: array<struct<`count`: bigint>>, `first`: struct<`count`: bigint>, "
        "`labels`: map<string, string>, `state`: string>"
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, "string"),
        ({}, "string"),
        ({"type": "object"}, "string"),
        ({"type": "array"}, "string"),
        ({"type": "null"}, "string"),
        ({"type": ["string", "integer"]}, "string"),
        ({"type": ["integer", "number", "null"]}, "double"),
        ({"const": 7}, "bigint"),
        ({"enum": [True, None]}, "boolean"),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "double"),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "string"),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "items": {}}, "string"),
        ({"type": "array", "items": [{}], "$schema": "http://json-schema.org/draft-07/schema#"},
         "string"),
        ({"type": "object", "patternProperties": {"x": {}}, "additionalProperties": {}}, "string"),
        ({"type": [{"type": "string"}], "$schema": "http://json-schema.org/draft-03/schema#"},
         "string"),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}},
                    {"properties": {"b c": {"type": "string"}}}]},
         "struct<`a`: bigint, `b c`: string>"),
    ],
)  # fmt: skip
def test_other_schemas(schema: Any, expected: str) -> None:
    assert columns(schema) == expected


def test_a_schema_that_contains_itself_is_a_text_from_there() -> None:
    tree = {"properties": {"n": {"type": "integer"}, "next": {"$ref": "#"}}}
    assert columns(tree) == "struct<`n`: bigint, `next`: string>"
    assert columns({"$ref": "#"}) == "string"
    deep: Any = {"type": "integer"}
    for _ in range(40):
        deep = {"allOf": [deep]}
    assert columns(deep) == "bigint"


def test_references_are_those_that_were_given() -> None:
    line = {"properties": {"count": {"type": "integer"}}}
    order = {
        "$id": "https://shop.example/order.json",
        "properties": {"line": {"$ref": "line.json"}},
    }
    found = columns(order, references=[("line.json", json.dumps(line))])
    assert found == "struct<`line`: struct<`count`: bigint>>"
    with pytest.raises(SchemaInvalid, match=r"refers to 'line\.json', which is not given"):
        columns(order)


def test_types_that_double_with_each_level_are_bounded() -> None:
    definitions: dict[str, Any] = {"0": {"type": "integer"}}
    for level in range(1, 30):
        inner = {"$ref": f"#/$defs/{level - 1}"}
        definitions[str(level)] = {"properties": {"a": inner, "b": inner}}
    with pytest.raises(SchemaInvalid, match="columns"):
        columns({"$defs": definitions, "$ref": "#/$defs/29"})


def test_a_whole_number_may_be_written_with_a_point() -> None:
    bodies = JsonSchemaBodies('{"type": "integer"}')
    column = ValueColumn(arrow_type(bodies))
    assert column.fitted(bodies.decode(b"1.0")) == 1
