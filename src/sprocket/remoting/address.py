"""Addresses as text: `host:port`, and `[::1]:port` for IPv6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sprocket.base.errors import ConnectFailed

_MAPPED = "::ffff:"


def split(address: str) -> tuple[str, int]:
    """Splits `host:port` into host and port. It accepts RocketMQ's own `::1:9876` too.

    Raises:
        ConnectFailed: the text is no address with a port.
    """
    host, _, port = address.strip().rpartition(":")
    host = bare(host)
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConnectFailed(f"not an address with a port: {address!r}")
    return host, int(port)


def bare(host: str) -> str:
    """A host as sockets take it: IPv6 without the brackets that it may be written in."""
    host = host.strip()
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def join(host: str, port: int) -> str:
    """Joins host and port to `host:port`, an IPv6 host in brackets."""
    host = bare(host)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def of_socket(name: Any) -> str:
    """The result of `getsockname` or `getpeername` as text; empty if it is no IP address.

    An IPv4 peer of a socket for both families is written as IPv4.
    """
    if not isinstance(name, Sequence) or isinstance(name, str) or len(name) < 2:
        return ""
    host = str(name[0]).partition("%")[0]
    if host.startswith(_MAPPED) and "." in host:
        host = host[len(_MAPPED) :]
    return join(host, int(name[1]))
