"""RocketMQ's `rmq-proxy.json`: the settings of its proxy, one object of names and values. Pure.

It becomes text as in RocketMQ's other files, each setting on the line that it has in the file, so
that all that is said about settings of RocketMQ holds for these too.
"""

from __future__ import annotations

import json
import re
from typing import Any


def is_json(text: str) -> bool:
    """Whether a file is JSON: its first character says so, which no other file begins with."""
    return text.lstrip()[:1] == "{"


def as_properties(text: str) -> str:
    """The settings of a JSON object as `name=value` lines.

    Raises:
        ValueError: it is no such object; the text says what is wrong, and where.
    """
    try:
        found = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    lines = [""] * (text.count("\n") + 1)
    for name, value in found.items():
        at = _line_of(text, name)
        entry = f"{_escaped(name)}={_escaped(_plain(name, value))}"
        lines[at] = entry if not lines[at] else f"{lines[at]}\n{entry}"
    return "\n".join(lines)


def _plain(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"the value of {name[:100]!r} is neither a text nor a number")


def _escaped(text: str) -> str:
    """A text that Java's properties read as it is."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _line_of(text: str, name: str) -> int:
    """The index of the line on which a name stands; the first if it is written in another way."""
    found = re.search(rf"{re.escape(json.dumps(name))}\s*:", text)
    return 0 if found is None else text.count("\n", 0, found.start())
