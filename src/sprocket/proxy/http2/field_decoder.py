"""Decodes header blocks: HPACK with a memory of what repeats. Pure.

Most requests of a client have the same headers, so that after the first few each is one byte, and
the whole block is the same bytes as the last one. A block that changed nothing is remembered whole
until one changes the dynamic table. Of the others the strings are remembered that came in Huffman's
code: signatures and times are the same for all requests of a second.
Source: RFC 7541.
"""

from __future__ import annotations

from sprocket.proxy.http2 import huffman
from sprocket.proxy.http2.faults import ConnectionFault
from sprocket.proxy.http2.frames import COMPRESSION_ERROR
from sprocket.proxy.http2.header_blocks import HeaderBlock
from sprocket.proxy.http2.static_table import STATIC_TABLE

#: The size of the dynamic table, which a client may make smaller: the default of the protocol.
TABLE_BYTES = 4096
#: What each header counts besides its bytes: RFC 7541, section 4.1.
_ENTRY_BYTES = 32
_STATIC = len(STATIC_TABLE)
#: The numbers of the static table, from 1, with nothing at 0.
_TABLE = (("", ""), *STATIC_TABLE)
#: What is remembered, of at most so many bytes: a connection has at most 50 KiB of it. A block
#: whose headers are all in a table has 20 bytes, a signature in Huffman's code 130.
_BLOCKS_MAX, _BLOCK_BYTES_MAX = 8, 64
_STRINGS_MAX, _STRING_BYTES_MAX = 32, 256
_NUMBER_MAX, _SHIFT_MAX = 1 << 24, 28


class FieldDecoder:
    """The decoding side of one connection's HPACK.

    Args:
        bytes_max: the most that the headers of a block may have, with 32 bytes for each.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        #: The dynamic table, its newest entry last.
        self._entries: list[tuple[str, str]] = []
        self._table_bytes = 0
        self._table_bytes_max = TABLE_BYTES
        self._blocks: dict[bytes, HeaderBlock] = {}
        self._strings: dict[bytes, str] = {}

    def decode(self, block: bytes) -> HeaderBlock | None:
        """The headers of a block; None if they are too many.

        Raises:
            ConnectionFault: the block is broken.
        """
        found = self._blocks.get(block)
        if found is not None:
            return found
        try:
            pairs, is_the_same = self._pairs(block)
        except (IndexError, ValueError):
            raise ConnectionFault(COMPRESSION_ERROR, "a header block is broken") from None
        if pairs is None:
            return None
        found = HeaderBlock(pairs)
        if is_the_same and len(block) <= _BLOCK_BYTES_MAX:
            if len(self._blocks) >= _BLOCKS_MAX:
                self._blocks.clear()
            self._blocks[block] = found
        return found

    def _pairs(self, block: bytes) -> tuple[list[tuple[str, str]] | None, bool]:
        """The headers, and whether the table stayed as it was."""
        pairs: list[tuple[str, str]] = []
        entries = self._entries
        is_the_same = True
        at, end, used = 0, len(block), 0
        while at < end:
            first = block[at]
            at += 1
            if first & 0x80:  # a whole header of a table
                number = first & 0x7F
                if number == 0x7F:
                    number, at = _long_number(block, at, number)
                elif not number:
                    raise ValueError
                pair = entries[_STATIC - number] if number > _STATIC else _TABLE[number]
            elif first & 0xE0 == 0x20:  # a new size of the table, at the beginning only
                if pairs:
                    raise ValueError
                size = first & 0x1F
                if size == 0x1F:
                    size, at = _long_number(block, at, size)
                self._resize(size)
                is_the_same = False
                continue
            else:
                is_kept = first & 0x40
                most = 0x3F if is_kept else 0x0F
                number = first & most
                if number == most:
                    number, at = _long_number(block, at, most)
                if number:
                    name = (entries[_STATIC - number] if number > _STATIC else _TABLE[number])[0]
                else:
                    name, at = self._string(block, at)
                value, at = self._string(block, at)
                pair = name, value
                if is_kept:
                    self._insert(pair)
                    is_the_same = False
            used += len(pair[0]) + len(pair[1]) + _ENTRY_BYTES
            if used <= self._bytes_max:
                pairs.append(pair)
        # The table must be kept right even if the headers are too many: later blocks refer to it.
        return (pairs if used <= self._bytes_max else None), is_the_same

    def _string(self, block: bytes, at: int) -> tuple[str, int]:
        first = block[at]
        at += 1
        size = first & 0x7F
        if size == 0x7F:
            size, at = _long_number(block, at, size)
        end = at + size
        raw = block[at:end]
        if len(raw) < size:
            raise ValueError
        if first < 0x80:
            return raw.decode("latin-1"), end
        text = self._strings.get(raw)
        if text is None:
            text = huffman.decode(raw).decode("latin-1")
            if size <= _STRING_BYTES_MAX:
                if len(self._strings) >= _STRINGS_MAX:
                    self._strings.clear()
                self._strings[raw] = text
        return text, end

    def _insert(self, pair: tuple[str, str]) -> None:
        self._blocks.clear()
        self._table_bytes += len(pair[0]) + len(pair[1]) + _ENTRY_BYTES
        self._entries.append(pair)
        if self._table_bytes > self._table_bytes_max:
            self._evict()

    def _resize(self, size: int) -> None:
        if size > TABLE_BYTES:
            raise ValueError
        self._blocks.clear()
        self._table_bytes_max = size
        self._evict()

    def _evict(self) -> None:
        entries = self._entries
        gone = 0
        while self._table_bytes > self._table_bytes_max:
            name, value = entries[gone]
            self._table_bytes -= len(name) + len(value) + _ENTRY_BYTES
            gone += 1
        del entries[:gone]


def _long_number(block: bytes, at: int, most: int) -> tuple[int, int]:
    """An integer whose first byte had its largest value, and where it ends."""
    value, shift = most, 0
    while True:
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if value > _NUMBER_MAX or shift > _SHIFT_MAX:
            raise ValueError
        if byte < 0x80:
            return value, at
        shift += 7
