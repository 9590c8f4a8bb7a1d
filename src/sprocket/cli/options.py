"""Options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from sprocket.base.errors import UsageError
from sprocket.cli.access_options import with_access
from sprocket.message.offsets import LONG_MAX

F = TypeVar("F", bound=Callable[..., Any])

#: The default name server of all commands.
NAMESERVER = "127.0.0.1:9876"

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="SPROCKET_CONFIG",
        help="File of settings: TOML with one table per part, or a RocketMQ broker.conf.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PART.NAME=VALUE",
        help="One setting, for example store.flush=SYNC_FLUSH; may be given again.",
    ),
]
NameServers = Annotated[
    str,
    typer.Option(
        "--nameserver",
        "-n",
        metavar="HOST:PORT",
        envvar=["SPROCKET_NAMESERVERS", "NAMESRV_ADDR"],
        help="Name servers, separated by `;`.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one value a line.")]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="Time limit of each request.")
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host", metavar="ADDRESS", help="Address to listen at; 0.0.0.0 or :: for all addresses."
    ),
]
Group = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the consumer group.")]
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="Only the brokers of this cluster.")
]
Broker = Annotated[
    str | None, typer.Option("--broker", "-b", metavar="NAME", help="Only this broker.")
]
OneQueue = Annotated[
    str | None, typer.Option("--queue", metavar="BROKER:NUMBER", help="Only this queue.")
]
InQueue = Annotated[
    int | None,
    typer.Option("--offset", min=0, max=LONG_MAX, help="An offset in --queue, in place of --to."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="TIME",
        help="Only messages stored from this time on: 2030-01-31 08:00, or 15m for 15 minutes ago.",
    ),
]
Until = Annotated[
    str | None,
    typer.Option("--until", metavar="TIME", help="Only messages stored before this time."),
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]


def examples(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "Examples:\n\n" + "\n\n".join(f"  {line}" for line in lines)


def confirm(question: str, *, yes: bool) -> None:
    """Returns if `yes`, or if the user confirms; ends the command otherwise."""
    if not yes:
        typer.confirm(question, abort=True)


def pair(text: str) -> tuple[str, str]:
    """Name and value of a `--property`.

    Raises:
        UsageError: the name or the `=` is missing.
    """
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise UsageError(f"--property takes NAME=VALUE, not {text!r}")
    return name, value


def queue_of(text: str) -> tuple[str, int]:
    """Broker and number of a `--queue`.

    Raises:
        UsageError: it is not `BROKER:NUMBER`.
    """
    broker, _, number = text.rpartition(":")
    if not broker or not number.isascii() or not number.isdigit():
        raise UsageError(f"--queue takes BROKER:NUMBER, not {text!r}")
    return broker, int(number)


def command(app: typer.Typer, name: str, *lines: str) -> Callable[[F], F]:
    """Declares a command of `app` with its examples."""
    declare = app.command(name, epilog=examples(*lines))
    return lambda function: declare(with_access(function))
