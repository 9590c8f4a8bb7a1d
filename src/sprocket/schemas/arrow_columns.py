"""Plain values as Arrow columns: each row has its value, or why it has none. Pure.

Nothing is rounded, cut or wrapped to fit. What JSON writes as a text where the column is a time, a
decimal or binary (base64) is read as such. A field that the column has and the value has not is
null; one that the column has not is left out.
"""

from __future__ import annotations

import base64
import binascii
import decimal
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa

from sprocket.base.errors import UsageError
from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.shown import json_of

#: Makes of a plain value what Arrow takes for one type, or raises BodyMismatch.
_Fit = Callable[[Any], Any]

_INT_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_DURATION_MAX = timedelta(microseconds=(1 << 63) - 1)
_FLOAT32_MAX = 3.4028235677973366e38


class ValueColumn:
    """Makes columns of one type.

    Args:
        kind: the type.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._fit = _fit(kind)

    def fitted(self, value: Any) -> Any:
        """A plain value as `array` takes it.

        Raises:
            BodyMismatch: it does not fit the type; the text says where and why.
        """
        return None if value is None else self._fit(value)

    def array(self, fitted: Sequence[Any]) -> pa.Array:
        """The column of values that `fitted` has made."""
        return pa.array(fitted, self._kind)


def _fit(kind: pa.DataType) -> _Fit:
    if pa.types.is_struct(kind):
        return _struct(kind)
    if pa.types.is_list(kind):
        return _list(_fit(kind.value_type))
    if pa.types.is_map(kind):
        return _map(_key(kind.key_type), _fit(kind.item_type))
    if kind in _INT_BITS:
        return _int(_INT_BITS[kind])
    if pa.types.is_floating(kind):
        return _float(is_single=kind == pa.float32())
    if pa.types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return _timestamp(has_zone=kind.tz is not None)
    for is_kind, fit in _PLAIN:
        if is_kind(kind):
            return fit
    raise UsageError(f"a column of {kind} cannot hold decoded values")


def _struct(kind: pa.DataType) -> _Fit:
    fields = [kind.field(at) for at in range(kind.num_fields)]
    fits = [(one.name, one.nullable, _fit(one.type)) for one in fields]

    def fit(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _wrong(value, "an object")
        made: dict[str, Any] = {}
        for name, is_nullable, inner in fits:
            found = value.get(name)
            if found is None:
                if not is_nullable:
                    raise BodyMismatch(f"{name} is missing")
                made[name] = None
                continue
            try:
                made[name] = inner(found)
            except BodyMismatch as error:
                raise BodyMismatch(f"{name}: {error}") from None
        return made

    return fit


def _list(item: _Fit) -> _Fit:
    def fit(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise _wrong(value, "a list")
        return [None if each is None else item(each) for each in value]

    return fit


def _map(key: _Fit, item: _Fit) -> _Fit:
    def fit(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _wrong(value, "a map")
        return [(key(name), None if each is None else item(each)) for name, each in value.items()]

    return fit


def _key(kind: pa.DataType) -> _Fit:
    inner = _fit(kind)
    if kind in _INT_BITS:
        # Keys of JSON are always texts.
        return lambda value: inner(int(value) if _is_digits(value) else value)
    return inner


def _is_digits(value: Any) -> bool:
    if not isinstance(value, str) or not value.isascii() or len(value) > 20:
        return False
    return value.removeprefix("-").isdecimal()


def _int(bits: int) -> _Fit:
    limit = 1 << (bits - 1)

    def fit(value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON does not tell 1.0 from 1
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(value, "a whole number")
        if not -limit <= value < limit:
            raise BodyMismatch(f"{_short(value)} has more than {bits} bits")
        return value

    return fit


def _float(*, is_single: bool) -> _Fit:
    def fit(value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(value, "a number")
        try:
            found = float(value)
        except OverflowError:
            raise BodyMismatch(f"{_short(value)} is too large") from None
        if is_single and _FLOAT32_MAX <= abs(found) < float("inf"):
            raise BodyMismatch(f"{_short(value)} is too large for a float")
        return found

    return fit


def _decimal(precision: int, scale: int) -> _Fit:
    exact = decimal.Context(prec=precision, traps=[decimal.Inexact, decimal.InvalidOperation])
    unit = Decimal(1).scaleb(-scale)

    def fit(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, Decimal | int | float | str):
            raise _wrong(value, "a decimal")
        try:
            found = Decimal(repr(value) if isinstance(value, float) else value)
            if not found.is_finite():
                raise ValueError
            return found.quantize(unit, context=exact)
        except (decimal.DecimalException, ValueError):
            raise BodyMismatch(
                f"{_short(value)} is no decimal of {precision} digits, {scale} of them fractions"
            ) from None

    return fit


def _timestamp(*, has_zone: bool) -> _Fit:
    def fit(value: Any) -> datetime:
        found = _converted(value, datetime) if isinstance(value, str) else value
        if not isinstance(found, datetime):
            raise _wrong(value, "a time")
        if (found.tzinfo is not None) != has_zone:
            zone = "has no time zone" if has_zone else "has a time zone"
            raise BodyMismatch(f"the time {_short(value)} {zone}")
        try:
            return found.astimezone(UTC) if has_zone else found
        except (OverflowError, ValueError):
            raise BodyMismatch(f"{_short(value)} is outside the years 1 to 9999") from None

    return fit


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, "true or false")
    return value


def _string(value: Any) -> str:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BodyMismatch("a text is no Unicode") from None
        return value
    found = json_of(value)
    # Times, decimals and the like are texts by themselves, without quotes.
    return found[1:-1] if found[:1] == '"' and not isinstance(value, dict | list) else found


def _binary(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise BodyMismatch("a text is no base64") from None
    if not isinstance(value, bytes | bytearray):
        raise _wrong(value, "bytes")
    return bytes(value)


def _date(value: Any) -> date:
    found = _converted(value, date) if isinstance(value, str) else value
    if not isinstance(found, date) or isinstance(found, datetime):
        raise _wrong(value, "a date")
    return found


def _duration(value: Any) -> timedelta:
    if not isinstance(value, timedelta):
        raise _wrong(value, "a duration")
    if abs(value) > _DURATION_MAX:
        raise BodyMismatch(f"a duration of {value.days} days is too long")
    return value


_PLAIN: tuple[tuple[Callable[[pa.DataType], bool], _Fit], ...] = (
    (pa.types.is_boolean, _boolean),
    (pa.types.is_string, _string),
    (pa.types.is_binary, _binary),
    (pa.types.is_date32, _date),
    (pa.types.is_duration, _duration),
)


def _converted(value: str, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, ValueError):
        raise BodyMismatch(f"{_short(value)} is no {kind.__name__} by ISO 8601") from None


def _wrong(value: Any, wanted: str) -> BodyMismatch:
    return BodyMismatch(f"{_short(value)} is not {wanted}")


def _short(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    text = repr(value) if isinstance(value, int | float | str | Decimal) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:60]}…"
