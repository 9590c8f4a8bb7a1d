"""Compressed bodies. Bits of the system flag describe the compression.

Bit 0: the body is compressed. Bits 8 to 10: how (0 and 3 zlib, 1 LZ4 frame, 2 Zstandard).
Zlib is RFC 1950; some clients send gzip and raw deflate instead, which are opened too.

Pure. Source: MessageSysFlag and CompressionType of RocketMQ 5.x.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from sprocket.base.errors import CorruptRecord

COMPRESSED = 0x1
_KIND_SHIFT = 8
_KIND_MASK = 0x7

#: The largest size of an opened body. A body that opens to more is an attack on our memory.
OPENED_BYTES_MAX = 64 * 1024 * 1024

#: Zstandard's decompressor has no limit for its output, so it gets little input at a time: 1 KiB
#: can grow to 32 MiB. At the end of a frame the rest of a piece is copied, so pieces stay small.
_PIECE_BYTES = 1024


class BodyTooLarge(CorruptRecord):
    """A compressed body opens to more than may be opened."""


class Compression(IntEnum):
    """How a body is compressed; the number is in bits 8 to 10 of the system flag."""

    LZ4 = 1
    ZSTD = 2
    ZLIB = 3

    @property
    def sys_flag(self) -> int:
        """The bits of the system flag for it, with bit 0."""
        return COMPRESSED | self << _KIND_SHIFT


def is_compressed(sys_flag: int) -> bool:
    """Whether the body is compressed."""
    return sys_flag & COMPRESSED != 0


def compress(body: bytes | bytearray | memoryview, kind: Compression, level: int = 5) -> bytes:
    """Compresses a body; the caller sets `kind.sys_flag` with it."""
    if kind is Compression.ZLIB:
        return zlib.compress(body, level)
    if kind is Compression.LZ4:
        import lz4.frame

        # Java's library refuses blocks that refer to each other.
        return bytes(lz4.frame.compress(body, block_linked=False, store_size=False))
    import zstandard

    return zstandard.ZstdCompressor(level=level).compress(body)


def open_body(
    body: bytes | bytearray | memoryview, sys_flag: int, bytes_max: int = OPENED_BYTES_MAX
) -> bytes:
    """Returns the original body. Memory is bounded by `bytes_max`.

    Raises:
        CorruptRecord: unknown kind, broken or cut stream, or more than `bytes_max`.
    """
    # A body of some bytes can open to gigabytes. Each opener stops soon after `bytes_max`, so such
    # a body is recognised by the first bytes too many and is never opened as a whole.
    kind = sys_flag >> _KIND_SHIFT & _KIND_MASK
    opener = _OPENERS.get(kind)
    if opener is None:
        raise CorruptRecord(f"a body is compressed in an unknown way: type {kind}")
    try:
        opened, is_whole = opener(bytes(body), bytes_max)
    except Exception as error:  # three libraries with error types of their own
        raise CorruptRecord(f"a compressed body cannot be opened: {error}") from error
    if len(opened) > bytes_max:
        raise BodyTooLarge(f"a compressed body opens to more than {bytes_max} bytes")
    if not is_whole:
        raise CorruptRecord("a compressed body is cut short")
    return opened


def _open_zlib(body: bytes, bytes_max: int) -> tuple[bytes, bool]:
    stream = zlib.decompressobj(_window_bits(body))
    opened = stream.decompress(body, bytes_max + 1)
    return opened, stream.eof


def _window_bits(body: bytes) -> int:
    """zlib's `wbits` number for gzip, for RFC 1950 and for raw deflate."""
    if body[:2] == b"\x1f\x8b":
        return 31
    if len(body) >= 2 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0:
        return 15
    return -15


def _open_lz4(body: bytes, bytes_max: int) -> tuple[bytes, bool]:
    import lz4.frame

    return _open_frames(lz4.frame.LZ4FrameDecompressor, body, bytes_max)


def _open_zstd(body: bytes, bytes_max: int) -> tuple[bytes, bool]:
    import zstandard

    return _open_frames(zstandard.ZstdDecompressor().decompressobj, body, bytes_max)


def _open_frames(new_stream: Callable[[], Any], body: bytes, bytes_max: int) -> tuple[bytes, bool]:
    """Opens a body of one or more frames, which both formats allow."""
    stream = new_stream()
    opened = bytearray()
    for start in range(0, len(body), _PIECE_BYTES):
        piece = body[start : start + _PIECE_BYTES]
        while piece:
            if stream.eof:
                stream = new_stream()
            opened += stream.decompress(piece)
            if len(opened) > bytes_max:
                return bytes(opened), False
            piece = stream.unused_data if stream.eof else b""
    return bytes(opened), stream.eof


#: Clients before RocketMQ 5 name no kind, which is 0 and means zlib.
_UNNAMED = 0
_OPENERS = {
    _UNNAMED: _open_zlib,
    Compression.LZ4: _open_lz4,
    Compression.ZSTD: _open_zstd,
    Compression.ZLIB: _open_zlib,
}
