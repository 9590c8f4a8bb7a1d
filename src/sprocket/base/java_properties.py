"""Reads Java's properties files. Pure.

Source: java.util.Properties.load of JDK 8 to 21: lines end at CR, LF or both; blanks are blank,
tab and form feed and nothing else; comments begin with `#` or `!`; a key ends at `=`, `:` or a
blank; a line that ends with an odd number of backslashes continues in the next; `\\uXXXX` and the
like are escapes. Unlike Java, values lose the blanks behind them: Java's broker ignores numbers
and booleans that have some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLANKS = " \t\f"
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:\\.|[^\\=: \t\f])*)([ \t\f]*[=:]?)[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_HALF_ESCAPE = re.compile(r"(?:^|[^\\])(?:\\\\)*(\\u(?![0-9a-fA-F]{4}).{0,4})")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class JavaProperty(NamedTuple):
    """One logical line of a file.

    Attributes:
        line: the number of its first line, from 1.
        is_pair: whether there is a `=` or `:` between key and value.
        damage: an escape that is none, which Java refuses; None if there is none.
    """

    line: int
    key: str
    value: str
    is_pair: bool = True
    damage: str | None = None


def properties(text: str) -> Iterator[JavaProperty]:
    """Yields the properties of a file, in its order; repeated keys come repeatedly."""
    lines = iter(enumerate(_LINE_END.split(text), 1))
    for number, line in lines:
        logical = line.lstrip(_BLANKS)
        if not logical or logical[0] in "#!":
            continue
        while (len(logical) - len(logical.rstrip("\\"))) % 2:
            logical = logical[:-1] + next(lines, (0, ""))[1].lstrip(_BLANKS)
        found = _KEY.match(logical)
        assert found is not None  # the expression matches any text
        key, between, value = found.groups()
        damage = _HALF_ESCAPE.search(logical)
        yield JavaProperty(
            number,
            _unescape(key),
            _unescape(value.rstrip(_BLANKS)),
            bool(between.strip(_BLANKS)),
            damage and damage[1],
        )


def _unescape(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _CONTROL.get(escaped, escaped)

    # Java's characters are UTF-16, so that a character above U+FFFF is two escapes.
    found = _ESCAPE.sub(plain, text)
    return _SURROGATE_PAIR.sub(lambda pair: _joined(pair[0]), found)


_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def _joined(pair: str) -> str:
    return pair.encode("utf-16", "surrogatepass").decode("utf-16")
