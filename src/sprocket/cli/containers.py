"""`--processes` of `sprocket broker` and `sprocket standalone`: many brokers behind one command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading
from sprocket.cli.console import serve_consoled
from sprocket.cli.loading import Program
from sprocket.cli.running import shown_pages

if TYPE_CHECKING:
    from sprocket.base.loaded_config import LoadedConfig
    from sprocket.container.container import Container
    from sprocket.container.remembered import ContainerState
    from sprocket.nameserver.nameserver import NameServer

_AUTO = "auto"
PROCESSES_MAX = 64

Processes = Annotated[
    str | None,
    typer.Option(
        "--processes",
        metavar="N|auto",
        help="Run N brokers, each a process with name, ports and folder of its own; auto is one a "
        "core, or as many as the folder has.",
    ),
]
SetOf = Annotated[
    list[str] | None,
    typer.Option(
        "--set-of",
        metavar="BROKER:PART.NAME=VALUE",
        help="One setting of one of the brokers of --processes; may be given again.",
    ),
]


@dataclass(frozen=True, slots=True)
class Given:
    """What a command line says besides the number of processes.

    Attributes:
        settings: by `part.name`, as texts.
        own: the same for single brokers, by their names.
    """

    config: Path | None
    verbose: bool
    settings: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the command that every process gets."""
        config = () if self.config is None else ("--config", os.path.abspath(self.config))
        return (*config, *(("--verbose",) if self.verbose else ()))


def given_by(
    *,
    config: Path | None,
    verbose: bool,
    given: Sequence[str] | None,
    overrides: Mapping[str, Any],
    own: Sequence[str] | None,
) -> Given:
    """What a command line says.

    Raises:
        UsageError: a setting of one broker has another form.
    """
    from sprocket.container.plan import as_text

    settings = {
        key.strip(): value.strip() for key, _, value in (p.partition("=") for p in given or ())
    }
    settings |= {key: as_text(value) for key, value in overrides.items() if value is not None}
    of_each: dict[str, dict[str, str]] = {}
    for text in own or ():
        broker, colon, pair = text.partition(":")
        key, sign, value = pair.partition("=")
        if not (broker and colon and sign):
            raise UsageError(f"--set-of takes BROKER:PART.NAME=VALUE, not {text!r}")
        of_each.setdefault(broker.strip(), {})[key.strip()] = value.strip()
    return Given(config, verbose, settings, of_each)


def loaded_by(
    program: Program,
    *,
    config: Path | None,
    verbose: bool,
    given: Sequence[str] | None,
    overrides: Mapping[str, Any],
    own: Sequence[str] | None = None,
) -> tuple[LoadedConfig, Given]:
    """The settings of a server, and what of them its command line says.

    Raises:
        ConfigError, UsageError: something is wrong.
    """
    said = given_by(config=config, verbose=verbose, given=given, overrides=overrides, own=own)
    kinds = loading.kinds_of(program)
    return loading.of_servers(kinds, file=config, given=given, overrides=overrides), said


def state_of(processes: str | None, root: str, name: str) -> ContainerState | None:
    """The brokers that a start has; None for a single one, which is this process.

    Raises:
        UsageError: the folder has another number of brokers.
    """
    from sprocket.container import remembered
    from sprocket.runtime.disk import SystemDisk

    disk = SystemDisk()
    file = remembered.ContainerFile(disk, root)
    if processes is None:
        remembered.check_is_single(file)
        return None
    count = None if processes == _AUTO else number(processes)
    if file.load() is None:
        if count is None and remembered.has_store(disk, root):
            loading.note(
                f"{root} has the messages of a single broker, which goes on alone: sprocket "
                f"container resize --store {root} --processes {cores()} makes it one of several"
            )
            return None
        count = count or cores()
        if count == 1:
            return None
    return remembered.brokers_at_start(file, disk, name=name, count=count)


def number(text: str) -> int:
    """A number of processes.

    Raises:
        UsageError: it is none, or too large.
    """
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:6]) <= PROCESSES_MAX:
        raise UsageError(f"--processes takes 1 to {PROCESSES_MAX} or auto, not {text!r}")
    return int(text)


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return min(PROCESSES_MAX, len(os.sched_getaffinity(0)))
    return min(PROCESSES_MAX, os.cpu_count() or 1)


def run(
    loaded: LoadedConfig,
    given: Given,
    state: ContainerState,
    *,
    is_standalone: bool = False,
    console_port: int | None = None,
) -> NoReturn:
    """Runs the brokers of a container until a signal.

    Args:
        console_port: port of a console over it, which only a standalone one has; None for none.
    """
    from sprocket.base.loaded_config import DEFAULT
    from sprocket.broker.config import BrokerConfig
    from sprocket.container.container import Container, ContainerSetup
    from sprocket.container.plan import broker_plans, check_ports
    from sprocket.container.processes import ProcessLauncher
    from sprocket.container.remembered import ContainerFile
    from sprocket.proxy.config import ProxyConfig
    from sprocket.runtime.disk import SystemDisk
    from sprocket.store.config import StoreConfig

    root, disk = os.path.abspath(loaded.of(StoreConfig).path), SystemDisk()
    names = {each.name: each.name for each in state.brokers}
    names |= {str(each.number): each.name for each in state.brokers}
    if strange := given.own.keys() - names.keys():
        raise UsageError(
            f"--set-of: there is no broker {min(strange)} here, only {', '.join(names)}"
        )
    setup = ContainerSetup(
        loaded,
        ContainerFile(disk, root),
        state,
        broker_plans(
            loaded, state.brokers, root=root, own={names[k]: v for k, v in given.own.items()}
        ),
        ("broker", *given.options),
        lambda path: loading.of_servers(loading.kinds_of(Program.BROKER), file=Path(path)),
        given.settings,
        _proxy(loaded, given) if is_standalone and loaded.of(ProxyConfig).enabled else None,
        needs_proxy=is_standalone and loaded.origins["proxy.port"] != DEFAULT,
    )
    check_ports(
        {each.entry.name: each.port for each in setup.brokers if each.port},
        _other_ports(loaded, is_standalone=is_standalone),
    )
    rules = loaded.of(BrokerConfig)
    if rules.authentication and not rules.inner_keys:
        loading.note(
            "broker.authentication is on without broker.inner_keys: topics are not made at all "
            "brokers, since the container cannot sign what it asks them"
        )
    nameserver = _nameserver(loaded, root) if is_standalone else None
    container = Container(setup, disk=disk, launcher=ProcessLauncher(), nameserver=nameserver)
    serve_consoled(container, _ready, _nameserver_address, console_port, verbose=given.verbose)


def _nameserver_address(container: Container) -> str:
    assert container.nameserver is not None
    return container.nameserver.address


def _other_ports(loaded: LoadedConfig, *, is_standalone: bool) -> dict[str, int]:
    """The ports that are not those of brokers."""
    from sprocket.container.config import ContainerConfig
    from sprocket.metrics.config import PROM, MetricsConfig
    from sprocket.nameserver.config import NameServerConfig
    from sprocket.proxy.config import ProxyConfig

    found = {"the container": loaded.of(ContainerConfig).port}
    metrics = loaded.of(MetricsConfig)
    if metrics.exporter == PROM or metrics.health:
        found["metrics"] = metrics.port
    if is_standalone:
        found["the name server"] = loaded.of(NameServerConfig).port
        if loaded.of(ProxyConfig).enabled:
            found["the proxy"] = loaded.of(ProxyConfig).port
    return found


def _ready(container: Container) -> str:
    brokers = container.brokers
    shown = ", ".join(f"{name} {address or 'does not run'}" for name, address in brokers.items())
    nameserver = container.nameserver
    before = "" if nameserver is None else f"name server {nameserver.address}, "
    after = "" if nameserver is None else f", gRPC {container.proxy_address or 'off'}"
    return (
        f"sprocket is ready: {before}{shown}{after}, container {container.address}, "
        f"store {container.root}{shown_pages(container.pages)}"
    )


def _nameserver(loaded: LoadedConfig, root: str) -> NameServer:
    from dataclasses import replace

    from sprocket.audit.config import AuditConfig
    from sprocket.base.loaded_config import DEFAULT
    from sprocket.nameserver.config import NameServerConfig
    from sprocket.nameserver.nameserver import NameServer
    from sprocket.remoting.tls.settings import TlsConfig

    config, audit = loaded.of(NameServerConfig), loaded.of(AuditConfig)
    folder = f"{root}/nameserver"
    # Keys of an ordered topic stay with their queues while a broker is down, if routes say so.
    is_open = loaded.origins["nameserver.order_conf_in_routes"] == DEFAULT
    return NameServer(
        replace(
            config,
            kv_path=config.kv_path or f"{folder}/kvConfig.json",
            accounts_path=config.accounts_path or f"{folder}/accounts.json",
            order_conf_in_routes=config.order_conf_in_routes or is_open,
        ),
        tls=loaded.of(TlsConfig).whole(),
        audit=replace(audit, path=audit.path or f"{root}/audit"),
    )


def _proxy(loaded: LoadedConfig, given: Given) -> Any:
    """Makes the process of a proxy, which checks the same users as the brokers."""
    from sprocket.broker.config import BrokerConfig
    from sprocket.container.children import ChildSpec
    from sprocket.container.plan import as_text, page_settings, variables
    from sprocket.metrics.config import MetricsConfig
    from sprocket.proxy.config import ProxyConfig

    config, rules = loaded.of(ProxyConfig), loaded.of(BrokerConfig)

    def spec(nameservers: Sequence[str]) -> ChildSpec:
        settings = {
            **given.settings,
            **page_settings(loaded.of(MetricsConfig)),
            "proxy.nameservers": as_text(tuple(nameservers)),
            "proxy.authentication": as_text(config.authentication or rules.authentication),
            "proxy.authorization": as_text(config.authorization or rules.authorization),
        }
        if keys := config.inner_keys or rules.inner_keys:
            settings["proxy.inner_keys"] = keys
        return ChildSpec("proxy", ("proxy", *given.options), variables(loaded, settings), rank=1)

    return spec
