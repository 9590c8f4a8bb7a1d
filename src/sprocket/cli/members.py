"""`sprocket group members`, `running`, `producers`: the connected clients and their state.

These commands are added to `app` of `groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.group_settings import app
from sprocket.cli.groups import kind_of
from sprocket.cli.options import NAMESERVER, Group, Json, NameServers, Timeout, command
from sprocket.cli.times import moment

__all__ = ["app"]

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.groups import GroupMember, Online
    from sprocket.protocol.bodies import RunningInfo


@command(
    app,
    "members",
    "sprocket group members billing",
    "sprocket group members billing --stacks 10.0.0.7@81#c0ffee",
)
def members(
    group: Group,
    stacks_of: Annotated[
        str | None,
        typer.Option("--stacks", metavar="CLIENT", help="Print this member's stack traces."),
    ] = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows a group's members and subscriptions, and members that subscribe differently."""
    from sprocket.admin import consumers, groups

    if stacks_of is not None:
        wanted = stacks_of

        async def running(caller: Caller) -> RunningInfo:
            return await consumers.running(caller, group, wanted, with_stacks=True)

        typer.echo(ask(nameserver, timeout, running).jstack or "")
        return

    async def question(caller: Caller) -> tuple[Online, dict[str, dict[str, str] | None]]:
        online = await groups.online(caller, group)
        return online, await consumers.subscribed(caller, group, online.members)

    online, own = ask(nameserver, timeout, question)
    if as_json:
        for member in online.members:
            facts = {"subscriptions": online.subscriptions, "own": own[member.client_id]}
            render.json({**member._asdict(), **facts})
        return
    _show(online.members)
    typer.echo()
    render.table(("topic", "subscribes"), sorted(online.subscriptions.items()))
    if others := sorted(_otherwise(online, own)):
        typer.echo("\nSubscriptions that differ from the group's:")
        render.table(("client", "topic", "subscribes"), others)
    typer.echo(
        f"\n{kind_of(online.consume_type)}, {online.message_model.lower()}, {online.consume_from}"
    )


def _otherwise(
    online: Online, own: dict[str, dict[str, str] | None]
) -> Iterator[tuple[str, str, str]]:
    """Subscriptions of members that differ from the group's: client, topic, expression."""
    for client, told in own.items():
        for topic, expression in (told or {}).items():
            if online.subscriptions.get(topic) != expression:
                yield client, topic, expression


@command(
    app,
    "running",
    "sprocket group running billing 10.0.0.7@81#c0ffee",
    "sprocket group running billing 10.0.0.7@81#c0ffee --json",
)
def running(
    group: Group,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="Id of one of its members.")],
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows the state of a member: its queues, rates and settings."""
    from sprocket.admin import consumers

    async def question(caller: Caller) -> RunningInfo:
        return await consumers.running(caller, group, client)

    info = ask(nameserver, timeout, question)
    if as_json:
        render.json(_as_json(info))
        return
    render.table(
        ("topic", "broker", "queue", "position", "cached", "MiB", "locked", "last pull"),
        sorted(_queues(info)),
    )
    typer.echo()
    render.table(
        ("topic", "pulled/s", "consumed/s", "failed/s", "listener ms", "pull ms"),
        (
            (
                topic,
                *(
                    round(rate, 2)
                    for rate in (
                        each.pull_tps,
                        each.consume_ok_tps,
                        each.consume_failed_tps,
                        each.consume_rt,
                        each.pull_rt,
                    )
                ),
            )
            for topic, each in sorted(info.status_table.items())
        ),
    )
    typer.echo()
    render.table(("setting", "value"), sorted(info.properties.items()))


def _as_json(info: RunningInfo) -> dict[str, Any]:
    """The info with Java's names. Tables by queue become lists, as their keys are not JSON."""
    import msgspec

    tables: dict[str, dict[Any, Any]] = {
        "mqTable": info.mq_table,
        "mqPopTable": info.mq_pop_table or {},
    }
    plain = msgspec.structs.replace(info, mq_table={}, mq_pop_table={})
    return {
        **msgspec.to_builtins(plain),
        **{
            name: [
                {**msgspec.to_builtins(queue), **msgspec.to_builtins(state)}
                for queue, state in table.items()
            ]
            for name, table in tables.items()
        },
    }


def _queues(info: RunningInfo) -> Iterator[tuple[Any, ...]]:
    for queue, state in info.mq_table.items():
        yield (
            queue.topic,
            queue.broker_name,
            queue.queue_id,
            state.commit_offset,
            state.cached_msg_count,
            state.cached_msg_size_in_mi_b,
            state.locked,
            moment(state.last_pull_timestamp),
        )


@command(app, "producers", "sprocket group producers shop", "sprocket group producers shop --json")
def producers(
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Name of the producer group.")],
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows the connected members of a producer group."""
    from sprocket.admin import groups

    async def question(caller: Caller) -> list[GroupMember]:
        return await groups.producers(caller, group)

    found = ask(nameserver, timeout, question)
    if as_json:
        for member in found:
            render.json(member._asdict())
        return
    _show(found)


def _show(clients: Iterable[GroupMember]) -> None:
    render.table(
        ("client", "address", "language", "brokers"),
        ((each.client_id, each.address, each.language, " ".join(each.brokers)) for each in clients),
    )
