"""What each broker of a container is called, where it is and what it may take. Pure.

Brokers have numbers. From the number follow the ports, 20 apart, so that those that RocketMQ's
brokers use besides (one above for slaves, two below for old clients) stay free; the names and
folders are remembered, see `remembered`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sprocket.base.errors import ConfigError
from sprocket.base.loaded_config import DEFAULT, LoadedConfig
from sprocket.broker.config import BrokerConfig
from sprocket.container.remembered import ROOT, BrokerEntry
from sprocket.metrics.config import PROM, MetricsConfig
from sprocket.remoting import address as addresses
from sprocket.store.config import StoreConfig

#: Between the ports of two brokers.
PORT_STEP = 20
#: The ports of a broker, from its own: for old clients, its own, for slaves.
_VIP, _REPLICATION = -2, 1
_PORT_MAX = 65535
#: Settings that name folders which only one broker may use: each gets a folder of its own in them.
FOLDERS = ("audit.path", "store.log_paths", "store.log_read_only_paths")


class BrokerPlan(NamedTuple):
    """One broker of a container.

    Attributes:
        port: 0 for a free one.
        settings: of this broker, as texts by `part.name`.
    """

    entry: BrokerEntry
    port: int
    settings: Mapping[str, str]


def broker_plans(
    loaded: LoadedConfig,
    entries: Iterable[BrokerEntry],
    *,
    root: str,
    own: Mapping[str, Mapping[str, str]] | None = None,
) -> list[BrokerPlan]:
    """The brokers with what differs from the settings that all share.

    Args:
        loaded: the settings of the command.
        root: the folder of the container.
        own: settings of single brokers, by name.

    Raises:
        ConfigError: a port does not exist, or is taken twice.
    """
    entries = list(entries)
    shared = _shares(loaded, len(entries))
    plans = []
    for entry in entries:
        settings = {
            **shared,
            **_places(loaded, entry),
            "broker.name": entry.name,
            **({"broker.permission": "4"} if entry.leaves else {}),
            "store.path": root if entry.folder == ROOT else f"{root}/{entry.folder}",
            **(own or {}).get(entry.name, {}),
        }
        port = int(settings["broker.port"])
        plans.append(BrokerPlan(entry, port, settings))
    check_ports({p.entry.name: p.port for p in plans if p.port})
    return plans


def check_ports(brokers: Mapping[str, int], others: Mapping[str, int] | None = None) -> None:
    """Checks that nobody is to listen at a port of another one.

    Args:
        brokers: the ports of brokers by their names.
        others: the ports of other servers.

    Raises:
        ConfigError: a port does not exist, or two would listen at it.
    """
    taken = {port: name for name, port in (others or {}).items() if port}
    for name, port in brokers.items():
        for each in (port, port + _VIP, port + _REPLICATION):
            if each > _PORT_MAX:
                raise ConfigError(f"{name} would listen at port {each}: broker.port is too high")
            if each in taken:
                raise ConfigError(f"{name} and {taken[each]} would both listen at port {each}")
            taken[each] = name


def _places(loaded: LoadedConfig, entry: BrokerEntry) -> dict[str, str]:
    """Ports and folders that follow from the number of a broker."""
    config = loaded.of(BrokerConfig)
    step = PORT_STEP * entry.number
    found = {"broker.port": str(config.port + step if config.port else 0)}
    if config.replication_port:
        found["broker.replication_port"] = str(config.replication_port + step)
    if config.replication_master:
        host, port = addresses.split(config.replication_master)
        found["broker.replication_master"] = addresses.join(host, port + step)
    for key in FOLDERS:
        if loaded.origins[key] != DEFAULT and entry.folder != ROOT:
            part, _, name = key.partition(".")
            value = getattr(loaded.of_part(part), name) or ()
            paths = (value,) if isinstance(value, str) else value
            found[key] = ";".join(f"{each}/{entry.folder}" for each in paths)
    return found


def _shares(loaded: LoadedConfig, count: int) -> dict[str, str]:
    """What a broker may take when so many share a machine, a disk and a topic.

    Ratios of the disk are of the whole disk for everybody, and stay as they are.
    """
    broker, store = loaded.of(BrokerConfig), loaded.of(StoreConfig)
    found = {
        "broker.template_queues": str(-(-broker.template_queues // count)),
        "broker.memory_percent": str(-(-broker.memory_percent // count)),
        "broker.unfinished_bytes_max": str(max(1 << 20, broker.unfinished_bytes_max // count)),
    }
    if store.log_bytes_max:
        found["store.log_bytes_max"] = str(max(1, store.log_bytes_max // count))
    return found | page_settings(loaded.of(MetricsConfig))


def page_settings(config: MetricsConfig) -> dict[str, str]:
    """Where a process serves its metrics and health, if it does: only its parent reads them."""
    if config.exporter == PROM or config.health:
        return {"metrics.host": "127.0.0.1", "metrics.port": "0"}
    return {}


def variables(loaded: LoadedConfig, settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as the environment variables of a process; those that it does not have are left out.

    The environment of a process is for the eyes of its user only, unlike its arguments.
    """
    declared = loaded.declared
    return {declared[key].environment: value for key, value in settings.items() if key in declared}


def as_text(value: object) -> str:
    """A value of a setting as the text that stands for it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ";".join(map(str, value)) if isinstance(value, tuple) else str(value)
