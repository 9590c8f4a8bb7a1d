"""Checks bytes of Avro against a schema before fastavro reads them. Pure.

fastavro reads in C and trusts what it reads: bytes that nest deep enough end the process, an array
of things without bytes may say that it has 2^60 of them, an index of -1 means the last branch, and
a decimal of too many digits is rounded. So each body is walked once: the functions below are made
for a schema, one for each of its types, and each takes the bytes and a position and returns the
next one. Source: the specification of Avro 1.12, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sprocket.schemas.body_codec import DEPTH_MAX
from sprocket.schemas.errors import BodyMismatch, SchemaInvalid

#: Takes the walk, the position and the depth; returns the position behind the value.
_Walker = Callable[["_Walk", int, int], int]

#: Items without any bytes, such as null, in all arrays of a body.
_EMPTY_ITEMS_MAX = 10_000
#: Fields of all records of a body, besides twice its bytes: those of records within records, and
#: null ones, need no bytes.
_FIELDS_MAX = 100_000
_SIZE_MAX = {"size": 1 << 24, "precision": 1_000}
_INT_MIN, _INT_MAX = -(1 << 31), (1 << 31) - 1


class _Walk:
    """The walk through one body."""

    __slots__ = ("content", "empty_items", "fields_left")

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.empty_items = 0
        self.fields_left = _FIELDS_MAX + 2 * len(content)


def checker(schema: Any, names: Mapping[str, Any]) -> Callable[[bytes], None]:
    """Makes the check of a schema.

    Args:
        schema: as `fastavro.parse_schema` returns it.
        names: the schemas of all names.

    Returns:
        A function that raises BodyMismatch unless a body is exactly one value of the schema.

    Raises:
        SchemaInvalid: the schema has a type that does not exist.
    """
    walk_value = _Made(names).walker(schema)

    def check(content: bytes) -> None:
        try:
            end = walk_value(_Walk(content), 0, 0)
        except IndexError:
            end = len(content) + 1
        if end > len(content):
            raise BodyMismatch("it ends before the value is complete")
        if end < len(content):
            raise BodyMismatch(f"{len(content) - end} bytes follow the value")

    return check


class _Made:
    """The walkers of a schema; each named type has one, so that types may contain themselves."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._found: dict[str, _Walker] = {}

    def walker(self, schema: Any) -> _Walker:
        if isinstance(schema, list):
            return _union([self.walker(branch) for branch in schema])
        if isinstance(schema, str):
            return _PRIMITIVE.get(schema) or self._named(schema)
        kind = schema.get("type")
        if kind == "array":
            return _blocks(self.walker(schema["items"]), has_keys=False)
        if kind == "map":
            return _blocks(self.walker(schema["values"]), has_keys=True)
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(schema)
        if kind == "bytes" and schema.get("logicalType") == "decimal":
            return _decimal(_size(schema, "precision"))
        return self.walker(kind)

    def _named(self, name: str) -> _Walker:
        if name not in self._found:
            schema = self._names.get(name)
            if schema is None or isinstance(schema, str):
                raise SchemaInvalid(f"the schema has no type {name!r}")
            return self._definition(schema)
        # The walker of a record that is being made is not there yet.
        return lambda walk, at, depth: self._found[name](walk, at, depth)

    def _definition(self, schema: Any) -> _Walker:
        name, kind = schema["name"], schema["type"]
        if kind == "enum":
            return self._found.setdefault(name, _enum(len(schema["symbols"])))
        if kind == "fixed":
            return self._found.setdefault(name, _fixed(schema))
        if name not in self._found:
            fields: list[_Walker] = []
            self._found[name] = _record(fields)
            fields += [self.walker(field["type"]) for field in schema["fields"]]
        return self._found[name]


def _size(schema: Any, name: str) -> int:
    """A size that a schema says: of a fixed type in bytes, of a decimal in digits."""
    found = schema.get(name, 0)
    if type(found) is not int or not 0 <= found <= _SIZE_MAX[name]:
        raise SchemaInvalid(f"{name} is {found!r}: a number up to {_SIZE_MAX[name]}")
    return found


def _long(content: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and the next position."""
    byte = content[at]
    if byte < 0x80:  # almost all are this short
        return (byte >> 1) ^ -(byte & 1), at + 1
    found, shift = byte & 0x7F, 7
    while byte >= 0x80:
        at += 1
        byte = content[at]
        found |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            break
    if found >> 64 or byte >= 0x80:
        raise BodyMismatch("a number has more than 64 bits")
    return (found >> 1) ^ -(found & 1), at + 1


def _walk_long(walk: _Walk, at: int, depth: int) -> int:
    if walk.content[at] < 0x80:
        return at + 1
    return _long(walk.content, at)[1]


def _walk_int(walk: _Walk, at: int, depth: int) -> int:
    if walk.content[at] < 0x80:
        return at + 1
    number, at = _long(walk.content, at)
    if not _INT_MIN <= number <= _INT_MAX:
        raise BodyMismatch(f"{number} is no int of Avro: it has more than 32 bits")
    return at


def _walk_boolean(walk: _Walk, at: int, depth: int) -> int:
    if walk.content[at] > 1:
        raise BodyMismatch(f"byte {walk.content[at]} is no boolean")
    return at + 1


def _walk_bytes(walk: _Walk, at: int, depth: int) -> int:
    size, at = _long(walk.content, at)
    if size < 0:
        raise BodyMismatch(f"a text of {size} bytes")
    return at + size


_PRIMITIVE: dict[str, _Walker] = {
    "null": lambda walk, at, depth: at,
    "boolean": _walk_boolean,
    "int": _walk_int,
    "long": _walk_long,
    "float": lambda walk, at, depth: at + 4,
    "double": lambda walk, at, depth: at + 8,
    "bytes": _walk_bytes,
    "string": _walk_bytes,
}


def _union(branches: Sequence[_Walker]) -> _Walker:
    def walk_union(walk: _Walk, at: int, depth: int) -> int:
        index, at = _long(walk.content, at)
        if not 0 <= index < len(branches):
            raise BodyMismatch(f"branch {index} of a union of {len(branches)}")
        return branches[index](walk, at, depth)

    return walk_union


def _enum(count: int) -> _Walker:
    def walk_enum(walk: _Walk, at: int, depth: int) -> int:
        index, at = _long(walk.content, at)
        if not 0 <= index < count:
            raise BodyMismatch(f"symbol {index} of an enum of {count}")
        return at

    return walk_enum


def _fixed(schema: Any) -> _Walker:
    size = _size(schema, "size")
    if schema.get("logicalType") != "decimal":
        return lambda walk, at, depth: at + size
    check = _digits(_size(schema, "precision"))

    def walk_fixed(walk: _Walk, at: int, depth: int) -> int:
        check(walk.content[at : at + size])
        return at + size

    return walk_fixed


def _decimal(precision: int) -> _Walker:
    check = _digits(precision)

    def walk_decimal(walk: _Walk, at: int, depth: int) -> int:
        end = _walk_bytes(walk, at, depth)
        _, begin = _long(walk.content, at)
        check(walk.content[begin:end])
        return end

    return walk_decimal


def _digits(precision: int) -> Callable[[bytes], None]:
    limit: int = 10**precision

    def check(content: bytes) -> None:
        if not -limit < int.from_bytes(content, "big", signed=True) < limit:
            raise BodyMismatch(f"a decimal has more than {precision} digits")

    return check


def _record(fields: Sequence[_Walker]) -> _Walker:
    def walk_record(walk: _Walk, at: int, depth: int) -> int:
        if depth >= DEPTH_MAX:
            raise BodyMismatch(f"it is nested deeper than {DEPTH_MAX} levels")
        walk.fields_left -= 1 + len(fields)
        if walk.fields_left < 0:
            raise BodyMismatch("it has many more fields than bytes")
        for field in fields:
            at = field(walk, at, depth + 1)
        return at

    return walk_record


def _blocks(item: _Walker, *, has_keys: bool) -> _Walker:
    def walk_blocks(walk: _Walk, at: int, depth: int) -> int:
        if depth >= DEPTH_MAX:
            raise BodyMismatch(f"it is nested deeper than {DEPTH_MAX} levels")
        while True:
            count, at = _long(walk.content, at)
            if count == 0:
                return at
            if count < 0:
                count = -count
                at = _walk_long(walk, at, depth)  # the block's size, which readers may skip by
            for _ in range(count):
                before = at
                if has_keys:
                    at = _walk_bytes(walk, at, depth)
                at = item(walk, at, depth + 1)
                if at > len(walk.content):
                    raise IndexError
                if at == before:
                    walk.empty_items += 1
                    if walk.empty_items > _EMPTY_ITEMS_MAX:
                        raise BodyMismatch(f"more than {_EMPTY_ITEMS_MAX} items without bytes")

    return walk_blocks
