"""`sprocket console`: the web console, with the HTTP API and MCP beside its pages."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading
from sprocket.cli.api import Audit
from sprocket.cli.decoding import Registry, codec_of
from sprocket.cli.options import NAMESERVER, NameServers, Timeout
from sprocket.cli.running import Verbose, serve_until_signal

if TYPE_CHECKING:
    from sprocket.console.console import ConsoleServer
    from sprocket.standalone import Standalone

EXAMPLES = (
    "sprocket console",
    "sprocket console --nameserver 10.0.0.1:9876;10.0.0.2:9876 --read-only",
    "sprocket console --host 0.0.0.0 --host-name console.example.com",
    "sprocket console --reports reports --callers callers.toml --allow-changes",
)

ConsolePort = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port; 0 takes a free one."),
]
ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Nothing can be changed in the console.")
]
Reports = Annotated[
    Path | None,
    typer.Option("--reports", metavar="DIR", help="Folder of the reports of Spark pipelines."),
]


def console(
    nameserver: NameServers = NAMESERVER,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen at.")
    ] = "127.0.0.1",
    port: ConsolePort = 8080,
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
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Certificate, for https.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Key of the certificate.")
    ] = None,
    registry: Registry = None,
    timeout: Timeout = 5.0,
    verbose: Verbose = False,
) -> None:  # fmt: skip
    """Serves the web console: see a cluster, and steer it.

    Where the brokers know users, each logs in with its keys, and the console asks in its name. The
    console's own keys, client.access_key and client.secret_key, are for its plots over time.
    """
    if (certificate is None) != (key is None):
        raise UsageError("--certificate and --key go together")
    serve_until_signal(
        console_server(
            nameserver,
            (host, port, certificate, key),
            host_names=tuple(host_name or ()),
            is_read_only=read_only,
            reports=reports,
            audit_folder=audit,
            callers=callers,
            allows_changes=allow_changes and not read_only,
            timeout_ms=timeout * 1_000,
            bodies=codec_of(registry),
        ),
        lambda server: f"sprocket console is ready: {server.url}",
        verbose=verbose,
    )


class ConsoledNode:
    """A node with a console over it. Use it with `async with`, and `serve` inside.

    Attributes:
        node: the node.
    """

    def __init__(self, node: Standalone, port: int) -> None:
        self.node = node
        self._port = port
        self._server: ConsoleServer | None = None
        self._exit = AsyncExitStack()

    @property
    def url(self) -> str:
        """The address of the console, after the start."""
        assert self._server is not None
        return self._server.url

    async def __aenter__(self) -> Self:
        """Starts the node, then the console."""
        async with AsyncExitStack() as opened:
            await opened.enter_async_context(self.node)
            where = ("127.0.0.1", self._port, None, None)
            self._server = console_server(self.node.nameserver_address, where)
            await opened.enter_async_context(self._server)
            self._exit = opened.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the console, then the node."""
        await self._exit.aclose()

    async def serve(self) -> None:
        """Serves until the node fails."""
        await self.node.serve()


def console_server(
    nameservers: str,
    where: tuple[str, int, Path | None, Path | None],
    *,
    callers: Path | None = None,
    allows_changes: bool = False,
    **settings: Any,
) -> ConsoleServer:
    """A console that is not started yet.

    Args:
        where: host, port, certificate and its key.
        callers: the file of those who may use the API.
        allows_changes: whether the API may change anything.
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
    from sprocket.client.base.nameservers import nameserver_addresses
    from sprocket.console.api.api import Api
    from sprocket.console.api.callers import KnownCallers, is_of_this_machine
    from sprocket.console.api.running import ApiSettings
    from sprocket.console.api.server import WebAddress
    from sprocket.console.web.settings import ConsoleSettings

    client = loading.client()
    address = WebAddress(*where)
    made = ConsoleSettings(
        nameserver_addresses(nameservers, {}),
        signer=client.signer(),
        tls=client.tls_of_client(),
        is_secure=address.certificate is not None,
        **settings,
    )
    known = KnownCallers.of_file(callers)
    api = None
    if not known.is_open or is_of_this_machine(address.host):
        shared = ApiSettings(
            made.nameservers,
            may_change=allows_changes,
            timeout_ms=made.timeout_ms,
            audit_folder=made.audit_folder,
            tls=made.tls,
        )
        api = Api(shared, known)
    return ConsoleServer(Console(made, api=api), address)
