"""Texts become values of settings. Pure.

Whole numbers are decimal; sizes may also be `64MiB`, `1GiB`, `512K` (powers of 1024); booleans are
true/false, yes/no, on/off, 1/0; `;` or `,` separates a list's texts; a choice is found in any
letter case.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sprocket.base.config import SECRET_MASK, Declared
from sprocket.base.decoding import undecoded
from sprocket.base.errors import ConfigError
from sprocket.base.java_properties import properties


def from_text(declared: Declared, text: str) -> Any:
    """Converts a text to a setting's value.

    Raises:
        ConfigError: it cannot be read as the setting's type; the text says what is wanted and
            does not name the setting.
    """
    if wrong := undecoded(text):
        raise ConfigError(
            f"is not UTF-8 ({wrong}); save the file in UTF-8, or write \\uXXXX in a broker.conf"
        )
    text = text.strip()
    if declared.about.choices is not None:
        folded = {choice.lower(): choice for choice in declared.about.choices}
        return folded.get(text.lower(), text)
    if declared.optional and not text:
        return None
    try:
        return _size(text) if declared.is_size else _READ[declared.type](text)
    except ValueError:
        raise ConfigError(f"takes {declared.takes()}, not {declared.shown(text)}") from None


def to_text(value: Any) -> str:
    """The text of a setting's value, which `from_text` reads as that value."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ";".join(map(str, value))
    return str(value)


def shown_settings(text: str, known: Mapping[str, Declared]) -> str:
    """Lines of `key=value` as one line for logs: without secrets, and without values of names that
    are not known, which may be anything."""
    shown = []
    for each in properties(text):
        declared = known.get(each.key)
        if declared is None:
            shown.append(each.key)
        else:
            value = SECRET_MASK if declared.about.is_secret else each.value
            shown.append(f"{each.key}={value}")
    return " ".join(" ".join(shown).split())


def without_masks(text: str) -> str:
    """Lines of `key=value` of a request, without those of a listing that stand for a secret."""
    pattern = rf"^[^=:\n]*[=:][ \t]*{re.escape(SECRET_MASK)}[ \t]*\r?$"
    return re.sub(pattern, "", text, flags=re.MULTILINE)


_SIZE = re.compile(r"(-?[\d_]+)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return int(match[1]) << (10 * " KMGT".index(match[2].upper() or " "))


def _truth(text: str) -> bool:
    folded = text.lower()
    if folded not in _TRUTHS:
        raise ValueError(text)
    return _TRUTHS[folded]


def _texts(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in re.split(r"[;,]", text) if each.strip())


_TRUTHS = {"true": True, "yes": True, "on": True, "1": True} | {
    "false": False, "no": False, "off": False, "0": False
}  # fmt: skip
_READ: dict[type, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: _truth,
    str: str,
    tuple: _texts,
}
