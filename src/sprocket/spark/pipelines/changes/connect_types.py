"""Kafka Connect's types with Debezium's meanings: which column they become, and values as text.

Pure. A schema names a type (`int64`) and, in `name`, what a value means: days since 1970, say.

Sources: Kafka Connect's JsonSchema and its logical types (Date, Time, Timestamp, Decimal), and
Debezium's documentation of temporal and decimal types.
"""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from sprocket.spark.pipelines.changes.json_values import (
    NumberText,
    UnfitMessage,
    text_of,
    whole_number,
)

_PLAIN = {
    "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float",
    "float32": "float", "double": "double", "float64": "double", "boolean": "boolean",
    "bytes": "binary",
}  # fmt: skip
_DEBEZIUM, _CONNECT = "io.debezium.time.", "org.apache.kafka.connect.data."
_DECIMAL = f"{_CONNECT}Decimal"
_VARIABLE_DECIMAL = "io.debezium.data.VariableScaleDecimal"
#: Numbers of these are days since 1970.
_DATES = (f"{_DEBEZIUM}Date", f"{_CONNECT}Date")
#: Units a microsecond, and whether they count from midnight instead of from 1970.
_TIMES = {
    f"{_DEBEZIUM}Timestamp": (1_000, 1, False),
    f"{_DEBEZIUM}MicroTimestamp": (1, 1, False),
    f"{_DEBEZIUM}NanoTimestamp": (1, 1_000, False),
    f"{_CONNECT}Timestamp": (1_000, 1, False),
    f"{_DEBEZIUM}Time": (1_000, 1, True),
    f"{_DEBEZIUM}MicroTime": (1, 1, True),
    f"{_DEBEZIUM}NanoTime": (1, 1_000, True),
    f"{_CONNECT}Time": (1_000, 1, True),
}
_ZONED = f"{_DEBEZIUM}ZonedTimestamp"
_EPOCH = datetime.datetime(1970, 1, 1)
_SCALE_MAX = 1_000


class FieldType(NamedTuple):
    """The type of a column in a message.

    Attributes:
        ddl: the type of the table's column.
        meaning: the schema's name of what a value means; empty if it is what it looks like.
        scale: of a decimal.
    """

    ddl: str
    meaning: str = ""
    scale: int = 0


def fields(schema: Any) -> dict[str, Any]:
    """The schemas of the fields of a struct, by name; empty if this is none."""
    listed = schema.get("fields") if isinstance(schema, dict) else None
    if not isinstance(listed, list):
        return {}
    return {one["field"]: one for one in listed if isinstance(one, dict) and _is_named(one)}


def _is_named(field: Mapping[str, Any]) -> bool:
    return isinstance(field.get("field"), str)


def types(schema: Any) -> dict[str, FieldType]:
    """The types of the fields of a struct."""
    return {name: _type(field) for name, field in fields(schema).items()}


def _type(field: Mapping[str, Any]) -> FieldType:
    plain, meaning = field.get("type"), str(field.get("name") or "")
    if meaning == _DECIMAL:
        return _decimal(field.get("parameters"))
    if meaning in _DATES:
        return FieldType("date", meaning)
    if meaning in _TIMES:
        return FieldType("string" if _TIMES[meaning][2] else "timestamp_ntz", meaning)
    if meaning == _ZONED:
        return FieldType("timestamp", _ZONED)
    if meaning == _VARIABLE_DECIMAL:
        return FieldType("string", _VARIABLE_DECIMAL)
    return FieldType(_PLAIN.get(plain, "string") if isinstance(plain, str) else "string")


def _decimal(parameters: Any) -> FieldType:
    said = parameters if isinstance(parameters, dict) else {}
    scale, digits = (_number(said.get(name)) for name in ("scale", "connect.decimal.precision"))
    if scale is None or abs(scale) > _SCALE_MAX:
        raise UnfitMessage("unknown message", "a decimal of Kafka Connect has a scale")
    whole = 38 if digits is None else digits
    ddl = f"decimal({whole},{scale})" if 0 <= scale <= whole <= 38 and whole else "string"
    return FieldType(ddl, _DECIMAL, scale)


def _number(value: Any) -> int | None:
    text = value if isinstance(value, str) else ""
    return whole_number(NumberText(text))


def text(value: Any, kind: FieldType) -> str | None:
    """A value as text in the form of its column's type. Nanoseconds are cut to microseconds.

    Raises:
        UnfitMessage: it is none of its type, or a time outside of the years 1 to 9999.
    """
    meaning = kind.meaning
    if meaning == _DECIMAL:
        return text_of(value) if isinstance(value, NumberText) else _unscaled(value, kind.scale)
    if meaning == _VARIABLE_DECIMAL and isinstance(value, dict):
        scale = whole_number(value.get("scale"))
        if scale is None or abs(scale) > _SCALE_MAX:
            raise UnfitMessage("type", "a decimal of variable scale has a scale")
        return _unscaled(value.get("value"), scale)
    if meaning in _DATES or meaning in _TIMES:
        return _moment(value, meaning)
    return text_of(value)


def _unscaled(value: Any, scale: int) -> str:
    """The decimal whose digits are the bytes of a whole number, highest first, in base64."""
    try:
        whole = int.from_bytes(base64.b64decode(str(value), validate=True), signed=True)
        made = Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -scale))
    except (binascii.Error, ValueError):
        raise UnfitMessage("type", "a decimal of Kafka Connect is a number in base64") from None
    return format(made, "f")


def _moment(value: Any, meaning: str) -> str:
    number = whole_number(value)
    if number is None:
        raise UnfitMessage("type", f"{meaning} is a whole number")
    try:
        if meaning in _DATES:
            return str((_EPOCH + datetime.timedelta(days=number)).date())
        times, over, is_of_day = _TIMES[meaning]
        microseconds = number * times // over
        if is_of_day:
            return _of_day(microseconds)
        return str(_EPOCH + datetime.timedelta(microseconds=microseconds))
    except OverflowError:
        raise UnfitMessage("type", f"{meaning} {number} is no time of the calendar") from None


def _of_day(microseconds: int) -> str:
    """A time of a day, or a longer or negative duration, as MySQL writes it."""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    parts = f"{hour:02}:{minute:02}:{second:02}" + (f".{fraction:06}" if fraction else "")
    return f"-{parts}" if microseconds < 0 else parts
