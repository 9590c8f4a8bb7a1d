"""`sprocket api` and `sprocket mcp`: what an operator does, for scripts and assistants."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading
from sprocket.cli.options import NAMESERVER, NameServers, Timeout
from sprocket.cli.running import Verbose
from sprocket.cli.web_options import Audit, Certificate, Key, WebHost, WebPort, api_settings

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


def api(
    nameserver: NameServers = NAMESERVER,
    host: WebHost = "127.0.0.1",
    port: WebPort = 8088,
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
    certificate: Certificate = None,
    key: Key = None,
    timeout: Timeout = 5.0,
    verbose: Verbose = False,
) -> None:
    """Serves the operations of an operator: HTTP under /api, MCP under /mcp."""
    try:
        from sprocket.console.api.api import Api, api_app
        from sprocket.console.api.server import WebServer
    except ImportError:
        raise UsageError("the API needs its libraries: pip install 'sprocketmq[mcp]'") from None
    from sprocket.cli.running import serve_until_signal
    from sprocket.console.api.callers import KnownCallers
    from sprocket.console.api.web_address import WebAddress

    known = KnownCallers.of_file(callers)
    where = WebAddress(host, port, certificate, key)
    where.check(known)
    settings = api_settings(nameserver, timeout, audit, allow_changes=allow_changes)
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
    settings = api_settings(nameserver, timeout, audit, allow_changes=allow_changes)
    run(serve_stdio(settings, who))
