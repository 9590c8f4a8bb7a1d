"""Options of commands that serve a web application, and the settings of what it asks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.cli import loading

if TYPE_CHECKING:
    from sprocket.console.api.running import ApiSettings

WebHost = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen at.")]
WebPort = Annotated[
    int,
    typer.Option("--port", metavar="N", min=0, max=65535, help="TCP port; 0 takes a free one."),
]
Certificate = Annotated[
    Path | None, typer.Option("--certificate", metavar="FILE", help="Certificate, for https.")
]
Key = Annotated[Path | None, typer.Option("--key", metavar="FILE", help="Key of the certificate.")]
Audit = Annotated[
    Path | None,
    typer.Option(
        "--audit", metavar="DIR", help="Folder of the audit logs of this machine's servers."
    ),
]


def api_settings(
    nameservers: str, timeout: float, audit: Path | None, *, allow_changes: bool
) -> ApiSettings:
    """What an API works with.

    Args:
        timeout: time limit of each request to a server, s.

    Raises:
        ConfigError: an address, or a setting of the client, is not valid.
    """
    from sprocket.client.base.nameservers import nameserver_addresses
    from sprocket.console.api.running import ApiSettings

    return ApiSettings(
        nameserver_addresses(nameservers, {}),
        may_change=allow_changes,
        timeout_ms=timeout * 1_000,
        audit_folder=audit,
        tls=loading.client().tls_of_client(),
    )
