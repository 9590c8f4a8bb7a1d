"""`sprocket acl import`: users and policies of RocketMQ 4.x's files.

The command is added to `app` of `acls`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import render
from sprocket.cli.acls import app
from sprocket.cli.asking import ask
from sprocket.cli.options import (
    NAMESERVER,
    Broker,
    Cluster,
    Json,
    NameServers,
    Timeout,
    Yes,
    command,
    confirm,
)

__all__ = ["app"]

if TYPE_CHECKING:
    from sprocket.admin.account_imports import ImportOutcome
    from sprocket.admin.caller import Caller
    from sprocket.auth.plain_import import ImportPlan

_FILES_MAX = 100
_ENDINGS = (".yml", ".yaml")
#: The keys of mqadmin, in the same folder.
_TOOLS = "tools.yml"


@command(
    app,
    "import",
    "sprocket acl import plain_acl.yml --dry-run",
    "sprocket acl import /opt/rocketmq/conf",
    "sprocket acl import plain_acl.yml --replace --yes",
)
def import_accounts(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER",
            help="plain_acl.yml, or RocketMQ's folder conf or conf/acl.",
        ),
    ],
    only_shows: Annotated[
        bool, typer.Option("--dry-run", help="Show what each line becomes, and change nothing.")
    ] = False,
    replaces: Annotated[
        bool, typer.Option("--replace", help="Also users who are there with other policies.")
    ] = False,
    yes: Yes = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Makes users and policies of the accounts in RocketMQ 4.x's files.

    It shows first what each line becomes, and what users and policies cannot say. Users who are
    there already stay as they are, so the command can be repeated.
    """
    plan = plan_of(path)
    _show_plan(plan, as_json=as_json)
    if only_shows or not plan.users:
        return
    count = len(plan.users)
    confirm(f"Make {count} user{'s' * (count > 1)} with these policies?", yes=yes)

    from sprocket.admin import account_imports

    async def question(caller: Caller) -> dict[str, dict[str, ImportOutcome]]:
        return await account_imports.carry_out(
            caller, plan, replaces=replaces, cluster=cluster, broker=broker
        )

    for name, users in ask(nameserver, timeout, question).items():
        for user, outcome in users.items():
            if as_json:
                render.json({"broker": name, "user": user, "done": outcome})
            else:
                typer.echo(f"{user}: {outcome} on {name}")


def plan_of(path: Path) -> ImportPlan:
    """What a file, or the files of a folder, become.

    Raises:
        UsageError: there is no such file, or there are too many.
        ConfigError: a file is wrong.
        OSError: one cannot be read.
    """
    from sprocket.auth.plain_files import FILE_BYTES_MAX, read_plain_file
    from sprocket.auth.plain_import import import_plan

    files = []
    for each in _files(path):
        with each.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
        shown = str(each.relative_to(path)) if path.is_dir() else str(each)
        files.append(read_plain_file(shown, data))
    return import_plan(files)


def _files(path: Path) -> list[Path]:
    """The files in the order in which RocketMQ reads them: the folder `acl`, then the file."""
    if not path.is_dir():
        return [path]
    own = path / "plain_acl.yml"
    has_conf = own.is_file() or (path / "acl").is_dir()
    found = list(_below(path / "acl" if has_conf else path))
    if own.is_file() and own not in found:
        found.append(own)
    if not found:
        raise UsageError(f"{path} has no file that ends with {' or '.join(_ENDINGS)}")
    return found


def _below(folder: Path) -> Iterator[Path]:
    count = 0
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            if name.endswith(_ENDINGS) and name != _TOOLS:
                count += 1
                if count > _FILES_MAX:
                    raise UsageError(f"{folder} has more than {_FILES_MAX} files of accounts")
                yield Path(place) / name


def _show_plan(plan: ImportPlan, *, as_json: bool) -> None:
    if as_json:
        for each in plan.lines:
            render.json(each._asdict())
        return
    many = len({each.file for each in plan.lines}) > 1
    render.table(
        ("line", "user", "in 4.x", "becomes"),
        (
            (
                f"{each.file}:{each.line}" if many else str(each.line),
                each.user or None,
                each.text,
                f"! {each.becomes}" if each.is_lost else each.becomes,
            )
            for each in plan.lines
        ),
    )
    if plan.lost:
        typer.echo(
            f"\n! {len(plan.lost)} of {len(plan.lines)} lines: users and policies do not say this"
        )
    typer.echo(
        "\n4.x lets each account read settings and offsets and reset them; here that needs rights."
    )
