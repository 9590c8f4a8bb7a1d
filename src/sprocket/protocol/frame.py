"""One frame: a request or a reply on the wire.

    | bytes | what                                                                   |
    |-------|------------------------------------------------------------------------|
    | 4     | bytes that follow, big-endian: 4 + header + body                       |
    | 1     | serialisation of the header: 0 JSON, 1 binary                          |
    | 3     | bytes of the header                                                    |
    | n     | header                                                                 |
    | ...   | body, to the end of the frame                                          |

Written frames are lists of buffers: the first holds lengths and header, the others are the body
as it was given, so that no body is copied. Source: RemotingCommand, NettyDecoder of RocketMQ 5.x.
"""

from __future__ import annotations

import struct

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol import header_binary, header_json
from sprocket.protocol.codes import LANGUAGE, VERSION
from sprocket.protocol.command import BINARY, JSON, ONEWAY, RESPONSE, Buffer, Command, Header, Reply

#: Longest frame that is read, its length field not counted. As Java's frame limit.
FRAME_BYTES_MAX = 16 * 1024 * 1024

#: Bytes of the two lengths before the header.
PREFIX_BYTES = 8

_PREFIX = struct.Struct(">II")
_HEADER_BYTES_MAX = 0xFFFFFF


def decode_header(header: bytes, serialization: int) -> Command:
    """Reads a frame's header; the command has no body yet.

    Raises:
        RemoteProtocolError: the serialisation is unknown, or the bytes are none of its headers.
    """
    if serialization == JSON:
        return header_json.decode(header)
    if serialization == BINARY:
        return header_binary.decode(header)
    raise RemoteProtocolError(f"unknown header serialisation {serialization}")


def encode(command: Command, *body: Buffer) -> list[Buffer]:
    """Writes a frame. Without `body` parts the command's own body is taken.

    Raises:
        LocalProtocolError: something does not fit the wire format.
    """
    parts: list[Buffer] = [b"", *(body or (command.body,))]
    binary = command.serialization == BINARY
    header = header_binary.encode(command) if binary else header_json.encode(command)
    size = len(header)
    if size > _HEADER_BYTES_MAX:
        raise LocalProtocolError(f"a header of {size} bytes is too long")
    total = 4 + size
    for part in parts:
        total += len(part)
    if total > 0x7FFFFFFF:
        raise LocalProtocolError(f"a frame of {total} bytes is too long")
    parts[0] = _PREFIX.pack(total, command.serialization << 24 | size) + header
    return parts


def encode_request(
    header: Header,
    opaque: int,
    *,
    body: Buffer = b"",
    is_oneway: bool = False,
    serialization: int = JSON,
) -> list[Buffer]:
    """Writes a request in our language and version. What it cannot say, a `Command` can.

    Raises:
        LocalProtocolError: something does not fit the wire format.
    """
    flag = ONEWAY if is_oneway else 0
    texts = header.to_fields()
    return encode(
        Command(header.code, opaque, flag, LANGUAGE, VERSION, None, body, serialization, texts)
    )


def encode_reply(request: Command, reply: Reply) -> list[Buffer]:
    """Writes the answer to a request, in the request's serialisation.

    Raises:
        LocalProtocolError: something does not fit the wire format.
    """
    header, body = reply.header, reply.body
    command = Command(
        reply.code,
        request.opaque,
        RESPONSE,
        LANGUAGE,
        VERSION,
        reply.remark,
        b"",
        request.serialization,
        {} if header is None else header.to_fields(),
    )
    if isinstance(body, bytes | bytearray | memoryview):
        return encode(command, body)
    return encode(command, *body)
