"""JSON whose numbers stay the text that was sent, and its values as texts. Pure.

An amount such as `0.10` or a key of 20 digits goes through no binary number on its way to a typed
column.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn


class UnfitMessage(ValueError):
    """A message, or a change in it, that cannot be applied.

    Args:
        kind: one of few, by which such messages are counted.
        detail: what is wrong with this one.
    """

    def __init__(self, kind: str, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind


class NumberText(str):
    """A number of a JSON text, as it was written."""

    __slots__ = ()


def parsed(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        UnfitMessage: it is no JSON, or is nested too deeply.
    """
    try:
        whole = text.decode() if isinstance(text, bytes) else text
        return json.loads(
            whole, parse_int=NumberText, parse_float=NumberText, parse_constant=_refused
        )
    except RecursionError:
        raise UnfitMessage("no JSON", "it is nested too deeply") from None
    except ValueError as error:
        raise UnfitMessage("no JSON", str(error)) from None


def _refused(word: str) -> NoReturn:
    raise ValueError(f"{word} is no value of JSON")


def text_of(value: Any) -> str | None:
    """A value as text; objects and arrays as JSON. None stays None."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return _json(value)
    except RecursionError:
        raise UnfitMessage("no JSON", "it is nested too deeply") from None


def _json(value: Any) -> str:
    if isinstance(value, NumberText):
        return str(value)
    if isinstance(value, dict):
        members = (f"{_json(name)}:{_json(inner)}" for name, inner in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_json, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def whole_number(value: Any) -> int | None:
    """A number of at most 19 digits; None for anything else."""
    if isinstance(value, NumberText) and len(value) < 20:
        digits = value.removeprefix("-")
        if digits.isascii() and digits.isdecimal():
            return int(value)
    return None
