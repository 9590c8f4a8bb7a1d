"""Whole numbers in texts that people write. Pure."""

from __future__ import annotations

import re

#: `int` also takes other alphabets' digits, underscores, and thousands of digits at a high price.
_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,30})\s*")


def whole_number(text: str) -> int | None:
    """The number in a text: ASCII digits, at most 30, perhaps with a sign and blanks around them.

    Returns:
        None if the text is something else.
    """
    found = _WHOLE.fullmatch(text)
    return None if found is None else int(found[1])
