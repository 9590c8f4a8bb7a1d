"""`sprocket proxy`: serves clients of RocketMQ's gRPC service, in one process or in several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading
from sprocket.cli.loading import Program
from sprocket.cli.options import ConfigFile, Host, Set
from sprocket.cli.serve import Port, Verbose, serve_until_signal, shown_pages

if TYPE_CHECKING:
    from sprocket.metrics.exporting import Observed
    from sprocket.proxy.config import ProxyConfig
    from sprocket.proxy.proxy import Proxy

EXAMPLES = (
    "sprocket proxy --nameserver 127.0.0.1:9876",
    "sprocket proxy --nameserver 10.0.0.1:9876;10.0.0.2:9876 --host 0.0.0.0 --processes 4",
    "sprocket proxy --config rmq-proxy.json --port 8081",
)

_PROCESSES_MAX = 64


def proxy(
    nameservers: Annotated[
        str | None,
        typer.Option(
            "--nameserver",
            "-n",
            metavar="HOST:PORT",
            envvar=["SPROCKET_NAMESERVERS", "NAMESRV_ADDR"],
            help="Name servers that know the brokers, separated by `;`.",
        ),
    ] = None,
    port: Port = None,
    host: Host = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            metavar="N",
            min=1,
            max=_PROCESSES_MAX,
            help="Processes that share the port.",
        ),
    ] = 1,
    config: ConfigFile = None,
    given: Set = None,
    verbose: Verbose = False,
    shared: Annotated[bool, typer.Option("--shared", hidden=True)] = False,
) -> None:
    """Runs a proxy between clients of RocketMQ's gRPC service and brokers."""
    from sprocket.cli.processes import Processes, SharingProcess
    from sprocket.metrics.config import MetricsConfig
    from sprocket.proxy.config import ProxyConfig
    from sprocket.remoting.tls.settings import TlsConfig

    loaded = loading.of_servers(
        loading.kinds_of(Program.PROXY),
        file=config,
        given=given,
        overrides={"proxy.nameservers": nameservers, "proxy.port": port, "proxy.host": host},
    )
    settings = loaded.of(ProxyConfig)
    if not settings.nameservers:
        raise UsageError("a proxy needs name servers: --nameserver HOST:PORT")
    if processes > 1 and not shared:
        serve_until_signal(
            Processes(processes, settings),
            lambda node: f"sprocket proxy is ready: {node.address}, {processes} processes",
            verbose=verbose,
        )
        return
    made = _proxy(settings, loaded.of(TlsConfig).whole(), is_shared=shared)
    node: Any = SharingProcess(made) if shared else made
    metrics = loaded.of(MetricsConfig)
    serve_until_signal(
        _observed(node, made, metrics.without_pages() if shared else metrics),
        lambda node: f"sprocket proxy is ready: {made.address}{shown_pages(node.pages)}",
        verbose=verbose,
    )


def _observed(node: Any, made: Proxy, config: Any) -> Observed[Any]:
    from sprocket.metrics.exporting import Observed
    from sprocket.metrics.health import serving
    from sprocket.metrics.of_proxy import ProxyMetrics

    return Observed(node, config, "proxy", ProxyMetrics(made), serving)


def _proxy(config: ProxyConfig, tls: Any, *, is_shared: bool) -> Proxy:
    from sprocket.proxy.proxy import Proxy
    from sprocket.runtime.clock import SystemClock
    from sprocket.runtime.entropy import SystemEntropy

    return Proxy(config, clock=SystemClock(), entropy=SystemEntropy(), tls=tls, is_shared=is_shared)
