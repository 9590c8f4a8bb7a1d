"""Converts property texts to numbers and booleans as Java does, for comparisons with them. Pure.

Source: Integer.valueOf, Long.valueOf, Double.valueOf and Boolean.valueOf of Java.
"""

from __future__ import annotations

import re

#: The texts that Double.valueOf accepts.
_DOUBLE = re.compile(
    r"([+-]?)(?:(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[fFdD]?)|(Infinity)"
    r"|(0[xX](?:[\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+)[fFdD]?)",
    re.ASCII,
)
#: A longer text is no number here, even if it begins with zeros.
_DIGITS_MAX = 400
_CONTROLS = "".join(map(chr, range(0x21)))


class NotComparable(ValueError):
    """A property's text is no number of the type that it is compared with."""


def as_int(text: str) -> int:
    """Converts a text to a whole number of 32 bits.

    Raises:
        NotComparable: it is no such number.
    """
    if text.isdecimal() and len(text) < 10:
        return int(text)
    return _whole(text, 2**31)


def as_long(text: str) -> int:
    """Converts a text to a whole number of 64 bits.

    Raises:
        NotComparable: it is no such number.
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
    """Converts a text to a decimal number. NaN counts as no number.

    Raises:
        NotComparable: it is no number.
    """
    # Python's `float` is fast but accepts more than Java: underscores and other scripts' digits. It
    # lacks Java's `1f` and `0x1p3`. Such texts, and infinities, go through the regular expression.
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
    """Whether a text is `true` in any letter case; None stays None."""
    return None if text is None else text.lower() == "true"
