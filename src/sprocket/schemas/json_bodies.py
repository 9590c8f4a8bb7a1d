"""Bodies of JSON. Pure."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from sprocket.schemas.body_codec import DEPTH_MAX
from sprocket.schemas.errors import BodyMismatch

_BOM = b"\xef\xbb\xbf"


class JsonBodies:
    """JSON without a schema: whatever is JSON fits.

    Whole numbers of any size stay exact. NaN and infinity are no JSON, and are refused both ways.
    """

    content_type = "application/json"

    def decode(self, body: bytes) -> Any:
        """The value of a JSON text; see `BodyCodec.decode`."""
        try:
            value = msgspec.json.decode(body.removeprefix(_BOM))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BodyMismatch(f"it is no JSON: {_short(error)}") from None
        check_depth(body, value)
        return value

    def encode(self, value: Any) -> bytes:
        """A value as JSON; see `BodyCodec.encode`."""
        try:
            _refuse_unequal(value, 0)
            return msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise BodyMismatch(f"it cannot be JSON: {_short(error)}") from None

    def checked(self, body: bytes) -> bytes:
        """A body of JSON that another library made, if it fits.

        Raises:
            BodyMismatch: as `decode`.
        """
        return body

    async def prepare(self, body: bytes | None) -> None:
        """Nothing has to be fetched."""


def check_depth(text: bytes, value: Any) -> None:
    """Raises BodyMismatch for a decoded value that is nested too deep."""
    # Almost no text has so many brackets at all.
    if text.count(b"[") + text.count(b"{") <= DEPTH_MAX:
        return
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner += [one for one in each.values() if isinstance(one, dict | list)]
            elif isinstance(each, list):
                inner += [one for one in each if isinstance(one, dict | list)]
        if not inner:
            return
        level = inner
    raise BodyMismatch(f"it is nested deeper than {DEPTH_MAX} levels")


def _refuse_unequal(value: Any, depth: int) -> None:
    """Raises ValueError for numbers that JSON does not have, which msgspec would make null."""
    if depth > DEPTH_MAX:
        raise ValueError(f"it is nested deeper than {DEPTH_MAX} levels")
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} is no number of JSON")
    elif isinstance(value, dict):
        for each in value.values():
            _refuse_unequal(each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            _refuse_unequal(each, depth + 1)
    elif value is not None and not isinstance(value, str | int | bytes | Decimal):
        plain = msgspec.to_builtins(value)  # of a dataclass, a set and the like
        if not isinstance(plain, str):
            _refuse_unequal(plain, depth + 1)


def _short(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return f"it is nested deeper than {DEPTH_MAX} levels"
    return str(error)[:200] or type(error).__name__
