"""Settings of the transport, from a connection of kombu. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sprocket.base.errors import ConfigError
from sprocket.integrations.celery.addresses import address_of
from sprocket.integrations.queues.options import QueueOptions

#: Names of `broker_use_ssl`, and ours.
_TLS_NAMES = {
    "ca_certs": "tls_authorities",
    "certfile": "tls_certificate",
    "keyfile": "tls_key",
}
#: How `broker_use_ssl` says that no certificate is checked: the name and `ssl.CERT_NONE`.
_CHECKED, _CERT_NONE = "cert_reqs", 0
#: Options whose names, or units, are those that Celery's users know: theirs, ours, and the factor.
_OPTIONS = {
    "visibility_timeout": ("invisible_ms", 1000),
    "queue_name_prefix": ("prefix", None),
    "queues_per_topic": ("queues", None),
    "delay_max": ("delay_max_ms", 1000),
    "create_topics": ("create_topics", None),
}
#: Options of kombu's own virtual transports.
_KOMBU = {"polling_interval", "body_encoding", "deadletter_queue"}
#: Options of Celery and kombu that say how a connection is made.
_CONNECTING = {
    "max_retries", "interval_start", "interval_step", "interval_max", "errback",
    "connect_retries_timeout", "confirm_publish", "client_properties",
}  # fmt: skip


@dataclass(frozen=True)
class TransportSettings:
    """What a connection of kombu is to be.

    Attributes:
        nameservers: `host:port` of each.
        delays_at_broker: whether tasks with a countdown or an eta wait at the broker; else the
            worker that receives one holds it until then.
    """

    nameservers: tuple[str, ...]
    queues: QueueOptions
    delays_at_broker: bool = True

    @property
    def identity(self) -> str:
        """A text that equal settings share; it shows no keys."""
        return hashlib.sha256(repr(asdict(self)).encode()).hexdigest()


def settings_of(
    urls: list[str],
    options: Mapping[str, Any],
    ssl: bool | Mapping[str, Any] | None,
    keys: tuple[str, str] | None = None,
) -> TransportSettings:
    """Reads the URLs, `broker_transport_options` and `broker_use_ssl`.

    Args:
        keys: access key and secret key, unless the URLs have them.

    Raises:
        ConfigError: one of them is wrong, or an option is unknown.
    """
    address = address_of(urls)
    known = {*_OPTIONS, *_KOMBU, *_CONNECTING, "delays", "client"}
    if unknown := sorted(map(str, options.keys() - known)):
        raise ConfigError(
            f"no transport option {', '.join(unknown)}; there are "
            f"{', '.join(sorted({*_OPTIONS, 'delays', 'client'}))}"
        )
    delays = options.get("delays", "broker")
    if delays not in ("broker", "worker"):
        raise ConfigError(f"delays is broker or worker, not {delays!r}")
    client = options.get("client", {})
    if not isinstance(client, Mapping):
        raise ConfigError(f"client is a mapping of settings, not {client!r}")
    if address.access_key is not None:
        keys = address.access_key, address.secret_key or ""
    named = {} if keys is None else {"access_key": keys[0], "secret_key": keys[1]}
    client = {**named, **_tls(ssl), **client}
    given: dict[str, Any] = {"prefix": address.prefix}
    for name, (own, factor) in _OPTIONS.items():
        if name in options:
            given[own] = options[name] if factor is None else _times(name, options[name], factor)
    return TransportSettings(
        address.nameservers, QueueOptions(client=client, **given), delays == "broker"
    )


def _tls(ssl: bool | Mapping[str, Any] | None) -> dict[str, Any]:
    if not ssl:
        return {}
    if ssl is True:
        return {"tls": True}
    known = {*_TLS_NAMES, _CHECKED}
    if not isinstance(ssl, Mapping) or ssl.keys() - known:
        given = ", ".join(sorted(map(str, ssl.keys() - known))) if isinstance(ssl, Mapping) else ssl
        raise ConfigError(
            f"broker_use_ssl is True or has some of {', '.join(sorted(known))}, not {given}"
        )
    found: dict[str, Any] = {_TLS_NAMES[name]: ssl[name] for name in _TLS_NAMES if name in ssl}
    if ssl.get(_CHECKED) == _CERT_NONE:
        found["tls_check"] = False
    return {"tls": True, **found}


def _times(name: str, value: Any, factor: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value < 10**9:
        raise ConfigError(f"{name} is a number of seconds, not {value!r}")
    return round(value * factor)
