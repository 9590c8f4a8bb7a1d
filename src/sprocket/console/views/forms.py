"""Forms for the parameters of an operation, made from their declared types. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec
from msgspec import inspect

from sprocket.base.errors import UsageError
from sprocket.console.operations.declare import Operation

_CHOICE = re.compile(r"\^\(([\w|]+)\)\$")
#: Parameters whose texts are not to be seen, and those that have several lines.
_SECRET, _LONG = frozenset({"password"}), frozenset({"body"})


class FieldKind(Enum):
    """What a field takes."""

    TEXT = "text"
    LONG_TEXT = "long text"
    SECRET = "secret"
    NUMBER = "number"
    SWITCH = "switch"
    CHOICE = "choice"
    TIME = "time"
    LIST = "list"
    PAIRS = "pairs"


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a form.

    Attributes:
        name: the parameter.
        about: what it means.
        choices: the values of a choice.
        is_required: whether it must be given.
        is_three_way: of a switch, whether "leave it" is a third value.
        default: what is there at first.
    """

    name: str
    kind: FieldKind
    about: str
    choices: tuple[str, ...] = ()
    is_required: bool = False
    is_three_way: bool = False
    default: Any = None

    @property
    def label(self) -> str:
        """The name in words."""
        words = self.name.removeprefix("is_").replace("_", " ")
        return words[:1].upper() + words[1:]


def form_fields(operation: Operation, names: Iterable[str]) -> list[FormField]:
    """Fields for some parameters of an operation, in this order."""
    declared = inspect.type_info(operation.parameters)
    assert isinstance(declared, inspect.StructType)
    by_name = {each.name: each for each in declared.fields}
    return [_field(by_name[name]) for name in names]


def _field(declared: inspect.Field) -> FormField:
    found, about, is_optional = _unwrapped(declared.type)
    default = None if declared.default is msgspec.NODEFAULT else declared.default
    kind, choices = _kind(declared.name, found)
    return FormField(
        name=declared.name,
        kind=kind,
        about=about,
        choices=choices,
        is_required=declared.required,
        is_three_way=kind is FieldKind.SWITCH and is_optional,
        default=default,
    )


def _unwrapped(declared: inspect.Type) -> tuple[inspect.Type, str, bool]:
    """The type without its notes and without None; its description; whether it may be None."""
    about, is_optional = "", False
    while True:
        if isinstance(declared, inspect.Metadata):
            about = about or str((declared.extra_json_schema or {}).get("description", ""))
            declared = declared.type
        elif isinstance(declared, inspect.UnionType):
            is_optional = declared.includes_none
            declared = next(
                each for each in declared.types if not isinstance(each, inspect.NoneType)
            )
        else:
            return declared, about, is_optional


def _kind(name: str, declared: inspect.Type) -> tuple[FieldKind, tuple[str, ...]]:
    if isinstance(declared, inspect.BoolType):
        return FieldKind.SWITCH, ()
    if isinstance(declared, inspect.IntType | inspect.FloatType):
        return FieldKind.NUMBER, ()
    if isinstance(declared, inspect.DateTimeType):
        return FieldKind.TIME, ()
    if isinstance(declared, inspect.ListType):
        return FieldKind.LIST, ()
    if isinstance(declared, inspect.DictType):
        return FieldKind.PAIRS, ()
    pattern = getattr(declared, "pattern", None)
    if pattern and (match := _CHOICE.fullmatch(pattern)):
        return FieldKind.CHOICE, tuple(match[1].split("|"))
    if name in _SECRET:
        return FieldKind.SECRET, ()
    return (FieldKind.LONG_TEXT if name in _LONG else FieldKind.TEXT), ()


def parsed(fields: Iterable[FormField], values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a form gives; what is empty is left out.

    Raises:
        UsageError: a field that must be given is empty, or does not fit.
    """
    given: dict[str, Any] = {}
    for field in fields:
        value = _parsed(field, values.get(field.name))
        if value is not None:
            given[field.name] = value
        elif field.is_required:
            raise UsageError(f"{field.label} is missing")
    return given


def _parsed(field: FormField, value: Any) -> Any:
    if field.kind is FieldKind.SWITCH:
        if field.is_three_way:
            return {"yes": True, "no": False}.get(str(value))
        return bool(value)
    if value is None or value == "":
        return None
    if field.kind is FieldKind.NUMBER:
        return _number(field, value)
    text = str(value)
    if field.kind is FieldKind.TIME:
        return time_in(text)
    if field.kind is FieldKind.LIST:
        return [each for line in text.splitlines() for each in re.split(r"[,\s]+", line) if each]
    if field.kind is FieldKind.PAIRS:
        return _pairs(field, text)
    return text if field.kind in (FieldKind.LONG_TEXT, FieldKind.SECRET) else text.strip() or None


def _number(field: FormField, value: Any) -> int:
    try:
        number = float(value)
        if number != int(number):
            raise ValueError
    except (ValueError, OverflowError):
        raise UsageError(f"{field.label} is a whole number, not {value!r}") from None
    return int(number)


def _pairs(field: FormField, text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for line in text.splitlines():
        name, sign, value = line.partition("=")
        if not line.strip():
            continue
        if line.startswith("-") and not sign:
            found[line[1:].strip()] = None
        elif sign and name.strip():
            found[name.strip()] = value.strip()
        else:
            raise UsageError(f"{field.label}: a line is NAME=VALUE, not {line[:100]!r}")
    return found


def time_in(text: str) -> datetime | None:
    """A time as browsers give it, in UTC; None for an empty text.

    Raises:
        UsageError: it is no time.
    """
    if not text.strip():
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(f"a time is such as 2030-01-31T08:00, not {text[:60]!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
