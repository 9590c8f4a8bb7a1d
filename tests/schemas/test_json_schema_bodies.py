"""JSON that a schema describes: what fits passes unchanged, and the rest says where and why."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("jsonschema")

from sprocket.schemas import json_schema_steps
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid
from sprocket.schemas.json_schema_bodies import JsonSchemaBodies
from sprocket.schemas.typed_bodies import TypedBodies, encoded

ORDER = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "https://shop.example/order.json",
    "type": "object",
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "amount": {"type": "number", "exclusiveMinimum": 0},
        "lines": {"type": "array", "items": {"$ref": "line.json"}, "uniqueItems": True},
    },
    "required": ["id"],
    "additionalProperties": False,
}
LINE = {"type": "object", "properties": {"count": {"type": "integer"}}}
CODEC = JsonSchemaBodies(json.dumps(ORDER), references=[("line.json", json.dumps(LINE))])


def test_what_fits_passes_both_ways() -> None:
    order = {"id": "o-1", "amount": 2.5, "lines": [{"count": 1}, {"count": 2}]}
    assert CODEC.decode(CODEC.encode(order)) == order
    assert CODEC.content_type == "application/json"
    assert JsonSchemaBodies("true").decode(b"[1]") == [1]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, r"at \$: 'id' is a required property"),
        ({"id": ""}, r"at \$\.id: '' should be non-empty"),
        ({"id": "a", "amount": 0}, r"at \$\.amount: 0 is less than or equal"),
        ({"id": "a", "more": 1}, "'more' was unexpected"),
        ({"id": "a", "lines": [{"count": "1"}]}, r"at \$\.lines\[0\]\.count: '1' is not of type"),
        ({"id": "a", "lines": [{"a": 1}, {"a": 1.0}]}, "is in it twice"),
        ({"id": ["long" * 10_000]}, "not of type 'string'|long"),
    ],
)
def test_what_does_not_fit_says_where_and_why(value: Any, reason: str) -> None:
    with pytest.raises(BodyMismatch, match=reason) as failure:
        CODEC.decode(json.dumps(value).encode())
    assert len(str(failure.value)) < 500
    with pytest.raises(BodyMismatch, match=reason):
        CODEC.encode(value)


def test_what_is_no_json_is_refused_as_without_a_schema() -> None:
    for body in (b"", b"NaN", b"[" * 101 + b"]" * 101):
        with pytest.raises(BodyMismatch):
            CODEC.decode(body)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "7", '{"type": 7}', '{"type": "order"}', '{"a":' * 200 + "1" + "}" * 200,
     '"' + "x" * (1 << 20) + '"', '{"pattern": "("}', '{"$id": 7}'],
)  # fmt: skip
def test_what_is_no_schema_is_refused_at_once(text: str) -> None:
    with pytest.raises(SchemaInvalid):
        JsonSchemaBodies(text)


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("it asks the network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    for name in ("http://127.0.0.1:9/other.json", "other.json", "#/nowhere"):
        bodies = JsonSchemaBodies(json.dumps({"$ref": name}))
        with pytest.raises(BodyMismatch, match="cannot check it"):
            bodies.decode(b"1")


def test_a_schema_that_refers_to_itself_ends() -> None:
    with pytest.raises(BodyMismatch, match="too deep"):
        JsonSchemaBodies('{"$ref": "#"}').decode(b"1")
    tree = JsonSchemaBodies('{"properties": {"next": {"$ref": "#"}}, "type": "object"}')
    assert tree.decode(b'{"next": {"next": {}}}') == {"next": {"next": {}}}


def test_unique_items_of_a_large_body_are_counted_and_not_compared() -> None:
    bodies = JsonSchemaBodies('{"uniqueItems": true}')
    many = [{"n": n} for n in range(20_000)]  # comparing each with each would take minutes
    assert len(bodies.decode(json.dumps(many).encode())) == 20_000
    assert bodies.decode(b'{"no": "array"}') == {"no": "array"}
    assert bodies.decode(b"[1, true, 1e300, 123456789012345678901234567890]")
    with pytest.raises(BodyMismatch, match="twice"):
        bodies.decode(b"[1.0, 2, 1]")


@dataclass
class Order:
    id: str


def test_typed_messages_are_checked_too() -> None:
    bodies = TypedBodies(Order, CODEC)
    assert bodies.decode(encoded(Order("o-1"), CODEC)) == Order("o-1")
    with pytest.raises(BodyMismatch, match="non-empty"):
        encoded(Order(""), CODEC)
    with pytest.raises(BodyMismatch, match="non-empty"):
        bodies.decode(b'{"id":""}')


def test_models_of_pydantic_are_checked_too() -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Model", id=(str, ...))
    assert encoded(model(id="o-1"), CODEC) == b'{"id":"o-1"}'
    with pytest.raises(BodyMismatch, match="non-empty"):
        encoded(model(id=""), CODEC)


def _doubling(more: dict[str, Any]) -> str:
    """A schema that applies its last part 2^40 times."""
    parts: dict[str, Any] = {
        f"a{number}": {"allOf": [{"$ref": f"#/$defs/a{number + 1}"}] * 2} for number in range(40)
    }
    return json.dumps({"$ref": "#/$defs/a0", **more, "$defs": {**parts, "a40": True}})


@pytest.mark.parametrize(
    "more", [{}, {"unevaluatedProperties": False}, {"unevaluatedItems": False}]
)
def test_a_schema_that_multiplies_itself_is_given_up(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_schema_steps, "_STEPS_MAX", 2_000)
    for body in (b"1", b"{}", b"[]"):
        with pytest.raises(BodyMismatch, match="too many steps"):
            JsonSchemaBodies(_doubling(more)).decode(body)


@pytest.mark.parametrize("keyword", ["unevaluatedItems", "unevaluatedProperties"])
def test_what_takes_the_square_of_a_bodys_size_is_bounded(keyword: str) -> None:
    schema = {keyword: False, "prefixItems": [True] * 50, "properties": {"a": True}}
    codec = JsonSchemaBodies(json.dumps(schema))
    assert codec.decode(json.dumps([1] * 50).encode()) == [1] * 50
    assert codec.decode(b'{"a": 1}') == {"a": 1}
    many = [1] * 60_000 if keyword == "unevaluatedItems" else dict.fromkeys(map(str, range(60_000)))
    with pytest.raises(BodyMismatch, match="too many steps"):
        codec.decode(json.dumps(many).encode())


def test_names_of_references_that_are_no_url_are_refused() -> None:
    with pytest.raises(SchemaInvalid, match="Invalid IPv6 URL"):
        JsonSchemaBodies('{"$id": "http://[::1", "$ref": "x"}', references=[("x", "{}")])
