"""Texts as values of columns, exactly or not at all. Pure.

A number that a column cannot hold without rounding, a date that does not exist and a text that is
no UTF-8 are refused: what is applied is what was sent.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation
from functools import lru_cache
from typing import Any

from sprocket.spark.pipelines.changes.json_values import UnfitMessage

#: Reads a text as a value, or raises ValueError or an error of `decimal`.
Fit = Callable[[str], Any]

_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.([0-9]{1,9}))?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_WORDS = {"true": True, "1": True, "false": False, "0": False}
_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_EXACT_MAX = 9_999


def fit(kind: str) -> Fit:
    """What reads texts as values of a type.

    Raises:
        ValueError: columns of the type cannot be filled from messages.
    """
    if kind in _INTEGERS:
        return _integer(_INTEGERS[kind])
    if (match := _DECIMAL.fullmatch(kind)) is not None:
        return _decimal(int(match[1]), int(match[2]))
    if kind not in _PLAIN:
        raise ValueError(kind)
    return _PLAIN[kind]


@lru_cache(maxsize=10_000)
def _known(kind: str) -> Fit:
    return fit(kind)


def fitted(name: str, text: str | None, kind: str) -> Any:
    """The value of a column.

    Raises:
        UnfitMessage: the text is no value of the type.
    """
    if text is None:
        return None
    try:
        return _known(kind)(text)
    except (ValueError, OverflowError, DecimalException):
        raise UnfitMessage("type", f"{name!a} is {kind}, and cannot be {text[:80]!a}") from None


def _text(text: str) -> str:
    text.encode()  # half a surrogate pair cannot be stored
    return text


def _boolean(text: str) -> bool:
    value = _WORDS.get(text.lower())
    if value is None:
        raise ValueError(text)
    return value


def _integer(bits: int) -> Fit:
    most = 1 << (bits - 1)

    def fit_integer(text: str) -> int:
        if _WHOLE.fullmatch(text) is None or not -most <= (number := int(text)) < most:
            raise ValueError(text)
        return number

    return fit_integer


def _double(text: str) -> float:
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    if math.isinf(number):
        raise ValueError(text)
    return number


def _float(text: str) -> float:
    number = _double(text)
    if abs(number) > 3.4028235677973366e38:  # what rounds to the largest float of 32 bits
        raise ValueError(text)
    return number


def _decimal(digits: int, scale: int) -> Fit:
    exact = Context(prec=digits, traps=[Inexact, InvalidOperation])
    unit = Decimal((0, (1,), -scale))

    def fit_decimal(text: str) -> Decimal:
        if len(text) > _EXACT_MAX or _NUMBER.fullmatch(text) is None:
            raise ValueError(text)
        return Decimal(text).quantize(unit, context=exact)

    return fit_decimal


def _date(text: str) -> datetime.date:
    if _DATE.fullmatch(text) is None:
        raise ValueError(text)
    return datetime.date.fromisoformat(text)


def _local(text: str) -> datetime.datetime:
    at, zone = _moment(text)
    if zone is not None:
        raise ValueError(text)
    return at


def _instant(text: str) -> datetime.datetime:
    """A time with a zone; one without is in UTC."""
    at, zone = _moment(text)
    offset = None if zone in (None, "Z") else datetime.datetime.strptime(zone or "", "%z").tzinfo
    return at.replace(tzinfo=offset or datetime.UTC).astimezone(datetime.UTC)


def _moment(text: str) -> tuple[datetime.datetime, str | None]:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    day, time, fraction, zone = match.groups()
    at = datetime.datetime.fromisoformat(f"{day}T{time or '00:00'}")
    return at.replace(microsecond=int((fraction or "").ljust(6, "0")[:6])), zone


def _binary(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(text) from None


_PLAIN: dict[str, Fit] = {
    "string": _text, "boolean": _boolean, "float": _float, "double": _double, "date": _date,
    "timestamp_ntz": _local, "timestamp": _instant, "binary": _binary,
}  # fmt: skip
