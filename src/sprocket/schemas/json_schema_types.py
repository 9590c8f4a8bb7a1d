"""JSON Schemas as Arrow types. Pure.

A JSON Schema says what a value may be, and a column has one type. Where a schema allows several
types, or says none, the value is a JSON text. What is said by `$ref` and `allOf` counts as if it
stood in the schema itself; of `anyOf` and `oneOf` all branches but null must be of one type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from sprocket.schemas.body_codec import DEPTH_MAX
from sprocket.schemas.errors import SchemaInvalid
from sprocket.schemas.json_schema_bodies import JsonSchemaBodies

#: Schemas that refer to each other grow without bound when they are written out.
FIELDS_MAX = 10_000
_PLAIN = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


class _Part(NamedTuple):
    """A schema, and what finds the parts that it refers to."""

    schema: Any
    resolver: Any


def json_schema_type(bodies: JsonSchemaBodies) -> pa.DataType:
    """The type of values that fit a schema.

    Raises:
        SchemaInvalid: it refers to a schema that is not given, or has too many fields.
    """
    return _SchemaTypes().of(_Part(bodies.schema, bodies.resolver), ())


class _SchemaTypes:
    """Makes the types of one schema, and counts what it visits."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, part: _Part, within: tuple[int, ...]) -> pa.DataType:
        """The type of a schema inside the schemas `within`."""
        self._count_one()
        parts = list(self._parts(part, within))
        if not parts:
            return pa.string()
        inside = (*within, *(id(each.schema) for each in parts))
        names = _type_names(parts)
        if names == {"object"}:
            return self._object(parts, inside)
        if names == {"array"}:
            return self._array(parts, inside)
        if names == {"integer", "number"}:
            return pa.float64()
        if len(names) == 1:
            return _PLAIN.get(next(iter(names)), pa.string())
        return pa.string() if names else self._branches(parts, inside)

    def _parts(self, part: _Part, within: tuple[int, ...]) -> Iterator[_Part]:
        """A schema and those that it includes; none if it is within itself."""
        schema, resolver = part
        if not isinstance(schema, dict) or id(schema) in within or len(within) > DEPTH_MAX:
            return
        self._count_one()
        yield part
        inside = (*within, id(schema))
        if isinstance(schema.get("$ref"), str):
            yield from self._parts(_found(resolver, schema["$ref"]), inside)
        for each in _list(schema.get("allOf")):
            yield from self._parts(_Part(each, resolver), inside)

    def _count_one(self) -> None:
        self._count += 1
        if self._count > FIELDS_MAX:
            raise SchemaInvalid(f"the schema has more than {FIELDS_MAX} columns and parts")

    def _object(self, parts: list[_Part], within: tuple[int, ...]) -> pa.DataType:
        fields: dict[str, pa.DataType] = {}
        for schema, resolver in parts:
            for name, each in _dict(schema.get("properties")).items():
                if name and each is not False and name not in fields:
                    fields[name] = self.of(_Part(each, resolver), within)
        if fields:
            return pa.struct(list(fields.items()))
        for schema, resolver in parts:
            values = schema.get("additionalProperties")
            if isinstance(values, dict) and not schema.get("patternProperties"):
                return pa.map_(pa.string(), self.of(_Part(values, resolver), within))
        return pa.string()

    def _array(self, parts: list[_Part], within: tuple[int, ...]) -> pa.DataType:
        if any("prefixItems" in schema for schema, _ in parts):
            return pa.string()
        for schema, resolver in parts:
            if isinstance(schema.get("items"), dict):
                return pa.list_(self.of(_Part(schema["items"], resolver), within))
        return pa.string()

    def _branches(self, parts: list[_Part], within: tuple[int, ...]) -> pa.DataType:
        kinds = set()
        for schema, resolver in parts:
            for each in (*_list(schema.get("anyOf")), *_list(schema.get("oneOf"))):
                if not isinstance(each, dict) or _said(each) != {"null"}:
                    kinds.add(self.of(_Part(each, resolver), within))
        if kinds == {pa.int64(), pa.float64()}:
            return pa.float64()
        return kinds.pop() if len(kinds) == 1 else pa.string()


def _found(resolver: Any, name: str) -> _Part:
    try:
        found = resolver.lookup(name)
    except Exception:  # of referencing, which has no base for them
        raise SchemaInvalid(f"the schema refers to {name[:100]!r}, which is not given") from None
    return _Part(found.contents, found.resolver)


def _type_names(parts: list[_Part]) -> set[str]:
    """The types that schemas which all hold allow, but null; empty if they say none."""
    allowed: set[str] | None = None
    for schema, _ in parts:
        said = _said(schema)
        if said:
            allowed = said if allowed is None else (allowed & said or allowed)
    if allowed:
        return allowed - {"null"} or {"null"}
    if any("properties" in schema for schema, _ in parts):
        return {"object"}
    return set()


def _said(schema: dict[str, Any]) -> set[str]:
    said = schema.get("type")
    if isinstance(said, str):
        return {said}
    if isinstance(said, list):
        # Schemas as types are of draft 3.
        return {each if isinstance(each, str) else "any" for each in said}
    values = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
    return {_name_of(each) for each in values}


def _name_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "array" if isinstance(value, list) else "null"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
