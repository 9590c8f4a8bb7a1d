"""The binary header of a frame, RocketMQ's own serialisation.

`_FIXED` declares its fixed part; `docs/formats/frame.md` says what that and the fields mean.

All numbers are big-endian. Java reads a length of 0 as null; here an empty value stays an empty
text, and a field without a name is dropped. A code that needs more than 16 bits (pop and similar
ones) arrives as its low 16 bits; decoding restores the full number, as no other code has those.
Source: RocketMQSerializable of RocketMQ 4.9 and 5.x; recorded frames.
"""

from __future__ import annotations

import struct

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol.codes import LANGUAGE_NAMES, LANGUAGE_NUMBERS, WIDE_REQUEST_CODES
from sprocket.protocol.command import BINARY, HEADER_FIELDS_MAX, RESPONSE, Command

_FIXED = struct.Struct(">hBhiiI")
_LENGTH = struct.Struct(">I")
_SHORT = struct.Struct(">H")

NAME_BYTES_MAX = 0x7FFF


def decode(header: bytes | bytearray) -> Command:
    """Decodes a header; the command has no body yet.

    Raises:
        RemoteProtocolError: a length leads out of the header, a text is no UTF-8, or it has too
            many fields.
    """
    try:
        code, language, version, opaque, flag, remark_bytes = _FIXED.unpack_from(header)
        at = _FIXED.size + remark_bytes
        (fields_bytes,) = _LENGTH.unpack_from(header, at)
        start = at + _LENGTH.size
        if start + fields_bytes != len(header):
            raise RemoteProtocolError("lengths in the binary header do not add up")
        remark = str(header[_FIXED.size : at], "utf-8") if remark_bytes else None
        fields = _decode_fields(header, start)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise RemoteProtocolError(f"no binary header: {error}") from None
    if not flag & RESPONSE:
        code = WIDE_REQUEST_CODES.get(code & 0xFFFF, code)
    name = LANGUAGE_NAMES.get(language, "OTHER")
    return Command(code, opaque, flag, name, version, remark, b"", BINARY, fields)


def _decode_fields(header: bytes | bytearray, at: int) -> dict[str, str]:
    # The whole header is decoded once as Latin-1, one character for each byte. A slice of it that
    # is ASCII is already the right text, and slicing is much cheaper than decoding each piece; only
    # the rare other ones are decoded as UTF-8.
    text = str(header, "latin-1")
    fields: dict[str, str] = {}
    end = len(header)
    length_of = _LENGTH.unpack_from
    for _ in range(HEADER_FIELDS_MAX + 1):
        if at >= end:
            return fields
        start = at + 2
        name_end = start + (header[at] << 8 | header[at + 1])
        (value_bytes,) = length_of(header, name_end)
        value_start = name_end + 4
        at = value_start + value_bytes
        if at > end:
            raise RemoteProtocolError("a field reaches beyond the binary header")
        name, value = text[start:name_end], text[value_start:at]
        if not value.isascii():
            value = value.encode("latin-1").decode("utf-8")
        if not name.isascii():
            name = name.encode("latin-1").decode("utf-8")
        if name:
            fields[name] = value
    raise RemoteProtocolError(f"a header has at most {HEADER_FIELDS_MAX} fields")


def encode(command: Command) -> bytes:
    """Encodes a header.

    Raises:
        LocalProtocolError: a number or a field does not fit.
    """
    try:
        remark = command.remark.encode() if command.remark else b""
        fields = b"".join(_encode_fields(command))
        fixed = _FIXED.pack(
            _signed_code(command),
            LANGUAGE_NUMBERS.get(command.language, LANGUAGE_NUMBERS["OTHER"]),
            command.version,
            command.opaque,
            command.flag,
            len(remark),
        )
    except (struct.error, UnicodeEncodeError) as error:
        raise LocalProtocolError(f"does not fit the binary header: {error}") from None
    return b"".join((fixed, remark, _LENGTH.pack(len(fields)), fields))


def _signed_code(command: Command) -> int:
    code = command.code & 0xFFFF
    if code != command.code and code not in WIDE_REQUEST_CODES:
        raise LocalProtocolError(f"code {command.code} does not fit 16 bits")
    return code - 0x10000 if code > 0x7FFF else code


def _encode_fields(command: Command) -> list[bytes]:
    parts: list[bytes] = []
    for name, value in command.fields.items():
        if name:
            name_raw, value_raw = name.encode(), value.encode()
            if len(name_raw) > NAME_BYTES_MAX:
                raise LocalProtocolError(f"a field name of {len(name_raw)} bytes")
            parts += (_SHORT.pack(len(name_raw)), name_raw, _LENGTH.pack(len(value_raw)), value_raw)
    return parts
