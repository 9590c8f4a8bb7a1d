"""White addresses of RocketMQ 4.x's `plain_acl.yml`, as networks. Pure.

An address is exact, a range, a list, or `*`, for IPv4 and IPv6. What follows the first range in an
IPv4 address does not count, as in RocketMQ: `10.1.*.7` is the whole of `10.1.0.0/16`.
Source: RemoteAddressStrategyFactory and AclUtils of RocketMQ 4.9.8 (module acl).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    collapse_addresses,
    ip_address,
    summarize_address_range,
)

from sprocket.base.errors import UsageError
from sprocket.base.suggestions import shown

#: All addresses.
EVERYWHERE = ("0.0.0.0/0", "::/0")
_ALL = ("*", "*.*.*.*", "*:*:*:*:*:*:*:*")
_RANGE = re.compile(r"([0-9a-fA-F]{1,4})-([0-9a-fA-F]{1,4})")
_GROUPS = 8

Network = IPv4Network | IPv6Network


def white_networks(text: str) -> tuple[str, ...]:
    """The networks of one white address; none for a blank text, which stands for no address.

    Raises:
        UsageError: it is not an address that RocketMQ 4.x takes, or one that matches nobody there.
    """
    if not text.strip():
        return ()
    if text in _ALL:
        return EVERYWHERE
    if text.endswith("}"):
        return _named(_listed(text))
    if "," in text:
        return _named(_ones(part for part in text.split(",") if part))
    if "*" in text or "-" in text:
        return _named(_range6(text) if ":" in text else _range4(text))
    return _named(_ones([text]))


def joined(networks: Iterable[str]) -> tuple[str, ...]:
    """Networks without those that are part of others; `EVERYWHERE` for all addresses."""
    return _named(_network(each) for each in networks)


def _network(text: str) -> Network:
    return IPv6Network(text) if ":" in text else IPv4Network(text)


def _named(networks: Iterable[Network]) -> tuple[str, ...]:
    found = list(networks)
    made: list[Network] = []
    made += collapse_addresses(each for each in found if isinstance(each, IPv4Network))
    made += collapse_addresses(each for each in found if isinstance(each, IPv6Network))
    return tuple(map(_short, made))


def _short(network: Network) -> str:
    """A network; one of a single address as the address."""
    whole = network.prefixlen == network.max_prefixlen
    return str(network.network_address) if whole else str(network)


def _ones(texts: Iterable[str]) -> Iterator[Network]:
    for text in texts:
        try:
            address = ip_address(text)
        except ValueError:
            raise UsageError(
                f"{shown(text)} is no address: RocketMQ 4.x takes 10.0.0.1, 10.0.0.1,10.0.0.2, "
                "10.0.0.{1,2}, 10.0.0.1-100, 10.0.0.* and the same for IPv6"
            ) from None
        if getattr(address, "scope_id", None):
            raise UsageError(f"{shown(text)}: an address has no zone here")
        yield IPv4Network(address) if isinstance(address, IPv4Address) else IPv6Network(address)


def _listed(text: str) -> Iterator[Network]:
    """The addresses of a list at the end: `10.0.0.{1,2}`, `fe80::1:{a,b}`."""
    separator, least = (":", 1) if ":" in text else (".", 4)
    parts = [part for part in text.split(separator) if part]
    if len(parts) < least or not parts[-1].startswith("{"):
        raise UsageError(f"a list stands at the end, as 10.0.0.{{1,2}}: {shown(text)}")
    head = text[: text.index("{")]
    return _ones(head + each for each in parts[-1][1:-1].split(",") if each)


def _range4(text: str) -> Iterator[Network]:
    parts = [part.strip() for part in text.split(".") if part]
    if len(parts) != 4:
        raise UsageError(f"an address has four numbers: {shown(text)}")
    at, (start, end) = _first_range(text, parts, lambda digits: int(digits, 10), 255)
    head = [_number(text, part) for part in parts[:at]]
    low = [*head, start, *[0] * (3 - at)]
    high = [*head, end, *[255] * (3 - at)]
    return summarize_address_range(IPv4Address(bytes(low)), IPv4Address(bytes(high)))


def _range6(text: str) -> Iterator[Network]:
    parts = [part.strip() for part in text.split(":") if part]
    star = "*" in text
    if star and text.index("*") != len(text) - 1:
        raise UsageError(f"* stands only at the end of an IPv6 address: {shown(text)}")
    if "-" in text and any("-" in part for part in parts[: -1 - star]):
        raise UsageError(f"a range stands only at the end of an IPv6 address: {shown(text)}")
    _, (start, end) = _first_range(text, parts, lambda digits: int(digits, 16), 0xFFFF)
    ends = 2 if star and "-" in text else 1
    head = _groups(text, text.rsplit(":", ends)[0], _GROUPS - ends)
    rest = _GROUPS - len(head) - 1
    low = [*head, start, *[0] * rest]
    high = [*head, end, *[0xFFFF] * rest]
    return summarize_address_range(_of_groups(low), _of_groups(high))


def _first_range(
    text: str, parts: Sequence[str], number: Callable[[str], int], most: int
) -> tuple[int, tuple[int, int]]:
    """Where the first range stands, and its bounds. The first part of an address is never one."""
    for at, part in enumerate(parts[1:], 1):
        if part == "*":
            return at, (0, most)
        if "-" in part:
            found = _RANGE.fullmatch(part)
            try:
                start, end = map(number, found.groups()) if found else (1, 0)
            except ValueError:
                start, end = 1, 0
            if start <= end <= most and end:
                return at, (start, end)
            raise UsageError(f"{shown(part)} in {shown(text)} is no range, as 1-100")
    raise UsageError(f"the first part of an address cannot be a range: {shown(text)}")


def _number(text: str, part: str) -> int:
    if part.isascii() and part.isdigit() and str(int(part)) == part and int(part) <= 255:
        return int(part)
    raise UsageError(f"{shown(part)} in {shown(text)} is no number up to 255")


def _groups(text: str, head: str, most: int) -> list[int]:
    """The groups before a range; `::` stands for as many as there is room for."""
    left, gap, right = head.partition("::")
    groups = [[part or "0" for part in side.split(":")] if side else [] for side in (left, right)]
    if gap:
        groups.insert(1, ["0"] * (most - len(groups[0]) - len(groups[1])))
    flat = [part for side in groups for part in side]
    if len(flat) > most or not all(re.fullmatch("[0-9a-fA-F]{1,4}", part) for part in flat):
        raise UsageError(f"{shown(text)} is no IPv6 address")
    return [int(part, 16) for part in flat]


def _of_groups(groups: Sequence[int]) -> IPv6Address:
    return IPv6Address(b"".join(each.to_bytes(2, "big") for each in groups))
