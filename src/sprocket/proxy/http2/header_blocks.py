"""Header blocks: those of requests are decoded, those of replies are constant bytes. Pure.

Replies use HPACK's static table and literals only, so that a reply's block is the same bytes on
every connection, and the peer's limit of the dynamic table means nothing to us.
Source: RFC 7541; RFC 9113, section 8.2 and 8.3, for which headers a request may have.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

#: Sets the size of our dynamic table to zero, once, before the first block of a connection.
NO_TABLE = b"\x20"
_PSEUDO = frozenset((":method", ":scheme", ":authority", ":path"))
_NEEDED = (":method", ":scheme", ":path")
_FORBIDDEN = frozenset(
    ("connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade")
)
#: What a name consists of: RFC 9110, section 5.6.2, in lower case.
_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
#: What a value must not have: RFC 9113, section 8.2.1.
_BREAKS = re.compile("[\0\r\n]")
_UNSET = "unset"


def literal(name: bytes, value: bytes) -> bytes:
    """A header that no table remembers; its name is written out."""
    return b"\x00" + _string(name) + _string(value)


def indexed_name(index: int, value: bytes) -> bytes:
    """The same with a name of the static table."""
    return _number(index, 4, 0x00) + _string(value)


def _string(text: bytes) -> bytes:
    return _number(len(text), 7, 0x00) + text


def _number(value: int, bits: int, above: int) -> bytes:
    """An integer with a prefix of `bits` bits, RFC 7541 section 5.1."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((above | value,))
    found = bytearray((above | most,))
    value -= most
    while value >= 0x80:
        found.append(0x80 | value & 0x7F)
        value >>= 7
    found.append(value)
    return bytes(found)


#: `:status: 200` and the content type: the head of every reply of a known method.
REPLY_HEAD = b"\x88" + indexed_name(31, b"application/grpc")


def status_head(status: int) -> bytes:
    """The head of a reply to what is no gRPC call."""
    return indexed_name(8, b"%d" % status)


class HeaderBlock:
    """The headers of one block. A block that is the same as before is the same object.

    Attributes:
        pairs: names and values, in their order; bytes that are not ASCII as Latin-1.
        fields: values by names; those of a name that comes several times are joined by commas.
        kept: what its user keeps with it.
    """

    __slots__ = ("_fault", "fields", "kept", "pairs")

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = pairs
        self.fields = dict(pairs)
        if len(self.fields) != len(pairs):
            self.fields.clear()
            for name, value in pairs:
                before = self.fields.get(name)
                self.fields[name] = value if before is None else f"{before},{value}"
        self._fault: str | None = _UNSET
        self.kept: Any = None

    @property
    def fault(self) -> str | None:
        """Why these are no headers of a request; None if they are."""
        if self._fault is _UNSET:
            self._fault = self._fault_in_request()
        return self._fault

    def _fault_in_request(self) -> str | None:
        fields, pairs = self.fields, self.pairs
        pseudo = 0
        for name, _ in pairs:
            if name[:1] != ":":
                break
            if name not in _PSEUDO:
                return "an unknown pseudo-header"
            pseudo += 1
        if len(_PSEUDO & fields.keys()) != pseudo:
            return "a pseudo-header comes twice, or follows another header"
        for name in _NEEDED:
            if name not in fields:
                return f"no {name}"
        if not fields[":path"]:
            return "an empty path"
        return _fault_in(pairs[pseudo:])

    def fault_in_trailers(self) -> str | None:
        """Why these are no headers that may end a request; None if they are."""
        return _fault_in(self.pairs)


def _fault_in(pairs: Sequence[tuple[str, str]]) -> str | None:
    for name, value in pairs:
        if not _is_name(name):
            return "a header's name has what no name may have, or is that of a pseudo-header"
        if name in _FORBIDDEN or (name == "te" and value != "trailers"):
            return f"the header {name}, which is HTTP/1's"
        if not value.isprintable() and _BREAKS.search(value):
            return f"a line break in the header {name}"
    return None


@functools.lru_cache(1024)
def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None
