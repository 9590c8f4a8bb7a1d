"""Reads and writes the JSON dialect of fastjson.

RocketMQ's Java side writes maps whose keys are not texts with bare keys: `{0:"a"}`, and even
`{{"brokerName":"b","queueId":0,"topic":"t"}:5}`. Its reader also accepts unquoted names, single
quotes and superfluous commas, and clients in other languages rely on that.

`parse` reads all of this and standard JSON; use it after a standard parser has refused. It is
plain Python, some megabytes a second, so its input is bounded in size and depth; where the event
loop waits for it (`REQUEST_BYTES_MAX`, `values_max`), so that it takes some milliseconds.
`write` writes the dialect. Source: JSON, JSONLexer of fastjson 1.2; recorded frames.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import msgspec

from sprocket.base.errors import RemoteProtocolError

BYTES_MAX = 1 << 20
#: The longest body of a request to a server.
REQUEST_BYTES_MAX = 128 << 10
DEPTH_MAX = 32
#: The most escapes that the standard library cannot read: each takes some 0.4 µs.
ESCAPES_MAX = 16_384

#: The largest number as a key. Up to this one, no two numbers have the same hash.
KEY_MOST = 2**60

_BLANK = re.compile(r"[\s,]*")
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"|\'([^\'\\]*(?:\\.[^\'\\]*)*)\'', re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,5})?")
_NAME = re.compile(r"[^\W\d][\w$.-]*|[$][\w$.-]*")
_COLON = re.compile(r"\s*:")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_PLAIN_ESCAPES = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0",
    '"': '"', "'": "'", "\\": "\\", "/": "/",
}  # fmt: skip
_WORDS = {"true": True, "false": False, "null": None}
_SURROGATE = re.compile("[\ud800-\udfff]")

_text_encoder = msgspec.json.Encoder()
_read_standard = json.JSONDecoder(strict=False).decode


class ObjectKey(dict[str, Any]):
    """An object that is a key of another object. Its values are texts, numbers and booleans."""

    def __hash__(self) -> int:  # type: ignore[override]
        # The hash of a text is salted. With the hashes of numbers, a sender could choose keys that
        # all collide. The items are sorted as texts too, since numbers and texts have no order.
        return hash(repr(sorted(map(repr, self.items()))))


def parse(
    data: bytes | bytearray | memoryview,
    *,
    bytes_max: int = BYTES_MAX,
    depth_max: int = DEPTH_MAX,
    values_max: int = BYTES_MAX,
) -> Any:
    """Parses one value.

    Args:
        bytes_max, depth_max: the longest and the deepest accepted text.
        values_max: the most values in it, keys that are objects included.

    Returns:
        The same as `json.loads`; unquoted numeric keys are ints, objects as keys `ObjectKey`s.

    Raises:
        RemoteProtocolError: it is not even fastjson's JSON, or too long, or nested too deeply.
    """
    if len(data) > bytes_max:
        raise RemoteProtocolError(f"no JSON, and too long to look closer: {len(data)} bytes")
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"JSON is not UTF-8: {error}") from None
    reader = _JsonReader(text, depth_max, values_max)
    value = reader.value(0)
    reader.end()
    return value


class _JsonReader:
    """Parses one text by recursive descent. Commas count as blanks, since any number is allowed."""

    # Each token is one match of a regular expression at the current position, so most of the work
    # is done in C. The depth is limited, since the text comes from outside and recursion would
    # exhaust the stack.

    __slots__ = ("_at", "_depth_max", "_escapes_left", "_text", "_values_left")

    def __init__(self, text: str, depth_max: int, values_max: int) -> None:
        self._text = text
        self._at = 0
        self._depth_max = depth_max
        self._values_left = values_max
        self._escapes_left = ESCAPES_MAX

    def value(self, depth: int) -> Any:
        self._count_value()
        first = self._peek()
        if first == '"' or first == "'":
            return self._string()
        if first == "{":
            return self._object(depth + 1)
        if first == "[":
            return self._array(depth + 1)
        return self._word_or_number()

    def _count_value(self) -> None:
        self._values_left -= 1
        if self._values_left < 0:
            self._refuse("too many values")

    def end(self) -> None:
        if self._peek():
            self._refuse("something after the value")

    def _peek(self) -> str:
        """Skips blanks and commas. Returns the next character, or an empty text at the end."""
        at = self._at
        character = self._text[at : at + 1]
        if character in " \t\r\n,\f\b" or character.isspace():
            match = _BLANK.match(self._text, at)
            self._at = at = match.end() if match else at
            character = self._text[at : at + 1]
        return character

    def _open(self, depth: int) -> None:
        if depth > self._depth_max:
            self._refuse("nested too deeply")
        self._at += 1

    def _object(self, depth: int) -> dict[Any, Any]:
        self._open(depth)
        found: dict[Any, Any] = {}
        while True:
            first = self._peek()
            if first == "}":
                self._at += 1
                return found
            key = self._key(first, depth)
            colon = _COLON.match(self._text, self._at)
            if colon is None:
                self._refuse("no colon after a key")
            self._at = colon.end()
            found[key] = self.value(depth)

    def _key(self, first: str, depth: int) -> Any:
        if first == '"' or first == "'":
            return self._string()
        if first == "{":
            self._count_value()
            inner = self._object(depth + 1)
            if any(isinstance(value, dict | list) for value in inner.values()):
                self._refuse("an object with parts is a key")
            return ObjectKey(inner)
        name = _NAME.match(self._text, self._at)
        if name is not None:
            self._at = name.end()
            return name.group()
        number = self._word_or_number()
        if not isinstance(number, int) or abs(number) > KEY_MOST:
            self._refuse("no key")
        return number

    def _array(self, depth: int) -> list[Any]:
        self._open(depth)
        found: list[Any] = []
        while self._peek() != "]":
            found.append(self.value(depth))
        self._at += 1
        return found

    def _string(self) -> str:
        match = _STRING.match(self._text, self._at)
        if match is None:
            self._refuse("a text does not end")
        self._at = match.end()
        text = match[1] if match[1] is not None else match[2]
        return self._unescaped(text) if "\\" in text else text

    def _unescaped(self, text: str) -> str:
        # The standard library reads most texts, several times faster than the regular expression.
        try:
            plain: str = _read_standard(f'"{text}"')
        except ValueError:
            self._escapes_left -= text.count("\\")
            if self._escapes_left < 0:
                self._refuse("too many unusual escapes")
            plain = _ESCAPE.sub(_unescape_one, text)
        if _SURROGATE.search(plain):
            # A surrogate pair becomes one character; a single surrogate becomes U+FFFD.
            plain = plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return plain

    def _word_or_number(self) -> Any:
        match = _NUMBER.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
            return _number(match)
        match = _NAME.match(self._text, self._at)
        if match is None or match[0] not in _WORDS:
            self._refuse("no value")
        self._at = match.end()
        return _WORDS[match[0]]

    def _refuse(self, why: str) -> NoReturn:
        raise RemoteProtocolError(f"JSON cannot be read at character {self._at}: {why}")


def _number(match: re.Match[str]) -> int | float:
    if match[1] is None and match[2] is None:
        number = int(match[0])
        if -(2**63) <= number < 2**64:
            return number
    return float(match[0])


def _unescape_one(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    plain = _PLAIN_ESCAPES.get(escape)
    if plain is None:
        raise RemoteProtocolError(f"JSON has an unknown escape: \\{escape}")
    return plain


def write(value: Any) -> bytes:
    """Encodes a value as fastjson does: structs, dicts, lists, texts, numbers, booleans, None.

    A struct's fields are sorted by wire name and None fields are left out. Keys that are numbers
    or structs are written bare.
    """
    parts: list[str] = []
    _write(value, parts.append)
    return "".join(parts).encode("utf-8")


def _write(value: Any, put: Any) -> None:
    if isinstance(value, msgspec.Struct):
        _write_entries(entries(value), put)
    elif isinstance(value, dict):
        _write_entries(list(value.items()), put)
    elif isinstance(value, list | tuple | set | frozenset):
        opening = "["
        for item in value:
            put(opening)
            _write(item, put)
            opening = ","
        put("]" if opening == "," else "[]")
    else:
        put(_text_encoder.encode(value).decode("utf-8"))


def _write_entries(entries: list[tuple[Any, Any]], put: Any) -> None:
    opening = "{"
    for key, value in entries:
        if value is None:
            continue
        put(opening)
        _write(key, put)
        put(":")
        _write(value, put)
        opening = ","
    put("}" if opening == "," else "{}")


def entries(value: msgspec.Struct) -> list[tuple[Any, Any]]:
    """A struct's fields by wire name, in the order in which `write` writes them."""
    names = value.__struct_encode_fields__
    return sorted(zip(names, msgspec.structs.astuple(value), strict=True))
