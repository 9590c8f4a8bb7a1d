"""Frames of HTTP/2: their numbers, and the bytes of those that a server sends. Pure.

Source: RFC 9113, sections 4 to 7.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

#: What a client sends first.
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: The head of every frame: the length's upper 16 and lower 8 bits, type, flags, stream.
HEAD = struct.Struct(">HBBBI")
HEAD_BYTES = 9
PRIORITY_BYTES = 5

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9

#: Flags; `ACK` and `END_STREAM` are the same bit of different frames.
ACK = END_STREAM = 0x01
END_HEADERS, PADDED, WITH_PRIORITY = 0x04, 0x08, 0x20

# Error codes, RFC 9113 section 7.
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = 0, 1, 2, 3
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL = 5, 6, 7, 8
COMPRESSION_ERROR, ENHANCE_YOUR_CALM = 9, 11

# Settings, RFC 9113 section 6.5.2.
HEADER_TABLE_SIZE, ENABLE_PUSH, MAX_CONCURRENT_STREAMS = 1, 2, 3
INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, MAX_HEADER_LIST_SIZE = 4, 5, 6

#: Windows of both directions begin with this, bytes; so does the longest frame.
WINDOW_BYTES = 65_535
FRAME_BYTES = 16_384
FRAME_BYTES_MAX = (1 << 24) - 1
WINDOW_BYTES_MAX = (1 << 31) - 1
#: The upper bit of a stream's number, and of a window's increment, means nothing.
LOW_31_BITS = 0x7FFF_FFFF

_U32 = struct.Struct(">I")
_SETTING = struct.Struct(">HI")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """A whole frame."""
    size = len(payload)
    return HEAD.pack(size >> 8, size & 0xFF, kind, flags, stream) + payload


def settings_frame(values: Mapping[int, int]) -> bytes:
    """Our settings."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(*each) for each in values.items()))


def window_update_frame(stream: int, more: int) -> bytes:
    """Allows the other side to send that many bytes more."""
    return frame(WINDOW_UPDATE, 0, stream, _U32.pack(more))


def reset_frame(stream: int, code: int) -> bytes:
    """Ends a stream at once."""
    return frame(RST_STREAM, 0, stream, _U32.pack(code))


def goaway_frame(last: int, code: int, why: str) -> bytes:
    """Announces that no stream above `last` is answered."""
    return frame(GOAWAY, 0, 0, _U32.pack(last) + _U32.pack(code) + why.encode())


def settings_in(payload: bytes) -> list[tuple[int, int]]:
    """The settings of a frame, in their order; its length is a multiple of six."""
    return list(_SETTING.iter_unpack(payload))


def number_in(payload: bytes, offset: int = 0) -> int:
    """32 bits of a payload."""
    value: int = _U32.unpack_from(payload, offset)[0]
    return value


SETTINGS_ACK = frame(SETTINGS, ACK, 0, b"")
