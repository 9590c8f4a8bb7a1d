"""The JSON header of a frame.

    {"code":10,"extFields":{"topic":"t"},"flag":0,"language":"JAVA","opaque":1,"remark":"…",
     "serializeTypeCurrentRPC":"JSON","version":479}

Keys are written in this order, which is fastjson's: sorted. `remark` is left out if there is none.
Reading accepts any order; every key but `code` may be missing or null, unknown keys are ignored,
and a header that is no standard JSON is read as fastjson's dialect before it is refused.
Source: RemotingCommand, RemotingSerializable of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

import msgspec

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol import lenient_json
from sprocket.protocol.codes import LANGUAGE, LANGUAGE_NAMES, VERSION
from sprocket.protocol.command import HEADER_FIELDS_MAX, JSON, Command, H, Int
from sprocket.protocol.fields import MALFORMED, fields_in_header
from sprocket.protocol.requests.frequent import FREQUENT

#: Enough for 32 KiB of escaped properties.
_LENIENT_BYTES_MAX = 256 * 1024
#: The most values there: each takes some 3 µs, if it is a key 6.
_LENIENT_VALUES_MAX = 2_048
_NO_FIELDS = msgspec.Raw(b"null")
#: A field has four quotes, two if its value is a number; the rest of a header has less than 64.
_QUOTES_MAX = 4 * HEADER_FIELDS_MAX + 64
#: A shorter header is not counted.
_COUNTED_BYTES_MIN = 64 * 1024


class _Incoming(msgspec.Struct, rename="camel", gc=False):
    code: Int
    ext_fields: msgspec.Raw = _NO_FIELDS
    flag: Int = 0
    language: str | None = None
    opaque: Int = 0
    remark: str | None = None
    version: Int = 0


class _Whole(msgspec.Struct, Generic[H], rename="camel", gc=False):
    """A header whose fields have a known declaration, so that one pass decodes everything."""

    code: Int
    ext_fields: H
    flag: Int = 0
    language: str | None = None
    opaque: Int = 0
    remark: str | None = None
    version: Int = 0


class _Outgoing(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    # `omit_defaults` leaves out a None, but never a default that comes from a function.
    code: int
    ext_fields: Any = None
    flag: int = msgspec.field(default_factory=int)
    language: str = msgspec.field(default_factory=str)
    opaque: int = msgspec.field(default_factory=int)
    remark: str | None = None
    serialize_type: str = msgspec.field(name="serializeTypeCurrentRPC", default_factory=str)
    version: int = msgspec.field(default_factory=int)


_decode = msgspec.json.Decoder(_Incoming, strict=False).decode
_encode = msgspec.json.Encoder().encode

#: Without its type: mypy does not allow a variable as a parameter of a generic.
_whole: Any = _Whole
#: Decoders for the most frequent requests, by the first bytes of their headers.
_BEGINNING = 12
_OFTEN: dict[bytes, Callable[[bytes], Any]] = {
    (b'{"code":%d,"' % kind.code)[:_BEGINNING]: (
        msgspec.json.Decoder(_whole[kind], strict=False).decode
    )
    for kind in FREQUENT
}


def decode(header: bytes) -> Command:
    """Decodes a header; the command has no body yet.

    Raises:
        RemoteProtocolError: it is no JSON header, has no code, or too many fields.
    """
    # Quotes inside texts are escaped and do not count. The first quote of a name always does, since
    # no backslash can stand before it: so there are never more names than `_QUOTES_MAX`.
    if (
        len(header) >= _COUNTED_BYTES_MIN
        and header.count(b'"') - header.count(b'\\"') > _QUOTES_MAX
    ):
        raise RemoteProtocolError(f"a header has at most {HEADER_FIELDS_MAX} fields")
    # Three tries, the fastest first. The beginning of a header shows its code if `code` is its
    # first key, as Java writes it; then one pass of msgspec decodes the declared fields too. What
    # that refuses is read without its fields, and at last as fastjson's dialect in plain Python.
    # Decoding into structs is several times faster than any way with dicts (decision 2).
    decode_whole = _OFTEN.get(header[:_BEGINNING])
    if decode_whole is not None:
        try:
            whole = decode_whole(header)
        except MALFORMED:
            pass
        else:
            return Command(
                whole.code,
                whole.opaque,
                whole.flag,
                whole.language or "OTHER",
                whole.version,
                whole.remark,
                b"",
                JSON,
                header,
                whole.ext_fields,
            )
    try:
        found = _decode(header)
    except MALFORMED:
        found = _leniently(header)
    return Command(
        found.code,
        found.opaque,
        found.flag,
        found.language or "OTHER",
        found.version,
        found.remark,
        b"",
        JSON,
        found.ext_fields,
    )


def _leniently(header: bytes) -> _Incoming:
    value: Any = lenient_json.parse(
        header, bytes_max=_LENIENT_BYTES_MAX, values_max=_LENIENT_VALUES_MAX
    )
    if not isinstance(value, dict):
        raise RemoteProtocolError("a header that is no object")
    try:
        found = {key: item for key, item in value.items() if item is not None}
        found["extFields"] = msgspec.Raw(_encode(found.get("extFields")))
        if isinstance(found.get("language"), int):
            # fastjson accepts the number of an enum as well.
            found["language"] = LANGUAGE_NAMES.get(found["language"], "OTHER")
        return msgspec.convert(found, _Incoming, strict=False)
    except (*MALFORMED, TypeError) as error:  # TypeError: an object in place of a name
        raise RemoteProtocolError(f"no header: {error}") from None


def encode(command: Command) -> bytes:
    """Encodes a header.

    Raises:
        LocalProtocolError: a text cannot be written as UTF-8.
    """
    source = command.source
    if isinstance(source, bytes):
        source = fields_in_header(source)
    outgoing = _Outgoing(
        command.code,
        None if source == _NO_FIELDS else source,
        command.flag,
        command.language,
        command.opaque,
        command.remark,
        "JSON",
        command.version,
    )
    try:
        return _encode(outgoing)
    except UnicodeEncodeError as error:
        raise _not_unicode(error) from None


def encode_own(
    code: int, opaque: int, flag: int, remark: str | None, texts: dict[str, str] | msgspec.Struct
) -> bytes:
    """Encodes a header in our language and version, without building a `Command` first.

    Raises:
        LocalProtocolError: a text cannot be written as UTF-8.
    """
    try:
        return _encode(_Outgoing(code, texts, flag, LANGUAGE, opaque, remark, "JSON", VERSION))
    except UnicodeEncodeError as error:
        raise _not_unicode(error) from None


def _not_unicode(error: UnicodeEncodeError) -> LocalProtocolError:
    return LocalProtocolError(f"a header text is not Unicode: {error}")
