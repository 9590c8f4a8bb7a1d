"""`sprocket api` and `sprocket mcp`: what an operator does, for scripts and assistants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading
from sprocket.cli.options import NAMESERVER, NameServers, Timeout
from sprocket.cli.running import Verbose

if TYPE_CHECKING:
    from sprocket.console.api.running import ApiSettings

API_EXAMPLES = (
    "sprocket api",
    "sprocket api --host 0.0.0.0 --callers callers.toml --allow-changes",
)
MCP_EXAMPLES = (
    "sprocket mcp",
    "sprocket mcp --nameserver 10.0.0.1:9876 --allow-changes",
)

AllowChanges = Annotated[
    bool,
    typer.Option(
        "--allow-changes", help="Allow what changes something; without it everything only reads."
    ),
]
Audit = Annotated[
    Path | None,
    typer.Option(
        "--audit", metavar="DIR", help="Folder of the audit logs of this machine's servers."
    ),
]


def api(
    nameserver: NameServers = NAMESERVER,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen at.")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port; 0 takes a free one."),
    ] = 8088,
    callers: Annotated[
        Path | None,
        typer.Option(
            "--callers",
            metavar="FILE",
            help="TOML file of who may ask, and with which keys each asks the brokers. Without it "
            "everybody at this machine may ask, unsigned.",
        ),
    ] = None,
    allow_changes: AllowChanges = False,
    audit: Audit = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Certificate, for TLS.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Key of the certificate.")
    ] = None,
    timeout: Timeout = 5.0,
    verbose: Verbose = False,
) -> None:
    """Serves the operations of an operator: HTTP under /api, MCP under /mcp."""
    try:
        from sprocket.console.api.api import Api, api_app
        from sprocket.console.api.server import WebAddress, WebServer
    except ImportError:
        raise UsageError("the API needs its libraries: pip install 'sprocketmq[mcp]'") from None
    from sprocket.cli.running import serve_until_signal
    from sprocket.console.api.callers import KnownCallers

    known = KnownCallers.of_file(callers)
    where = WebAddress(host, port, certificate, key)
    where.check(known)
    settings = _settings(nameserver, timeout, audit, allow_changes=allow_changes)
    changes = "on" if allow_changes else "off"
    serve_until_signal(
        WebServer(api_app(Api(settings, known)), where),
        lambda server: (
            f"sprocket api is ready: {server.url}/api/, MCP {server.url}/mcp, changes {changes}"
        ),
        verbose=verbose,
    )


def mcp(
    nameserver: NameServers = NAMESERVER,
    allow_changes: AllowChanges = False,
    audit: Audit = None,
    timeout: Timeout = 5.0,
) -> None:
    """Serves an assistant that starts this command: MCP over standard input and output.

    Brokers with users are asked in the name of the user whose keys the settings of the client have.
    """
    from sprocket.cli.asking import run
    from sprocket.console.api.callers import ApiCaller
    from sprocket.console.api.mcp_tools import serve_stdio

    who = ApiCaller("standard input", loading.client().signer())
    settings = _settings(nameserver, timeout, audit, allow_changes=allow_changes)
    run(serve_stdio(settings, who))


def _settings(
    nameservers: str, timeout: float, audit: Path | None, *, allow_changes: bool
) -> ApiSettings:
    from sprocket.client.base.nameservers import nameserver_addresses
    from sprocket.console.api.running import ApiSettings

    return ApiSettings(
        nameserver_addresses(nameservers, {}),
        may_change=allow_changes,
        timeout_ms=timeout * 1_000,
        audit_folder=audit,
        tls=loading.client().tls_of_client(),
    )
