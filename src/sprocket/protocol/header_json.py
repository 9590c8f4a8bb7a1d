"""The JSON header of a frame.

    {"code":10,"extFields":{"topic":"t"},"flag":0,"language":"JAVA","opaque":1,"remark":"…",
     "serializeTypeCurrentRPC":"JSON","version":479}

Keys are written in this order, which is fastjson's: sorted. `remark` is left out when there is
none. In reading, any order goes, every key but `code` may be missing or null,
unknown keys are ignored, and fastjson's dialect is tried before a header is refused.
Source: RemotingCommand, RemotingSerializable of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol import lenient_json
from sprocket.protocol.command import JSON, Command, Int
from sprocket.protocol.fields import MALFORMED

_NO_FIELDS = msgspec.Raw(b"null")


class _Incoming(msgspec.Struct, rename="camel"):
    code: Int
    ext_fields: msgspec.Raw = _NO_FIELDS
    flag: Int | None = None
    language: str | None = None
    opaque: Int | None = None
    remark: str | None = None
    version: Int | None = None


class _Outgoing(msgspec.Struct, rename="camel", omit_defaults=True):
    # Only a None default is left out: a default that comes from a function never is.
    code: int
    ext_fields: Any = None
    flag: int = msgspec.field(default_factory=int)
    language: str = msgspec.field(default_factory=str)
    opaque: int = msgspec.field(default_factory=int)
    remark: str | None = None
    serialize_type: str = msgspec.field(name="serializeTypeCurrentRPC", default_factory=str)
    version: int = msgspec.field(default_factory=int)


_incoming = msgspec.json.Decoder(_Incoming, strict=False)
_encoder = msgspec.json.Encoder()


def decode(header: bytes) -> Command:
    """Reads a header; the command has no body yet.

    Raises:
        RemoteProtocolError: it is no JSON header, or has no code.
    """
    try:
        found = _incoming.decode(header)
    except MALFORMED:
        found = _leniently(header)
    return Command(
        found.code,
        found.opaque or 0,
        found.flag or 0,
        found.language or "OTHER",
        found.version or 0,
        found.remark,
        b"",
        JSON,
        found.ext_fields,
    )


def _leniently(header: bytes) -> _Incoming:
    value: Any = lenient_json.parse(header)
    try:
        found = msgspec.convert(value, dict[str, Any])
        raw = msgspec.Raw(msgspec.json.encode(found.pop("extFields", None)))
        return msgspec.convert({**found, "extFields": raw}, _Incoming, strict=False)
    except MALFORMED as error:
        raise RemoteProtocolError(f"no header: {error}") from None


def encode(command: Command) -> bytes:
    """Writes a header.

    Raises:
        LocalProtocolError: a text cannot be written as UTF-8.
    """
    try:
        return _encoder.encode(
            _Outgoing(
                command.code,
                None if command.source == _NO_FIELDS else command.source,
                command.flag,
                command.language,
                command.opaque,
                command.remark,
                "JSON",
                command.version,
            )
        )
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"a header text is not Unicode: {error}") from None
