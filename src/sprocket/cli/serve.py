"""`sprocket standalone`, `nameserver` and `broker`: servers that run until a signal.

Each prints one line when it is ready. On SIGTERM or Ctrl-C it finishes requests in flight, saves
everything and exits with code 0 within seconds; a second signal ends it at once.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import UsageError
from sprocket.base.loaded_config import DEFAULT
from sprocket.cli import containers, loading
from sprocket.cli.console import serve_consoled
from sprocket.cli.containers import Given, Processes, SetOf
from sprocket.cli.loading import Program
from sprocket.cli.options import ConfigFile, Host, Set
from sprocket.cli.passwords import closing_settings
from sprocket.cli.running import IsChild, Verbose, serve_until_signal, shown_pages

if TYPE_CHECKING:
    from sprocket.base.loaded_config import LoadedConfig
    from sprocket.broker.broker import Broker
    from sprocket.metrics.exporting import Observed
    from sprocket.standalone import Standalone
    from sprocket.store.config import StoreConfig

Store = Annotated[
    Path | None,
    typer.Option("--store", "-s", metavar="DIR", help="Folder of all data."),
]
Advertise = Annotated[
    str | None,
    typer.Option(
        "--advertise",
        metavar="ADDRESS",
        help="Address that clients get; needed if the broker listens at all addresses.",
    ),
]
Port = Annotated[
    int | None,
    typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port; 0 takes a free one."),
]

NameServerPort = Annotated[
    int | None,
    typer.Option(
        "--nameserver-port",
        metavar="N",
        min=0,
        max=65535,
        help="TCP port of the name server; 0 takes a free one.",
    ),
]
BrokerPort = Annotated[
    int | None,
    typer.Option(
        "--broker-port",
        metavar="N",
        min=0,
        max=65535,
        help="TCP port of the broker; 0 takes a free one.",
    ),
]
GrpcPort = Annotated[
    str | None,
    typer.Option(
        "--grpc-port",
        metavar="N|off",
        help="TCP port for clients of RocketMQ's gRPC service (8081); 0 takes a free one, off "
        "leaves them out.",
    ),
]

STANDALONE_EXAMPLES = (
    "sprocket standalone",
    "sprocket standalone --store /var/lib/sprocket --nameserver-port 9876 --broker-port 10911",
    "sprocket standalone --config broker.conf --host 0.0.0.0 --advertise 10.0.0.7",
    "sprocket standalone --grpc-port off",
    "sprocket standalone --console",
    "sprocket standalone --processes auto --store /var/lib/sprocket",
)
NAMESERVER_EXAMPLES = (
    "sprocket nameserver",
    "sprocket nameserver --host 0.0.0.0 --store /var/lib/sprocket-ns",
)
BROKER_EXAMPLES = (
    "sprocket broker --nameserver 127.0.0.1:9876 --store /var/lib/sprocket",
    "sprocket broker --config broker.conf --set broker.name=broker-b",
    "sprocket broker --config broker.conf --processes 4",
)


def standalone(
    store: Store = None,
    nameserver_port: NameServerPort = None,
    broker_port: BrokerPort = None,
    grpc_port: GrpcPort = None,
    host: Host = None,
    advertise: Advertise = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user",
            metavar="NAME:PASSWORD-FILE",
            help="A super user, made if there is none of its name. Broker and proxy take only "
            "signed requests then, of users who have the rights.",
        ),
    ] = None,
    processes: Processes = None,
    console: Annotated[
        bool, typer.Option("--console", help="Serve the web console too, at this machine only.")
    ] = False,
    console_port: Annotated[
        int,
        typer.Option(
            "--console-port", metavar="N", min=0, max=65535,
            help="TCP port of the console; 0 takes a free one.",
        ),
    ] = 8080,
    config: ConfigFile = None,
    given: Set = None,
    own: SetOf = None,
    verbose: Verbose = False,
) -> None:  # fmt: skip
    """Runs a name server, a broker and a proxy for gRPC clients in one process."""
    overrides = {
        "store.path": _path(store),
        "nameserver.port": nameserver_port,
        "broker.port": broker_port,
        "nameserver.host": host,
        "broker.host": host,
        "broker.advertised_host": advertise,
        "proxy.host": host,
        **_grpc(grpc_port),
        **closing_settings(user),
    }
    _run_standalone(
        *containers.loaded_by(
            Program.STANDALONE,
            config=config,
            verbose=verbose,
            given=given,
            overrides=overrides,
            own=own,
        ),
        processes,
        console_port if console else None,
    )


def _run_standalone(
    loaded: LoadedConfig, said: Given, processes: str | None, console_port: int | None
) -> None:
    """Runs a name server with a broker, or with a container of some."""
    from sprocket.broker.config import BrokerConfig
    from sprocket.container.config import ContainerConfig
    from sprocket.standalone import Standalone
    from sprocket.store.config import StoreConfig

    root = os.path.abspath(loaded.of(StoreConfig).path)
    state = containers.state_of(processes, root, loaded.of(BrokerConfig).name)
    if state is not None:
        containers.run(loaded, said, state, is_standalone=True, console_port=console_port)
    node = Standalone(
        store=root,
        needs_grpc=loaded.origins["proxy.port"] != DEFAULT,
        configs=[loaded.of(kind) for kind in loaded.kinds if kind is not ContainerConfig],
    )
    serve_consoled(
        node, _ready, lambda made: made.nameserver_address, console_port, verbose=said.verbose
    )


def _ready(node: Standalone) -> str:
    return (
        f"sprocket is ready: name server {node.nameserver_address}, "
        f"broker {node.broker_address}, gRPC {node.grpc_address or 'off'}, store {node.store}"
        f"{shown_pages(node.pages)}"
    )


def _grpc(port: str | None) -> dict[str, Any]:
    """The settings that `--grpc-port` makes."""
    if port is None:
        return {}
    if port.lower() == "off":
        return {"proxy.enabled": False}
    if not (port.isascii() and port.isdecimal()) or int(port[:6]) > 65535:
        raise UsageError(f"--grpc-port takes a port, 0 or off, not {port!r}")
    return {"proxy.enabled": True, "proxy.port": int(port)}


def nameserver(
    port: Port = None,
    host: Host = None,
    store: Store = None,
    config: ConfigFile = None,
    given: Set = None,
    verbose: Verbose = False,
) -> None:
    """Runs a name server, from which clients get the routes of topics."""
    from sprocket.audit.config import AuditConfig
    from sprocket.metrics.config import MetricsConfig
    from sprocket.metrics.exporting import Observed
    from sprocket.metrics.health import serving
    from sprocket.metrics.of_nameserver import NameServerMetrics
    from sprocket.nameserver.config import NameServerConfig
    from sprocket.nameserver.nameserver import NameServer
    from sprocket.remoting.tls.settings import TlsConfig

    kv_path = None if store is None else f"{_path(store)}/kvConfig.json"
    loaded = loading.of_servers(
        loading.kinds_of(Program.NAMESERVER),
        file=config,
        given=given,
        overrides={
            "nameserver.port": port, "nameserver.host": host, "nameserver.kv_path": kv_path,
        },
    )  # fmt: skip
    server = NameServer(
        loaded.of(NameServerConfig),
        tls=loaded.of(TlsConfig).whole(),
        audit=loaded.of(AuditConfig),
    )
    serve_until_signal(
        Observed(
            server, loaded.of(MetricsConfig), "nameserver", NameServerMetrics(server), serving
        ),
        lambda made: (
            f"sprocket name server is ready: {made.server.address}{shown_pages(made.pages)}"
        ),
        verbose=verbose,
    )


def broker(
    nameservers: Annotated[
        str | None,
        typer.Option(
            "--nameserver",
            "-n",
            metavar="HOST:PORT",
            envvar=["SPROCKET_NAMESERVERS", "NAMESRV_ADDR"],
            help="Name servers to register at, separated by `;`.",
        ),
    ] = None,
    store: Store = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The broker's name.")
    ] = None,
    port: Port = None,
    host: Host = None,
    advertise: Advertise = None,
    processes: Processes = None,
    config: ConfigFile = None,
    given: Set = None,
    own: SetOf = None,
    verbose: Verbose = False,
    is_child: IsChild = False,
) -> None:
    """Runs a broker, which stores messages and delivers them to consumers."""
    overrides = {
        "broker.nameservers": nameservers,
        "store.path": _path(store),
        "broker.name": name,
        "broker.port": port,
        "broker.host": host,
        "broker.advertised_host": advertise,
    }
    _run_broker(
        *containers.loaded_by(
            Program.BROKER,
            config=config,
            verbose=verbose,
            given=given,
            overrides=overrides,
            own=own,
        ),
        processes,
        is_child=is_child,
    )


def _run_broker(
    loaded: LoadedConfig, said: Given, processes: str | None, *, is_child: bool
) -> None:
    """Runs a broker, or a container of some."""
    from sprocket.broker.config import BrokerConfig
    from sprocket.metrics.config import MetricsConfig
    from sprocket.store.config import StoreConfig

    settings = loaded.of(BrokerConfig)
    if not settings.nameservers:
        loading.note("no name server is given; clients will not find the broker")
    path = os.path.abspath(loaded.of(StoreConfig).path)
    if not is_child and (state := containers.state_of(processes, path, settings.name)) is not None:
        containers.run(loaded, said, state)
    made = _broker(loaded, replace(loaded.of(StoreConfig), path=path))
    serve_until_signal(
        _observed(made, loaded.of(MetricsConfig)),
        lambda made: (
            f"sprocket broker is ready: {settings.name} at {made.server.address}, store {path}"
            f"{shown_pages(made.pages)}"
        ),
        verbose=said.verbose,
        about=(lambda made: {"address": made.server.address, "pages": made.pages})
        if is_child
        else None,
    )


def _observed(made: Broker, config: Any) -> Observed[Broker]:
    from sprocket.metrics.exporting import Observed
    from sprocket.metrics.health import BrokerHealth
    from sprocket.metrics.of_broker import BrokerMetrics

    source = BrokerMetrics(made, by_queue=config.by_queue)
    return Observed(made, config, "broker", source, BrokerHealth(made))


def _broker(loaded: LoadedConfig, store: StoreConfig) -> Broker:
    from sprocket.audit.config import AuditConfig
    from sprocket.broker.broker import Broker
    from sprocket.broker.config import BrokerConfig
    from sprocket.broker.tables.measures import BrokerMeasures
    from sprocket.metrics.config import MetricsConfig
    from sprocket.remoting.tls.settings import TlsConfig
    from sprocket.runtime.clock import SystemClock
    from sprocket.runtime.disk import SystemDisk
    from sprocket.runtime.entropy import SystemEntropy
    from sprocket.runtime.memory import memory_bytes

    return Broker(
        loaded.of(BrokerConfig),
        store=store,
        root=store.path,
        disk=SystemDisk(),
        clock=SystemClock(),
        entropy=SystemEntropy(),
        memory_bytes=memory_bytes(),
        tls=loaded.of(TlsConfig).whole(),
        audit=loaded.of(AuditConfig),
        measures=BrokerMeasures() if loaded.of(MetricsConfig).measures else None,
    )


def _path(folder: Path | None) -> str | None:
    return None if folder is None else os.path.abspath(folder)
