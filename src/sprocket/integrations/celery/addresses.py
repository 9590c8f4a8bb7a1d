"""What a broker URL of kombu says: name servers, keys, prefix. Pure.

`sprocket+rocketmq://KEY:SECRET@host:9876/PREFIX`; several name servers are several URLs, or
addresses, separated by `;`, as kombu has them for every transport.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from sprocket.base.errors import ConfigError

_PORT = 9876


@dataclass(frozen=True)
class BrokerAddress:
    """A URL's parts.

    Attributes:
        nameservers: `host:port` of each.
        access_key: the user at brokers with access control, or None; so the secret key.
        prefix: with what the names of topics begin.
    """

    nameservers: tuple[str, ...]
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    prefix: str = ""


def address_of(urls: Iterable[str]) -> BrokerAddress:
    """Reads URLs of one cluster; keys and prefix are those of the first that has any.

    Raises:
        ConfigError: one is none, names no host, or has options.
    """
    nameservers: list[str] = []
    user = secret = None
    prefix = ""
    for url in urls:
        parts = urlsplit(url if "://" in url else f"//{url}")
        host, port = _host_of(parts)
        if not host:
            raise ConfigError("the broker's URL names no host: sprocket+rocketmq://host:9876")
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if name not in nameservers:
            nameservers.append(name)
        if user is None and parts.username:
            user, secret = unquote(parts.username), unquote(parts.password or "")
        path = unquote(parts.path).strip("/")
        prefix = prefix or (f"{path}-" if path else "")
    if not nameservers:
        raise ConfigError("the broker's URL names no host: sprocket+rocketmq://host:9876")
    return BrokerAddress(tuple(nameservers), user, secret, prefix)


def _host_of(parts: SplitResult) -> tuple[str | None, int]:
    """The host and port of a URL. Errors show nothing that may be a part of a secret."""
    try:
        host, port = parts.hostname, parts.port or _PORT
    except ValueError:
        port = -1
    if port < 0 or "@" in parts.path + parts.query + parts.fragment:
        raise ConfigError(
            "the broker's URL has no valid port. Several name servers are separated by ;"
            " and in keys / ? # @ and % are written as %2F %3F %23 %40 and %25"
        )
    names = [*(name for name, _ in parse_qsl(parts.query, True)), parts.fragment]
    if given := [name for name in names if name]:
        raise ConfigError(
            f"the broker's URL takes no options ({', '.join(given)}):"
            " they are set by broker_transport_options"
        )
    return host, port
