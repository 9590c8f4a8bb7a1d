"""`sprocket config get`, `set` and `quotas`: the settings of brokers that run, and their limits.

These commands are added to `app` of `settings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading, render
from sprocket.cli.asking import ask
from sprocket.cli.options import (
    NAMESERVER,
    Broker,
    Cluster,
    Json,
    NameServers,
    Timeout,
    command,
)
from sprocket.cli.settings import app

__all__ = ["app"]

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller

OfNameServers = Annotated[
    bool,
    typer.Option("--of-nameservers", help="The settings of the name servers, not of brokers."),
]


def _check_whose(of_nameservers: bool, broker: str | None, cluster: str | None) -> None:
    """
    Raises:
        UsageError: both are named.
    """
    if of_nameservers and (broker or cluster):
        raise UsageError("--of-nameservers goes without --broker and --cluster")


@command(
    app,
    "get",
    "sprocket config get",
    "sprocket config get fileReservedTime --broker broker-a",
    "sprocket config get --json",
    "sprocket config get --of-nameservers",
)
def get(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Only these settings, as `get` shows them."),
    ] = None,
    broker: Broker = None,
    cluster: Cluster = None,
    of_nameservers: OfNameServers = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Prints the settings in force at the brokers that run, by RocketMQ's names."""
    _check_whose(of_nameservers, broker, cluster)
    from sprocket.admin import brokers
    from sprocket.base.suggestions import nearest

    async def question(caller: Caller) -> dict[str, dict[str, str]]:
        if of_nameservers:
            return await brokers.nameserver_settings(caller)
        return await brokers.settings(caller, cluster=cluster, broker=broker)

    found = ask(nameserver, timeout, question)
    whose = "name server" if of_nameservers else "broker"
    known = {name for settings in found.values() for name in settings}
    for name in names or ():
        if name not in known:
            raise UsageError(f"no {whose} shows a setting '{name}'{nearest(name, known)}")
    rows = [
        (each, name, value)
        for each, settings in found.items()
        for name, value in settings.items()
        if not names or name in names
    ]
    if as_json:
        for each, name, value in rows:
            render.json({whose.replace(" ", ""): each, "setting": name, "value": value})
        return
    render.table((whose, "setting", "value"), rows)


@command(
    app,
    "set",
    "sprocket config set fileReservedTime=24",
    "sprocket config set brokerPermission=4 longPollingEnable=false --broker broker-a",
    "sprocket config set orderMessageEnable=true --of-nameservers",
)
def change(
    settings: Annotated[
        list[str],
        typer.Argument(metavar="NAME=VALUE...", help="Settings, with the names of `get`."),
    ],
    broker: Broker = None,
    cluster: Cluster = None,
    of_nameservers: OfNameServers = False,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Changes settings of brokers that run; each broker takes all of them or none.

    A change outlives the broker's end. It counts until the broker's own configuration gives the
    setting another value than it had then.
    """
    _check_whose(of_nameservers, broker, cluster)
    from sprocket.admin import brokers

    wanted = {}
    for text in settings:
        name, sign, value = text.partition("=")
        if not name or not sign:
            raise UsageError(f"set takes NAME=VALUE, not {text!r}")
        wanted[name] = value

    async def question(caller: Caller) -> list[str]:
        if of_nameservers:
            return await brokers.change_nameserver_settings(caller, wanted)
        return await brokers.change_settings(caller, wanted, cluster=cluster, broker=broker)

    changed = ask(nameserver, timeout, question)
    shown = " ".join(f"{name}={_shown(name, value)}" for name, value in wanted.items())
    for each in changed:
        typer.echo(f"{each}: {shown}")


@command(
    app,
    "quotas",
    "sprocket config quotas",
    "sprocket config quotas --json",
)
def quotas(
    nameserver: NameServers = NAMESERVER, as_json: Json = False, timeout: Timeout = 5.0
) -> None:
    """Shows what brokers refused or delayed because of quotas, and who is over a limit now."""
    from sprocket.admin import brokers

    found = ask(nameserver, timeout, brokers.quota_counts)
    if as_json:
        for each in found:
            render.json(each._asdict())
        return
    render.table(("broker", "what", "kind", "limit", "name", "times"), found)


def _shown(name: str, value: str) -> str:
    """A value as it was given, unless it is a secret: what is printed may be kept by others."""
    from sprocket.base.config import SECRET_MASK, settings_of

    for kind in loading.kinds():
        for declared in settings_of(kind).values():
            if declared.about.is_secret and name in (*declared.rocketmq_names, declared.key):
                return SECRET_MASK
    return value
