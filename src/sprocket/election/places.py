"""Where an elector is, as a setting says it. Pure.

etcd://host:port,host:port       etcd; http:// means the same
https://host:port,host:port      etcd with TLS
etcd://user@host:port            the same as a user, whose password is a setting of its own
controller://host:port;host:port RocketMQ's controller
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sprocket.base import setting_forms as forms
from sprocket.base.suggestions import nearest, shown

ETCD, CONTROLLER = "etcd", "controller"

#: By scheme, what answers there and whether with TLS.
_SCHEMES = {"etcd": (ETCD, False), "http": (ETCD, False), "https": (ETCD, True),
            "controller": (CONTROLLER, False)}  # fmt: skip
_EXAMPLE = "etcd://host:2379,host:2379 or controller://host:9878;host:9878"


class ElectorPlace(NamedTuple):
    """Where an elector is.

    Attributes:
        kind: `ETCD` or `CONTROLLER`.
        addresses: its servers, `host:port`.
        user: of etcd; empty without one.
        is_tls: whether connections use TLS.
    """

    kind: str
    addresses: tuple[str, ...]
    user: str = ""
    is_tls: bool = False


def elector_form(value: str) -> str | None:
    """Why a text names no elector, in words that stand behind the setting's name."""
    found = _parsed(value)
    return found if isinstance(found, str) else None


def parse_place(value: str) -> ElectorPlace:
    """The place that a text names; see the head of this module.

    Raises:
        ValueError: it names none; the text says why.
    """
    found = _parsed(value)
    if isinstance(found, str):
        raise ValueError(f"the elector {found}")
    return found


def _parsed(value: str) -> ElectorPlace | str:
    scheme, mark, rest = value.strip().partition("://")
    is_shown = "@" not in value  # what stands before one may be a password
    if not mark:
        return f"is {_EXAMPLE}" + (f", not {shown(value)}" if is_shown else "")
    if scheme not in _SCHEMES and not is_shown:
        return "begins with etcd://, https:// or controller://"
    if scheme not in _SCHEMES:
        return f"begins with etcd://, https:// or controller://, not {shown(scheme + '://')}" + (
            nearest(scheme, _SCHEMES)
        )
    kind, is_tls = _SCHEMES[scheme]
    user, at, hosts = rest.rpartition("@")
    if kind == CONTROLLER and at:
        return "takes a user with etcd only"
    if ":" in user:  # the text is shown to everyone who may read the settings
        return "takes no password: it belongs into broker.elector_password"
    if at and not user:
        return "has no user before its @"
    addresses = []
    for each in re.split("[,;]", hosts.rstrip("/")):
        address = each.strip().removeprefix(f"{scheme}://").rstrip("/")
        if not address:
            return f"names no server: {_EXAMPLE}"
        if complaint := forms.address(address):
            return f"names servers, each of which {complaint}"
        if address in addresses:
            return f"names {shown(address)} twice"
        addresses.append(address)
    return ElectorPlace(kind, tuple(addresses), user, is_tls)
