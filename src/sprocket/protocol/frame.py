"""A frame: one request or reply on the wire.

    | bytes | what                                                                   |
    |-------|------------------------------------------------------------------------|
    | 4     | bytes that follow, big-endian: 4 + header + body                       |
    | 1     | serialisation of the header: 0 JSON, 1 binary                          |
    | 3     | bytes of the header                                                    |
    | n     | header                                                                 |
    | ...   | body, to the end of the frame                                          |

Encoded frames are lists of buffers: the first holds lengths and header, the others are the given
body parts, so that no body is copied. Source: RemotingCommand, NettyDecoder of RocketMQ 5.x.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sprocket.base.errors import LocalProtocolError, RemoteProtocolError
from sprocket.protocol import header_binary, header_json
from sprocket.protocol.command import BINARY, JSON, ONEWAY, RESPONSE, Buffer, Command, Header, Reply
from sprocket.protocol.signing import Signer

#: The longest accepted frame without its length field; the same as Java's limit.
FRAME_BYTES_MAX = 16 * 1024 * 1024

#: Bytes of the two lengths before the header.
PREFIX_BYTES = 8

_PREFIX = struct.Struct(">II")
_HEADER_BYTES_MAX = 0xFFFFFF
_FRAME_BYTES_MOST = 0x7FFFFFFF
_BUFFERS = (bytes, bytearray, memoryview)


def decode_header(header: bytes, serialization: int) -> Command:
    """Decodes a frame's header; the command has no body yet.

    Raises:
        RemoteProtocolError: the serialisation is unknown, or the bytes are no such header.
    """
    if serialization == JSON:
        return header_json.decode(header)
    if serialization == BINARY:
        return header_binary.decode(header)
    raise RemoteProtocolError(f"unknown header serialisation {serialization}")


def encode(command: Command, *body: Buffer) -> list[Buffer]:
    """Encodes a frame. Without `body` parts it uses the command's own body.

    Raises:
        LocalProtocolError: a value does not fit the wire format.
    """
    if command.serialization == BINARY:
        header = header_binary.encode(command)
    else:
        header = header_json.encode(command)
    return _frame(header, command.serialization, body or (command.body,))


def encode_request(
    header: Header,
    opaque: int,
    *,
    body: Buffer = b"",
    is_oneway: bool = False,
    serialization: int = JSON,
    signer: Signer | None = None,
) -> list[Buffer]:
    """Encodes a request in our language and version. For other values use `encode`.

    Args:
        signer: signs it, for brokers with access control.

    Raises:
        LocalProtocolError: a value does not fit the wire format.
    """
    flag = ONEWAY if is_oneway else 0
    texts = header.to_fields()
    if signer is not None:
        texts = signer.signed(texts, body)
    if serialization == JSON:
        head = header_json.encode_own(header.code, opaque, flag, None, texts)
        return _frame(head, JSON, (body,) if body else ())
    return encode(
        Command(header.code, opaque, flag, serialization=serialization, source=texts), body
    )


def encode_reply(request: Command, reply: Reply) -> list[Buffer]:
    """Encodes the reply to a request, in the request's serialisation.

    Raises:
        LocalProtocolError: a value does not fit the wire format.
    """
    header, body = reply.header, reply.body
    parts: Sequence[Buffer] = ()
    if body:
        parts = (body,) if isinstance(body, _BUFFERS) else body
    if request.serialization == JSON:
        written = {} if header is None else header.to_wire()
        head = header_json.encode_own(reply.code, request.opaque, RESPONSE, reply.remark, written)
        return _frame(head, JSON, parts)
    texts = {} if header is None else header.to_fields()
    command = Command(reply.code, request.opaque, RESPONSE, remark=reply.remark, source=texts)
    return _frame(header_binary.encode(command), BINARY, parts)


def _frame(header: bytes, serialization: int, body: Sequence[Buffer]) -> list[Buffer]:
    size = len(header)
    total = 4 + size + sum(map(len, body)) if body else 4 + size
    if size > _HEADER_BYTES_MAX or total > _FRAME_BYTES_MOST:
        raise LocalProtocolError(f"a header of {size} bytes, a frame of {total}, is too long")
    return [_PREFIX.pack(total, serialization << 24 | size) + header, *body]
