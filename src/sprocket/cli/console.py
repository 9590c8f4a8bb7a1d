"""`sprocket console`: the web console, with the HTTP API and MCP beside its pages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, NoReturn, TypeVar

import typer

from sprocket.base.errors import UsageError
from sprocket.base.opened_in_order import OpenedInOrder
from sprocket.cli import loading
from sprocket.cli.decoding import Registry, codec_of
from sprocket.cli.options import NAMESERVER, NameServers, Timeout
from sprocket.cli.running import Verbose, serve_until_signal
from sprocket.cli.web_options import Audit, Certificate, Key, WebHost, WebPort, api_settings

if TYPE_CHECKING:
    from sprocket.console.api.running import ApiSettings
    from sprocket.console.api.web_address import WebAddress
    from sprocket.console.console import ConsoleServer
    from sprocket.metrics.exporting import Serving

S = TypeVar("S", bound="Serving")

EXAMPLES = (
    "sprocket console",
    "sprocket console --nameserver 10.0.0.1:9876;10.0.0.2:9876 --read-only",
    "sprocket console --host 0.0.0.0 --host-name console.example.com",
    "sprocket console --reports reports --callers callers.toml --allow-changes",
)

ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Nothing can be changed in the console.")
]
Reports = Annotated[
    Path | None,
    typer.Option("--reports", metavar="DIR", help="Folder of the reports of Spark pipelines."),
]


def console(
    nameserver: NameServers = NAMESERVER,
    host: WebHost = "127.0.0.1",
    port: WebPort = 8080,
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            "--host-name",
            metavar="NAME",
            help="A name by which browsers call this console; may be given again. localhost, "
            "addresses and this machine's own name are allowed anyway.",
        ),
    ] = None,
    read_only: ReadOnly = False,
    reports: Reports = None,
    audit: Audit = None,
    callers: Annotated[
        Path | None,
        typer.Option(
            "--callers", metavar="FILE",
            help="TOML file of who may use the HTTP API and MCP. Without it they are served at "
            "addresses of this machine only.",
        ),
    ] = None,
    allow_changes: Annotated[
        bool,
        typer.Option("--allow-changes", help="Allow changes by the HTTP API and MCP too."),
    ] = False,
    certificate: Certificate = None,
    key: Key = None,
    registry: Registry = None,
    timeout: Timeout = 5.0,
    verbose: Verbose = False,
) -> None:  # fmt: skip
    """Serves the web console: see a cluster, and steer it.

    Where the brokers know users, each logs in with its keys, and the console asks in its name. The
    console's own keys, client.access_key and client.secret_key, are for its plots over time.
    """
    from sprocket.console.api.web_address import WebAddress

    serve_until_signal(
        console_server(
            WebAddress(host, port, certificate, key),
            api_settings(nameserver, timeout, audit, allow_changes=allow_changes and not read_only),
            callers=callers,
            host_names=tuple(host_name or ()),
            is_read_only=read_only,
            reports=reports,
            bodies=codec_of(registry),
        ),
        lambda server: f"sprocket console is ready: {server.url}",
        verbose=verbose,
    )


class Consoled(OpenedInOrder, Generic[S]):
    """A server with a console over it. Use it with `async with`, and `serve` inside.

    Args:
        nameserver: the address of its name server, once it has started.

    Attributes:
        server: the server.
    """

    def __init__(self, server: S, port: int, nameserver: Callable[[S], str]) -> None:
        self.server = server
        self._port = port
        self._nameserver = nameserver
        self._console: ConsoleServer | None = None

    @property
    def url(self) -> str:
        """The address of the console, after the start."""
        assert self._console is not None
        return self._console.url

    async def _open(self, opened: AsyncExitStack) -> None:
        from sprocket.console.api.web_address import WebAddress

        await opened.enter_async_context(self.server)
        shared = api_settings(self._nameserver(self.server), 5.0, None, allow_changes=False)
        self._console = console_server(WebAddress(port=self._port), shared)
        await opened.enter_async_context(self._console)

    async def serve(self) -> None:
        """Serves until the server fails."""
        await self.server.serve()


def serve_consoled(
    server: S,
    ready: Callable[[S], str],
    nameserver: Callable[[S], str],
    port: int | None,
    *,
    verbose: bool,
) -> NoReturn:
    """Runs a server until a signal, with a console over it unless its port is None.

    Args:
        ready: makes the line that is printed when the server is ready.
        nameserver: the address of its name server, once it has started.
    """
    if port is None:
        serve_until_signal(server, ready, verbose=verbose)
    serve_until_signal(
        Consoled(server, port, nameserver),
        lambda made: f"{ready(made.server)}, console {made.url}",
        verbose=verbose,
    )


def console_server(
    address: WebAddress, shared: ApiSettings, *, callers: Path | None = None, **settings: Any
) -> ConsoleServer:
    """A console that is not started yet.

    Args:
        shared: what the API works with, and the pages too.
        callers: the file of those who may use the API.
        settings: more of `ConsoleSettings`.

    Raises:
        UsageError: the libraries are missing.
        ConfigError: a setting is not valid.
    """
    try:
        from sprocket.console.console import Console, ConsoleServer
    except ImportError as error:
        raise UsageError(
            f"the console needs its libraries ({error.name} is missing): "
            "pip install 'sprocketmq[console]'"
        ) from None
    from sprocket.console.api.api import Api
    from sprocket.console.api.callers import KnownCallers
    from sprocket.console.web.settings import ConsoleSettings

    made = ConsoleSettings(
        shared.nameservers,
        timeout_ms=shared.timeout_ms,
        signer=loading.client().signer(),
        audit_folder=shared.audit_folder,
        tls=shared.tls,
        is_secure=address.is_secure,
        **settings,
    )
    known = KnownCallers.of_file(callers)
    is_served = not known.is_open or address.is_of_this_machine
    api = Api(shared, known) if is_served else None
    return ConsoleServer(Console(made, api=api), address)
