"""Bodies of messages as text, as JSON with its lines, or in hex. Pure.

A body is hostile: what is made here is text, and is shown as text and never as HTML. Characters
that a screen does not show, or that turn the direction of what follows, are shown by their number.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

#: Decodes a body by a schema, such as Avro's or Protobuf's: topic and body in, text out. None if
#: it has no schema for the topic. It raises ValueError if the body does not fit the schema.
BodyDecoder = Callable[[str, bytes], str | None]

#: Characters of a body that are shown.
SHOWN_MAX = 200_000
_LINE_BYTES = 16


@dataclass(frozen=True, slots=True)
class BodyForm:
    """A body in one form.

    Attributes:
        name: of the form, such as `JSON`.
        text: what is shown.
        is_cut: whether the body has more than is shown.
    """

    name: str
    text: str
    is_cut: bool = False


def body_forms(
    topic: str, body: bytes, decoders: Mapping[str, BodyDecoder] | None = None
) -> list[BodyForm]:
    """A body in each form that it has, the most telling first; hex is always the last.

    Args:
        decoders: of schemas, by the name of their form.
    """
    forms = []
    for name, decode in (decoders or {}).items():
        try:
            text = decode(topic, body)
        except ValueError as error:
            text = f"it does not fit the schema: {error}"
        if text is not None:
            forms.append(_form(name, text))
    if (text := json_text(body)) is not None:
        forms.append(_form("JSON", text))
    if (text := plain_text(body)) is not None:
        forms.append(_form("Text", text))
    forms.append(BodyForm("Hex", hex_text(body[: SHOWN_MAX // 4]), len(body) > SHOWN_MAX // 4))
    return forms


def _form(name: str, text: str) -> BodyForm:
    return BodyForm(name, visible(text[:SHOWN_MAX]), len(text) > SHOWN_MAX)


def plain_text(body: bytes) -> str | None:
    """A body as text; None if it is no UTF-8, or contains zero bytes."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def json_text(body: bytes) -> str | None:
    """A body of JSON with its lines; None if it is none, or only a number or a word."""
    if body[:1] not in (b"{", b"[") and body.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        return msgspec.json.format(body, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def hex_text(body: bytes) -> str:
    """A body as lines of offset, 16 bytes in hex, and their letters."""
    lines = []
    for start in range(0, len(body), _LINE_BYTES):
        piece = body[start : start + _LINE_BYTES]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        lines.append(f"{start:08x}  {piece.hex(' '):<{_LINE_BYTES * 3}} {letters}")
    return "\n".join(lines)


def visible(text: str) -> str:
    """A text whose unseen characters are shown by their number; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        each
        if each in "\n\t" or each.isprintable() or unicodedata.category(each) == "Zs"
        else f"\\u{{{ord(each):x}}}"
        for each in text
    )


def first_line(text: str | None, length: int = 80) -> str:
    """The beginning of a text in one line, for tables."""
    if not text:
        return ""
    line = visible(" ".join(text[: length * 4].split()))
    return line if len(line) <= length else f"{line[: length - 1]}…"
