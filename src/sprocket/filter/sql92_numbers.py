"""Texts as Java reads them, where a property is compared with something that is no text. Pure.

Source: Integer.valueOf, Long.valueOf, Double.valueOf and Boolean.valueOf of Java.
"""

from __future__ import annotations

import re

#: What Double.valueOf takes besides what Python's float takes alike.
_DOUBLE = re.compile(
    r"([+-]?)(?:(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[fFdD]?)|(Infinity)"
    r"|(0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?)",
    re.ASCII,
)
#: Longer ones are none, whatever zeros they begin with.
_DIGITS_MAX = 400
_CONTROLS = "".join(map(chr, range(0x21)))


class NotComparable(ValueError):
    """A property's text is no number of the kind that it is compared with."""


def as_int(text: str) -> int:
    """A whole number of 32 bits.

    Raises:
        NotComparable: it is none.
    """
    if text.isdecimal() and len(text) < 10:
        return int(text)
    return _whole(text, 2**31)


def as_long(text: str) -> int:
    """A whole number of 64 bits.

    Raises:
        NotComparable: it is none.
    """
    if text.isdecimal() and len(text) < 19:
        return int(text)
    return _whole(text, 2**63)


def _whole(text: str, beyond: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if digits.isdecimal() and len(digits) <= _DIGITS_MAX:
        value = int(text)
        if -beyond <= value < beyond:
            return value
    raise NotComparable(text)


def as_double(text: str) -> float:
    """A decimal number. Not-a-number is none.

    Raises:
        NotComparable: it is none.
    """
    try:
        value = float(text)
    except ValueError:
        return _rare_double(text)
    if value - value == 0 and text.isascii() and "_" not in text:
        return value
    return _rare_double(text)


def _rare_double(text: str) -> float:
    found = _DOUBLE.fullmatch(text.strip(_CONTROLS))
    if found is None:
        raise NotComparable(text)
    sign, plain, endless, hexadecimal = found.groups()
    if hexadecimal:
        return float.fromhex(sign + hexadecimal)
    return float(sign + (plain or endless))


def as_boolean(text: str | None) -> bool | None:
    """Whether it says true; None stays None."""
    return None if text is None else text.lower() == "true"
