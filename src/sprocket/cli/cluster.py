"""`sprocket cluster`: shows brokers and their groups, and changes which of a group leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.replica_groups import ReplicaGroup

app = typer.Typer(help="Shows brokers and their groups, and changes which of a group leads.")


@app.callback(invoke_without_command=True)
def processes(
    context: typer.Context,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows all brokers, with their addresses and versions; or what a command below says."""
    if context.invoked_subcommand is not None:
        given = [
            name
            for name in ("nameserver", "as_json", "timeout")
            if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
        ]
        if given:
            raise UsageError(f"options stand behind `{context.invoked_subcommand}`")
        return
    from sprocket.admin import brokers

    found = ask(nameserver, timeout, brokers.processes)
    if as_json:
        for process in found:
            render.json(process._asdict())
        return
    render.table(
        ("cluster", "broker", "number", "address", "reachable", "version"),
        ((p.cluster, p.broker, p.number, p.address, p.is_reachable, p.version) for p in found),
    )


@command(
    app,
    "status",
    "sprocket cluster status",
    "sprocket cluster status --broker broker-a --json",
)
def status(
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows each group of brokers: who leads, who is in sync, how far the last one is behind."""
    groups = _groups(cluster, broker, nameserver, timeout)
    if as_json:
        for group in groups:
            render.json(_as_json(group))
        return
    render.table(
        (
            "cluster", "broker", "master", "address", "epoch", "alive", "in sync",
            "log end", "confirmed", "behind", "seconds", "elector",
        ),
        (_row(group) for group in groups),
    )  # fmt: skip


@command(
    app,
    "members",
    "sprocket cluster members",
    "sprocket cluster members --broker broker-a",
)
def members(
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows the members of each group: role, log, and how far each is behind its master."""
    groups = _groups(cluster, broker, nameserver, timeout)
    if as_json:
        for group in groups:
            for each in group.members:
                name = {"cluster": group.cluster, "broker": group.broker}
                render.json({**name, **each._asdict()})
        return
    render.table(
        (
            "cluster", "broker", "number", "address", "role", "alive", "in sync", "epoch",
            "log end", "confirmed", "behind", "seconds", "priority",
        ),
        (
            (
                group.cluster, group.broker, each.number, each.address, each.role, each.is_alive,
                each.is_in_sync, each.epoch, each.log_end, each.confirmed, each.behind_bytes,
                _seconds(each.behind_seconds), each.priority,
            )
            for group in groups
            for each in group.members
        ),
    )  # fmt: skip


@command(
    app,
    "elect",
    "sprocket cluster elect broker-a",
    "sprocket cluster elect broker-a --to 2",
    "sprocket cluster elect broker-a --to 3 --unclean",
)
def elect(
    broker: Annotated[str, typer.Argument(metavar="BROKER", help="Name of the group's brokers.")],
    to: Annotated[
        int | None,
        typer.Option("--to", metavar="NUMBER", min=1, help="The new master; by default the best."),
    ] = None,
    unclean: Annotated[
        bool,
        typer.Option(
            "--unclean",
            help="Allow a member that is not in sync. Messages that it does not have are lost.",
        ),
    ] = False,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 10.0,
) -> None:
    """Makes another member of a group its master, which then has all that was acknowledged."""
    from sprocket.admin import replica_groups

    if unclean:
        confirm(
            f"Messages that were acknowledged and that member {to} of {broker} does not have will "
            "be lost. Go on?",
            yes=yes,
        )

    async def change(caller: Caller) -> ReplicaGroup:
        return await replica_groups.elect(caller, broker, to=to, is_unclean=unclean)

    group = ask(nameserver, timeout, change)
    if as_json:
        render.json(_as_json(group))
        return
    typer.echo(f"{broker}: member {group.master} is the master of epoch {group.epoch}")


def _groups(
    cluster: str | None, broker: str | None, nameserver: str, timeout: float
) -> list[ReplicaGroup]:
    from sprocket.admin import replica_groups

    async def question(caller: Caller) -> list[ReplicaGroup]:
        return await replica_groups.replica_groups(caller, cluster=cluster, broker=broker)

    return ask(nameserver, timeout, question)


def _row(group: ReplicaGroup) -> tuple[Any, ...]:
    leader = group.leader
    living = sum(each.is_alive for each in group.members)
    behind = [each.behind_bytes for each in group.members if each.behind_bytes is not None]
    seconds = [each.behind_seconds for each in group.members if each.behind_seconds is not None]
    return (
        group.cluster,
        group.broker,
        group.master,
        leader.address if leader else None,
        group.epoch,
        f"{living} of {len(group.members)}",
        " ".join(map(str, group.in_sync)) or None,
        leader.log_end if leader else None,
        leader.confirmed if leader else None,
        max(behind, default=None),
        _seconds(max(seconds, default=None)),
        group.elector,
    )


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _as_json(group: ReplicaGroup) -> dict[str, Any]:
    return {**group._asdict(), "members": [each._asdict() for each in group.members]}
