"""Addresses in records: 4 or 16 bytes of IP, then 4 bytes of port.

Pure. Source: MessageExt.socketAddress2ByteBuffer of RocketMQ 4.9 and 5.x.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from sprocket.base.errors import UsageError

#: Sizes of a packed address.
V4_BYTES = 8
V6_BYTES = 20


@lru_cache(maxsize=4096)
def pack(address: str) -> bytes:
    """Converts `1.2.3.4:5`, `[::1]:5` or `::1:5` to 8 or 20 bytes.

    An IPv4 address in IPv6 form (`::ffff:1.2.3.4`) becomes IPv4, as in Java.

    Raises:
        UsageError: it is no IP address with a port.
    """
    host, _, port = address.rpartition(":")
    try:
        parsed = ip_address(host.strip("[]").partition("%")[0])
        number = int(port)
    except ValueError:
        raise UsageError(f"not an IP address with a port: {address!r}") from None
    if not 0 <= number <= 0xFFFF:
        raise UsageError(f"not a port: {address!r}")
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.packed + number.to_bytes(4, "big")


@lru_cache(maxsize=4096)
def unpack(packed: bytes) -> str:
    """Converts 8 or 20 bytes to `1.2.3.4:5` or `[::1]:5`.

    Raises:
        UsageError: it is another number of bytes.
    """
    port = int.from_bytes(packed[-4:], "big")
    if len(packed) == V4_BYTES:
        return f"{IPv4Address(packed[:4])}:{port}"
    if len(packed) == V6_BYTES:
        return f"[{IPv6Address(packed[:16])}]:{port}"
    raise UsageError(f"an address has {V4_BYTES} or {V6_BYTES} bytes, not {len(packed)}")
