"""`sprocket user`: who may sign requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import render
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
from sprocket.cli.passwords import PasswordFile, password_from

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.protocol.bodies.accounts import UserBody

T = TypeVar("T")

app = typer.Typer(help="Users of brokers that check signatures: list, create, update, delete.")

UserName = Annotated[
    str, typer.Argument(metavar="USER", help="Name of the user: the access key of its clients.")
]


class KindName(StrEnum):
    """What a user is."""

    NORMAL = "Normal"
    SUPER = "Super"


@command(app, "list", "sprocket user list", "sprocket user list --json")
def list_users(
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Lists the users of all brokers."""
    from sprocket.admin import users

    async def question(caller: Caller) -> dict[str, list[UserBody]]:
        return await users.everybody(caller, cluster=cluster, broker=broker)

    found = ask(nameserver, timeout, question)
    _show([(name, each) for name, those in found.items() for each in those], as_json=as_json)


@command(app, "show", "sprocket user show billing", "sprocket user show billing --json")
def show(
    user: UserName,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows a user at each broker. What it may do is in `sprocket acl show`."""
    from sprocket.admin import users

    async def question(caller: Caller) -> dict[str, UserBody]:
        return await users.user(caller, user)

    _show(list(ask(nameserver, timeout, question).items()), as_json=as_json)


def _show(found: list[tuple[str, UserBody]], *, as_json: bool) -> None:
    """Prints users; those that are alike at several brokers are one row. Never their passwords."""
    rows = [(broker, (each.username, each.user_type, each.user_status)) for broker, each in found]
    if as_json:
        for broker, (name, kind, status) in rows:
            render.json({"user": name, "kind": kind, "status": status, "broker": broker})
        return
    render.table(
        ("user", "kind", "status", "brokers"),
        ((*row, brokers) for row, brokers in by_row(rows)),
    )


def by_row(found: Iterable[tuple[str, T]]) -> list[tuple[T, str]]:
    """Rows that brokers have, each once, with the names of these brokers."""
    brokers: dict[T, list[str]] = {}
    for broker, row in found:
        brokers.setdefault(row, []).append(broker)
    return [(row, ", ".join(names)) for row, names in brokers.items()]


@command(
    app,
    "create",
    "sprocket user create billing",
    "sprocket user create billing --password-file billing.key",
    "sprocket user create admin --super",
)
def create(
    user: UserName,
    password_file: PasswordFile = None,
    is_super: Annotated[
        bool, typer.Option("--super", help="A super user, who may do everything.")
    ] = False,
    is_disabled: Annotated[
        bool, typer.Option("--disabled", help="One who may not do anything yet.")
    ] = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Creates a user on all brokers. A normal one may do nothing until `sprocket acl grant`.

    The password is the secret key of the user's clients. Brokers keep it as it is, because they
    check signatures with it.
    """
    from sprocket.admin import users

    password = password_from(password_file, f"Password of {user}")
    kind, status = ("Super" if is_super else None), ("disable" if is_disabled else None)

    async def question(caller: Caller) -> list[str]:
        return await users.create(
            caller, user, password, kind=kind, status=status, cluster=cluster, broker=broker
        )

    typer.echo(f"{user}: created on {', '.join(ask(nameserver, timeout, question))}")


@command(
    app,
    "update",
    "sprocket user update billing --password",
    "sprocket user update billing --password-file new.key",
    "sprocket user update billing --disabled",
    "sprocket user update billing --kind Super",
)
def update(
    user: UserName,
    asks: Annotated[
        bool, typer.Option("--password", help="Give it a new password, and ask for it.")
    ] = False,
    password_file: PasswordFile = None,
    kind: Annotated[
        KindName | None,
        typer.Option("--kind", case_sensitive=False, help="What it is from now on."),
    ] = None,
    is_enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Whether it may do anything.")
    ] = None,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Changes what is named of a user, on all brokers that have it. The rest stays."""
    from sprocket.admin import users

    password = None
    if asks or password_file is not None:
        password = password_from(password_file, f"New password of {user}")
    if password is None and kind is None and is_enabled is None:
        raise UsageError("give --password, --password-file, --kind, --enabled or --disabled")
    status = None if is_enabled is None else "enable" if is_enabled else "disable"

    async def question(caller: Caller) -> list[str]:
        return await users.update(
            caller, user, password=password, kind=None if kind is None else kind.value,
            status=status, cluster=cluster, broker=broker,
        )  # fmt: skip

    typer.echo(f"{user}: changed on {', '.join(ask(nameserver, timeout, question))}")


@command(
    app,
    "delete",
    "sprocket user delete billing",
    "sprocket user delete billing --broker broker-a --yes",
)
def delete(
    user: UserName,
    yes: Yes = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Deletes a user and its policies. Its clients are refused from then on."""
    from sprocket.admin import users

    confirm(f"Delete user {user} with its policies?", yes=yes)

    async def question(caller: Caller) -> list[str]:
        return await users.delete(caller, user, cluster=cluster, broker=broker)

    had = ask(nameserver, timeout, question)
    if not had:
        raise users.UserNotFound(f"no broker has a user {user}")
    typer.echo(f"{user}: deleted on {', '.join(had)}")


def by_broker(done: Mapping[str, object], text: str) -> None:
    """Prints a line for each different outcome, with the brokers that have it."""
    for outcome, brokers in by_row((broker, str(each)) for broker, each in done.items()):
        typer.echo(f"{text}: {outcome} on {brokers}")
