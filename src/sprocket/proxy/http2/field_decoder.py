"""Decodes header blocks. Pure."""

from __future__ import annotations

import hpack
from hpack.exceptions import HPACKError, OversizedHeaderListError

from sprocket.proxy.http2.faults import ConnectionFault
from sprocket.proxy.http2.frames import COMPRESSION_ERROR, ENHANCE_YOUR_CALM
from sprocket.proxy.http2.header_blocks import HeaderPair


class FieldDecoder:
    """The decoding side of one connection's HPACK.

    Args:
        bytes_max: the most that the headers of a block may have, with 32 bytes for each.
    """

    def __init__(self, bytes_max: int) -> None:
        self._decoder = hpack.Decoder(bytes_max)

    def decode(self, block: bytes) -> list[HeaderPair] | None:
        """The headers of a block; None if they are too many.

        Raises:
            ConnectionFault: the block is broken.
        """
        try:
            return [(name, value) for name, value in self._decoder.decode(block, raw=True)]
        except OversizedHeaderListError:
            raise ConnectionFault(ENHANCE_YOUR_CALM, "headers of too many bytes") from None
        except (HPACKError, UnicodeDecodeError, IndexError, ValueError):
            raise ConnectionFault(COMPRESSION_ERROR, "a header block is broken") from None
