"""Header blocks: those of requests are decoded, those of replies are constant bytes. Pure.

Replies use HPACK's static table and literals only, so that a reply's block is the same bytes on
every connection, and the peer's limit of the dynamic table means nothing to us.
Source: RFC 7541; RFC 9113, section 8.2 and 8.3, for which headers a request may have.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Name and value of one header.
HeaderPair = tuple[bytes, bytes]

#: Sets the size of our dynamic table to zero, once, before the first block of a connection.
NO_TABLE = b"\x20"
_PSEUDO = frozenset((b":method", b":scheme", b":authority", b":path"))
_NEEDED = (b":method", b":scheme", b":path")
_FORBIDDEN = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)


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


def fault_in_request(headers: Sequence[HeaderPair]) -> str | None:
    """Why headers are none of a request; None if they are."""
    seen: set[bytes] = set()
    are_pseudo_over = False
    for name, value in headers:
        if name[:1] == b":":
            if are_pseudo_over:
                return "a pseudo-header follows another header"
            if name not in _PSEUDO:
                return "an unknown pseudo-header"
            if name in seen:
                return "a pseudo-header comes twice"
            seen.add(name)
            continue
        are_pseudo_over = True
        if (fault := _fault_in(name, value)) is not None:
            return fault
    for name in _NEEDED:
        if name not in seen:
            return f"no {name.decode()}"
    return "an empty path" if (b":path", b"") in headers else None


def fault_in_trailers(headers: Sequence[HeaderPair]) -> str | None:
    """Why headers are none that may end a request; None if they are."""
    for name, value in headers:
        if name[:1] == b":":
            return "a pseudo-header in trailers"
        if (fault := _fault_in(name, value)) is not None:
            return fault
    return None


def _fault_in(name: bytes, value: bytes) -> str | None:
    if not name or name != name.lower():
        return "a header's name is empty or not in lower case"
    if name in _FORBIDDEN or (name == b"te" and value != b"trailers"):
        return f"the header {name.decode()}, which is HTTP/1's"
    return None
