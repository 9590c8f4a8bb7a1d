"""Runs a server as a command until a signal: its log, and the line that it prints when it is ready.

A process that a parent started prints what it is as JSON instead, and ends with the parent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from sprocket.base.errors import UsageError

if TYPE_CHECKING:
    from sprocket.metrics.exporting import Serving

#: The variable that says how the log is written: `text` or `json`.
LOG_FORM = "SPROCKET_LOG"
#: How long a process may take to end after its parent is gone, s.
_ORPHAN_SECONDS = 30

Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Log normal events to stderr, not only warnings. SPROCKET_LOG=json: as JSON.",
    ),
]
IsChild = Annotated[bool, typer.Option("--child", hidden=True)]

S = TypeVar("S", bound="Serving")


def shown_pages(address: str | None) -> str:
    """Where metrics and health are, in the line of a server that is ready."""
    return "" if address is None else f", health http://{address}/health/ready"


def serve_until_signal(
    server: S,
    ready: Callable[[S], str],
    *,
    verbose: bool,
    about: Callable[[S], Mapping[str, str | None]] | None = None,
) -> NoReturn:
    """Runs a server until a signal.

    systemd, if it has started this process, learns when it is ready and when it stops.

    Args:
        ready: makes the line that is printed when it is ready.
        about: makes what its parent is told instead, if one started it.
    """
    from sprocket.runtime import process
    from sprocket.runtime.notify import READY, STOPPING, notify, status

    _log(verbose=verbose)

    async def main() -> None:
        if about is not None:
            process.end_with_parent(_ORPHAN_SECONDS)
        async with server:
            line = ready(server)
            if about is not None:
                line = json.dumps({k: v for k, v in about(server).items() if v is not None})
            typer.echo(line)
            notify(READY, status(line))
            try:
                await server.serve()
            finally:
                notify(STOPPING)

    code = process.run(main())
    raise typer.Exit(0 if code == process.INTERRUPTED else code)


def _log(*, verbose: bool) -> None:
    """Has the log written to stderr.

    Raises:
        UsageError: SPROCKET_LOG asks for a form that there is not.
    """
    import logging

    from sprocket.runtime.json_logs import JsonFormatter

    form = os.environ.get(LOG_FORM, "text")
    if form not in ("text", "json"):
        raise UsageError(f"{LOG_FORM} is text or json, not {form[:40]!r}")
    handler = logging.StreamHandler()
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if form == "json" else text)
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[handler])
