"""Bodies of messages as text, as JSON with its lines, or in hex. Pure.

A body is hostile: what is made here is text, and is shown as text and never as HTML. Characters
that a screen does not show, or that turn the direction of what follows, are shown by their number.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

import msgspec

from sprocket.base.errors import SprocketError
from sprocket.schemas.body_codec import BodyCodec
from sprocket.schemas.errors import BodyMismatch
from sprocket.schemas.framing import split
from sprocket.schemas.shown import json_of

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


async def schema_form(body: bytes, codec: BodyCodec) -> BodyForm | None:
    """A body decoded by the schema whose number it begins with; None if it begins with none.

    Args:
        codec: of a registry.
    """
    try:
        number = split(body).schema_id
    except BodyMismatch:
        return None
    try:
        await codec.prepare(body)
        text = json_of(codec.decode(body), indent=2)
    except SprocketError as error:  # it is shown where the value would be
        text = str(error)
    return _form(f"Schema {number}", text)


def body_forms(body: bytes, decoded: BodyForm | None = None) -> list[BodyForm]:
    """A body in each form that it has, the most telling first; hex is always the last.

    Args:
        decoded: it by its schema.
    """
    forms = [] if decoded is None else [decoded]
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
