"""The command `sprocket`: its subcommands, and its exit codes.

Exit codes: 0 success; 1 failure; 2 wrong usage; 130 stopped by Ctrl-C.
Every failure is one line on stderr; of settings, each that is wrong is one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from sprocket.base.errors import ConfigError, SprocketError, UsageError
from sprocket.cli import (
    acl_import,
    api,
    audit,
    backups,
    checkpoints,
    cluster,
    console,
    consume,
    deadletters,
    filters,
    live_settings,
    members,
    messages,
    pipelines,
    proxy,
    resize,
    send,
    serve,
    static_topics,
    store,
    topics,
    users,
)
from sprocket.cli.options import command, examples
from sprocket.cli.synonyms import CommandGroup

FAILED = 1
ASKED_WRONGLY = 2
INTERRUPTED = 130

app = typer.Typer(
    name="sprocket",
    cls=CommandGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(
        "sprocket standalone",
        'sprocket send orders "one coffee" --tag new',
        "sprocket consume orders --count 1",
        "sprocket consume --help",
    ),
)


def _add(group: typer.Typer, name: str, *lines: str) -> None:
    """Adds a group of commands, with examples of some of them."""
    app.add_typer(group, name=name, cls=CommandGroup, no_args_is_help=True, epilog=examples(*lines))


command(app, "standalone", *serve.STANDALONE_EXAMPLES)(serve.standalone)
command(app, "nameserver", *serve.NAMESERVER_EXAMPLES)(serve.nameserver)
command(app, "broker", *serve.BROKER_EXAMPLES)(serve.broker)
command(app, "proxy", *proxy.EXAMPLES)(proxy.proxy)
command(app, "console", *console.EXAMPLES)(console.console)
command(app, "api", *api.API_EXAMPLES)(api.api)
command(app, "mcp", *api.MCP_EXAMPLES)(api.mcp)
command(app, "send", *send.EXAMPLES)(send.send)
command(app, "consume", *consume.EXAMPLES)(consume.consume)
_add(topics.app, "topic", "sprocket topic create orders", "sprocket topic status orders")
_add(static_topics.app, "statictopic", "sprocket statictopic create orders --queues 8")
_add(members.app, "group", "sprocket group list --status", "sprocket group lag billing")
_add(messages.app, "message", "sprocket message find orders o-1", "sprocket message waiting")
_add(deadletters.app, "deadletters", "sprocket deadletters list billing")
_add(filters.app, "filter", "sprocket filter check cheap.py", "sprocket filter list")
_add(users.app, "user", "sprocket user list", "sprocket user create billing")
_add(
    acl_import.app,
    "acl",
    "sprocket acl grant billing Topic:orders Sub",
    "sprocket acl test billing Sub Topic:orders",
)
_add(checkpoints.app, "spark", checkpoints.SHOW, checkpoints.SET)
_add(pipelines.app, "pipeline", "sprocket pipeline list", "sprocket pipeline run archive --help")
app.add_typer(
    cluster.app,
    name="cluster",
    cls=CommandGroup,
    epilog=examples("sprocket cluster", "sprocket cluster status", "sprocket cluster members"),
)
_add(live_settings.app, "config", "sprocket config show", "sprocket config check broker.conf")
_add(audit.app, "audit", "sprocket audit show", "sprocket audit show --since 1d --user alice")
_add(
    resize.app,
    "container",
    "sprocket container list --store /var/lib/sprocket",
    "sprocket container resize --store /var/lib/sprocket --processes 8",
)
_add(store.app, "store", "sprocket store verify sprocket-data")
command(app, "backup", *backups.BACKUP_EXAMPLES)(backups.backup)
command(app, "restore", *backups.RESTORE_EXAMPLES)(backups.restore)


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
    """Apache RocketMQ in Python: name server, broker, client and tools."""


def main() -> None:
    """Runs the command line and exits."""
    try:
        app(prog_name="sprocket")
    except ConfigError as error:
        _fail("", ASKED_WRONGLY, lines=str(error).split("\n"))
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


def _fail(text: str, code: int, *, lines: Sequence[str] = ()) -> NoReturn:
    for line in lines or (text,):
        typer.echo(f"sprocket: {' '.join(line.split())}", err=True)
    sys.exit(code)


def _forget_output() -> NoReturn:
    """Discards further output, also at exit: the reader of our standard output is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(FAILED)
