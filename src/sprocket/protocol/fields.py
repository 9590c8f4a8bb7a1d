"""Converts header fields between texts and their declared types.

On the wire a header's fields are a flat map of texts (`extFields`). Java writes every value as a
JSON string; other clients write bare numbers and booleans, or null for a missing value. All of
these are read. On the fast path msgspec decodes straight into the declared struct; only a header
that it refuses is read field by field, which also yields an error that names the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import astuple

from sprocket.base.errors import RemoteProtocolError

S = TypeVar("S", bound=msgspec.Struct)

_TEXTS = msgspec.json.Decoder(dict[str, str])
_RAWS = msgspec.json.Decoder(dict[str, msgspec.Raw] | None)
_NULL = b"null"
#: The longest fields that are read one by one, which takes three times as long as by declaration.
_JSON_BYTES_MAX = 1 << 20
_ANY_TEXT = msgspec.json.Decoder(str)

#: The exceptions of msgspec for hostile input; RecursionError comes from deep nesting.
MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

#: Java's Integer.parseInt and Long.parseLong accept a sign and leading zeros.
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,40}", re.ASCII)

_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decoder_of(kind: type[S]) -> msgspec.json.Decoder[S]:
    """The cached decoder from a JSON object of texts to `kind`."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, strict=False)
    return decoder


def texts_in_json(raw: bytes | msgspec.Raw) -> dict[str, str]:
    """All fields of a JSON object as text. Null fields are left out; `null` itself has no fields.

    Raises:
        RemoteProtocolError: it is no JSON object, or too long.
    """
    if len(raw) > _JSON_BYTES_MAX:
        raise RemoteProtocolError(f"header fields of {len(raw)} bytes")
    try:
        return _TEXTS.decode(raw)
    except MALFORMED:
        pass
    try:
        raws = _RAWS.decode(raw) or {}
        return {
            name: _text(text) for name, value in raws.items() if (text := bytes(value)) != _NULL
        }
    except MALFORMED as error:
        raise RemoteProtocolError(f"header fields are no JSON object: {error}") from None


class _Fields(msgspec.Struct):
    ext_fields: msgspec.Raw = msgspec.field(default=msgspec.Raw(_NULL), name="extFields")


_FIELDS = msgspec.json.Decoder(_Fields)


def fields_in_header(header: bytes) -> msgspec.Raw:
    """The undecoded fields of a JSON header that has been decoded as a whole before."""
    return _FIELDS.decode(header).ext_fields


def _text(text: bytes) -> str:
    return _ANY_TEXT.decode(text) if text[:1] == b'"' else text.decode("utf-8")


def from_texts(texts: Mapping[str, str], kind: type[S]) -> S:
    """Reads a declared header from its fields as text. Unknown fields are ignored.

    Raises:
        RemoteProtocolError: a field is missing or ill-typed; the text names it.
    """
    try:
        return msgspec.convert(texts, kind, strict=False)
    except msgspec.ValidationError:
        return _one_by_one(texts, kind)


def _one_by_one(texts: Mapping[str, str], kind: type[S]) -> S:
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        text = texts.get(field.encode_name)
        if text or (text is not None and _takes_text(field)):
            values[field.name] = _value(text, field, kind)
        elif field.required:
            raise RemoteProtocolError(f"the custom field <{field.encode_name}> is null")
    return kind(**values)


def _takes_text(field: msgspec.structs.FieldInfo) -> bool:
    """Whether an empty text is a valid value; for a number it means that the field is missing."""
    try:
        msgspec.convert("", field.type)
    except msgspec.ValidationError:
        return False
    return True


def _value(text: str, field: msgspec.structs.FieldInfo, kind: type[Any]) -> Any:
    """Converts one field's text to its declared type by Java's rules: all but `true` is false."""
    # msgspec accepts fewer texts than Java. So it is offered each reading of the text in turn: the
    # text itself, a whole number as Java parses it, and at last a boolean.
    candidates: list[Any] = [text, text.lower() == "true"]
    if _WHOLE_NUMBER.fullmatch(text):
        candidates.insert(1, int(text))
    for candidate in candidates:
        strict = isinstance(candidate, bool)
        try:
            return msgspec.convert(candidate, field.type, strict=strict)
        except msgspec.ValidationError:
            continue
    shown = text if len(text) <= 64 else text[:64] + "…"
    raise RemoteProtocolError(f'the custom field <{field.encode_name}> cannot be "{shown}"')


def to_texts(header: msgspec.Struct) -> dict[str, str]:
    """A declared header as the map of texts for the wire. None fields are left out."""
    names = header.__struct_encode_fields__
    return {
        name: _TEXT_OF[value.__class__](value)
        for name, value in zip(names, astuple(header), strict=False)
        if value is not None
    }


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


class _TextOf(dict[type[Any], Callable[[Any], str]]):
    """The function that writes a type as text; `str` for types not listed, as subclasses of int."""

    def __missing__(self, kind: type[Any]) -> Callable[[Any], str]:
        return str


#: For a number, `repr` is faster than `str`.
_TEXT_OF = _TextOf({str: str, int: repr, bool: _boolean_text})
