"""Bodies of JSON that a JSON Schema describes.

The library jsonschema checks them, in all drafts from 3 to 2020-12. A schema that another one
refers to is used only if it was given: nothing is fetched. `format` is not checked, as the
specification has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urljoin

from sprocket.base.errors import UsageError
from sprocket.schemas import json_schema_steps
from sprocket.schemas.avro_bodies import SCHEMA_BYTES_MAX
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid
from sprocket.schemas.json_bodies import JsonBodies

#: Characters of a reason, which repeats parts of the body.
_REASON_MAX = 300


class JsonSchemaBodies(JsonBodies):
    """JSON by a schema.

    Args:
        schema: its text. Without `$schema` it is of draft 2020-12.
        references: the names by which it refers to other schemas, and their texts.

    Attributes:
        schema: the schema itself: a dict, or a bool.
        resolver: finds what it refers to (`referencing.Registry.resolver_with_root`).

    Raises:
        SchemaInvalid: a text is no JSON Schema.
        UsageError: the package jsonschema is missing.
    """

    def __init__(self, schema: str, *, references: Sequence[tuple[str, str]] = ()) -> None:
        self.schema, self.resolver, self._validator = _opened(schema, references)

    def decode(self, body: bytes) -> Any:
        """The value of a JSON text that fits; see `BodyCodec.decode`."""
        value = super().decode(body)
        json_schema_steps.begin(len(body))
        self._check(value)
        return value

    def encode(self, value: Any) -> bytes:
        """A value that fits as JSON; see `BodyCodec.encode`."""
        return self.checked(super().encode(value))

    def checked(self, body: bytes) -> bytes:
        """The body itself, if it fits."""
        self.decode(body)
        return body

    def _check(self, value: Any) -> None:
        try:
            error = next(self._validator.iter_errors(value), None)
        except RecursionError:
            raise BodyMismatch("it is nested too deep for the schema") from None
        except json_schema_steps.TooManySteps:
            raise BodyMismatch("the schema takes too many steps to check it") from None
        except Exception as error:  # a reference that is not given, a number too large for floats
            raise BodyMismatch(f"the schema cannot check it: {_short(error)}") from None
        if error is not None:
            place = error.json_path
            raise BodyMismatch(f"it does not fit the schema at {place[:100]}: {_short(error)}")


def _opened(text: str, references: Sequence[tuple[str, str]]) -> tuple[Any, Any, Any]:
    """A schema, what finds the parts that it refers to, and what checks values by it."""
    try:
        import jsonschema
        import referencing
        from referencing.jsonschema import DRAFT202012
    except ImportError:
        raise UsageError(
            "JSON Schema needs a package: pip install 'sprocketmq[jsonschema]'"
        ) from None
    schema = json_schema_steps.ordered(_parsed(text))
    found = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    base = schema.get("$id", "") if isinstance(schema, dict) else ""
    others = [(name, json_schema_steps.ordered(_parsed(each))) for name, each in references]
    try:
        resources = []
        for name, each in others:
            other = referencing.Resource.from_contents(each, default_specification=DRAFT202012)
            names = {name, urljoin(base, name)} if isinstance(base, str) else {name}
            resources += [(each_name, other) for each_name in names]
        found.check_schema(schema)
        registry = referencing.Registry().with_resources(resources)
        root = referencing.Resource.from_contents(schema, default_specification=DRAFT202012)
        keywords = {**found.VALIDATORS, "uniqueItems": _unique_items}
        kind = jsonschema.validators.extend(found, json_schema_steps.counted(keywords))
        return schema, registry.resolver_with_root(root), kind(schema, registry=registry)
    except Exception as error:  # of jsonschema and referencing, which have no base in common
        raise SchemaInvalid(f"it is no JSON Schema: {_short(error)}") from None


def _parsed(text: str) -> Any:
    content = text.encode("utf-8", "surrogatepass")
    if len(content) > SCHEMA_BYTES_MAX:
        raise SchemaInvalid(f"a schema of {len(content)} bytes; {SCHEMA_BYTES_MAX} at most")
    try:
        schema = JsonBodies().decode(content)
    except BodyMismatch as error:
        raise SchemaInvalid(f"the schema is no JSON: {error}") from None
    if not isinstance(schema, dict | bool):
        raise SchemaInvalid("a JSON Schema is an object, true or false")
    return schema


def _unique_items(validator: Any, is_wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    """jsonschema's own compares each item with each other: hours for a body of 4 MiB."""
    import jsonschema

    if not is_wanted or not validator.is_type(value, "array"):
        return
    seen: set[str] = set()
    for each in value:
        known = json.dumps(_as_number(each), sort_keys=True)
        if known in seen:
            yield jsonschema.ValidationError(f"{each!r:.100} is in it twice")
            return
        seen.add(known)


def _as_number(value: Any) -> Any:
    """A value in which equal numbers have one form: 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _as_number(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_number(each) for each in value]
    return value


def _short(error: BaseException) -> str:
    words = getattr(error, "message", None) or str(error)
    return " ".join(str(words)[: 4 * _REASON_MAX].split())[:_REASON_MAX] or type(error).__name__
