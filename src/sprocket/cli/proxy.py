"""`sprocket proxy`: serves clients of RocketMQ's gRPC service, in one process or in several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import containers
from sprocket.cli.loading import Program
from sprocket.cli.options import ConfigFile, Host, Set
from sprocket.cli.running import IsChild, Verbose, serve_until_signal, shown_pages
from sprocket.cli.serve import Port

if TYPE_CHECKING:
    from sprocket.base.loaded_config import LoadedConfig
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
    is_child: IsChild = False,
    shared: Annotated[bool, typer.Option("--shared", hidden=True)] = False,
) -> None:
    """Runs a proxy between clients of RocketMQ's gRPC service and brokers."""
    from sprocket.metrics.config import MetricsConfig
    from sprocket.proxy.config import ProxyConfig
    from sprocket.remoting.tls.settings import TlsConfig

    overrides = {"proxy.nameservers": nameservers, "proxy.port": port, "proxy.host": host}
    loaded, said = containers.loaded_by(
        Program.PROXY, config=config, verbose=verbose, given=given, overrides=overrides
    )
    settings = loaded.of(ProxyConfig)
    if not settings.nameservers:
        raise UsageError("a proxy needs name servers: --nameserver HOST:PORT")
    if processes > 1:
        _run_several(processes, loaded, said)
    made = _proxy(settings, loaded.of(TlsConfig).whole(), is_shared=shared)
    serve_until_signal(
        _observed(made, loaded.of(MetricsConfig)),
        lambda node: f"sprocket proxy is ready: {made.address}{shown_pages(node.pages)}",
        verbose=verbose,
        about=(lambda node: {"address": made.address, "pages": node.pages}) if is_child else None,
    )


def _run_several(count: int, loaded: LoadedConfig, said: containers.Given) -> NoReturn:
    from sprocket.container.plan import page_settings, variables
    from sprocket.container.processes import ProcessLauncher
    from sprocket.container.proxies import Proxies
    from sprocket.metrics.config import MetricsConfig
    from sprocket.proxy.config import ProxyConfig

    serve_until_signal(
        Proxies(
            count,
            loaded.of(ProxyConfig),
            launcher=ProcessLauncher(),
            arguments=("proxy", "--shared", *said.options),
            settings=variables(
                loaded, {**said.settings, **page_settings(loaded.of(MetricsConfig))}
            ),
            metrics=loaded.of(MetricsConfig),
        ),
        lambda node: (
            f"sprocket proxy is ready: {node.address}, {count} processes{shown_pages(node.pages)}"
        ),
        verbose=said.verbose,
    )


def _observed(made: Proxy, config: Any) -> Observed[Proxy]:
    from sprocket.metrics.exporting import Observed
    from sprocket.metrics.health import serving
    from sprocket.metrics.of_proxy import ProxyMetrics

    return Observed(made, config, "proxy", ProxyMetrics(made), serving)


def _proxy(config: ProxyConfig, tls: Any, *, is_shared: bool) -> Proxy:
    from sprocket.proxy.proxy import Proxy
    from sprocket.runtime.clock import SystemClock
    from sprocket.runtime.entropy import SystemEntropy

    return Proxy(config, clock=SystemClock(), entropy=SystemEntropy(), tls=tls, is_shared=is_shared)
