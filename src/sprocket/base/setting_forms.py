"""What texts of settings must look like: addresses, folders, names. Pure.

Each function is a `Form` of `sprocket.base.config`: it returns why a value is not allowed, in words
that stand behind the setting's name, or None if it is allowed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from sprocket.base.suggestions import shown

_HOST = re.compile(r"(?!-)[\w-]+(\.[\w-]+)*\.?")
_HOST_MAX = 253
_PORT_MAX = 65535
_QUOTES = "\"'"


def name(value: str) -> str | None:
    """A name that is sent to others: one line without quotes around it."""
    if not value.strip():
        return "needs a name"
    if not value.isprintable() or value != value.strip():
        return f"is a name without blanks around it and control characters, not {shown(value)}"
    return _quoted(value)


def host(value: str) -> str | None:
    """An IP address or a host's name; empty for every address."""
    text = value.strip()
    if text in ("", "::") or _is_host(text):
        return None
    if "://" in text:
        return f"is a host without a scheme, not {shown(value)}"
    before, colon, port = text.rpartition(":")
    if colon and port.isdigit() and _is_host(before):
        return f"is a host without a port, not {shown(value)}"
    return _quoted(text) or f"is an IP address or the name of a host, not {shown(value)}"


def addresses(value: Sequence[str]) -> str | None:
    """Addresses, each `host:port`."""
    for each in value:
        if complaint := address(each):
            return complaint
    return None


def address(value: str) -> str | None:
    """One `host:port`; an IPv6 host is in brackets, or RocketMQ's `::1:9876`."""
    text = value.strip()
    if "://" in text:
        plain = text.partition("://")[2].strip("/")
        return f"is host:port without a scheme, so perhaps {shown(plain)}, not {shown(value)}"
    if quoted := _quoted(text):
        return quoted
    before, colon, port = text.rpartition(":")
    if not colon and _is_host(text) and not text.isdigit():
        return f"is host:port, so perhaps {shown(text + ':9876')}, not {shown(value)}"
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= _PORT_MAX
    if not is_port:
        return f"is host:port with a port from 1 to {_PORT_MAX}, not {shown(value)}"
    if not _is_host(before):
        return f"is host:port, not {shown(value)}"
    return None


def folder(value: str) -> str | None:
    """The path of a folder, or of a file."""
    return _path(value, "folder")


def file(value: str) -> str | None:
    """The path of a file that is read."""
    return _path(value, "file")


def _path(value: str, kind: str) -> str | None:
    if not value.strip():
        return f"needs the path of a {kind}"
    if not value.isprintable():
        return f"is a path without control characters, not {shown(value)}"
    if value[0] == "~":
        return f"is a path in full, not {shown(value)}: neither RocketMQ nor this reads ~ as home"
    if re.search(r"\$\{|\$[A-Z]", value):
        return f"is a path in full, not {shown(value)}: no variables are filled in"
    return _quoted(value)


def folders(value: Sequence[str]) -> str | None:
    """The paths of folders."""
    return next((complaint for each in value if (complaint := folder(each))), None)


def networks(value: Sequence[str]) -> str | None:
    """IP networks such as `10.0.0.0/8`, or single addresses."""
    for each in value:
        try:
            ipaddress.ip_network(each, strict=False)
        except ValueError:
            return f"is a list of networks such as 10.0.0.0/8, not {shown(each)}"
    return None


def hours(value: str) -> str | None:
    """Hours of the day, separated by `;`."""
    for each in re.split("[;,]", value):
        word = each.strip()
        if not (word.isascii() and word.isdigit() and len(word) <= 2 and int(word) < 24):
            return f"is hours from 00 to 23, separated by `;`, not {shown(value)}"
    return None


def delays(value: str) -> str | None:
    """Delays such as `1s 5s 2h`."""
    words = value.split()
    if not words:
        return "needs at least one delay such as 30s"
    for word in words:
        number, unit = word[:-1], word[-1]
        if unit not in "smhd" or not (number.isascii() and number.isdigit() and len(number) <= 9):
            return f"is delays such as 30s or 2h, separated by blanks, not {shown(word)}"
    return None


def whole_entries(value: int) -> str | None:
    """The size of a file of entries of 20 bytes. RocketMQ rounds it up in silence."""
    whole = -(-value // 20) * 20
    return None if whole == value else f"is a multiple of 20, so perhaps {whole}, not {value}"


def _quoted(value: str) -> str | None:
    if len(value) > 1 and value[0] in _QUOTES and value[-1] == value[0]:
        return f"is written without quotes, not {shown(value)}: they would be a part of it"
    return None


def _is_host(text: str) -> bool:
    bare = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        ipaddress.ip_address(bare.partition("%")[0] if ":" in bare else bare)
    except ValueError:
        pass
    else:
        return True
    is_number = re.fullmatch(r"[\d.]+", bare) is not None and "." in bare
    return _HOST.fullmatch(bare) is not None and len(bare) <= _HOST_MAX and not is_number
