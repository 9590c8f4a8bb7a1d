"""The command `sprocket`: the table of its commands, and how a failure ends it.

Exit codes: 0 done; 1 it could not be done; 2 it was asked wrongly; 130 stopped by Ctrl-C.
Every failure is one line on stderr.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer

from sprocket.base.errors import SprocketError, UsageError
from sprocket.cli import (
    consume,
    deadletters,
    filters,
    members,
    messages,
    pipelines,
    send,
    serve,
    settings,
    store,
    topics,
)
from sprocket.cli.options import command

FAILED = 1
ASKED_WRONGLY = 2
INTERRUPTED = 130

app = typer.Typer(
    name="sprocket",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
command(app, "standalone", *serve.STANDALONE_EXAMPLES)(serve.standalone)
command(app, "nameserver", *serve.NAMESERVER_EXAMPLES)(serve.nameserver)
command(app, "broker", *serve.BROKER_EXAMPLES)(serve.broker)
command(app, "send", *send.EXAMPLES)(send.send)
command(app, "consume", *consume.EXAMPLES)(consume.consume)
app.add_typer(topics.app, name="topic", no_args_is_help=True)
app.add_typer(members.app, name="group", no_args_is_help=True)
app.add_typer(messages.app, name="message", no_args_is_help=True)
app.add_typer(deadletters.app, name="deadletters", no_args_is_help=True)
app.add_typer(filters.app, name="filter", no_args_is_help=True)
app.add_typer(pipelines.app, name="pipeline", no_args_is_help=True)
command(app, "cluster", "sprocket cluster", "sprocket cluster --json")(topics.show_cluster)
app.add_typer(settings.app, name="config", no_args_is_help=True)
app.add_typer(store.app, name="store", no_args_is_help=True)


def _version(wanted: bool) -> None:
    if wanted:
        from sprocket import __version__

        typer.echo(f"sprocket {__version__}")
        raise typer.Exit


@app.callback()
def sprocket(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Apache RocketMQ's messaging in Python: name server, broker and client."""


def main() -> None:
    """Runs the command line and exits."""
    try:
        app(prog_name="sprocket")
    except UsageError as error:
        _fail(str(error), ASKED_WRONGLY)
    except SprocketError as error:
        _fail(str(error), FAILED)
    except BrokenPipeError:
        _forget_output()
    except OSError as error:
        _fail(_words(error), FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _words(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason


def _fail(text: str, code: int) -> NoReturn:
    typer.echo(f"sprocket: {' '.join(text.split())}", err=True)
    sys.exit(code)


def _forget_output() -> NoReturn:
    """Whoever read our output is gone; nothing more may be written, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(FAILED)
