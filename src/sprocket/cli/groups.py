"""`sprocket group`: consumer groups, their members, lag and offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import ConsumerOffline, UsageError
from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.options import (
    NAMESERVER,
    Group,
    InQueue,
    Json,
    NameServers,
    OneQueue,
    Timeout,
    Topic,
    Yes,
    command,
    confirm,
    queue_of,
)
from sprocket.cli.times import moment, start_at

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.groups import Online
    from sprocket.admin.positions import ConsumerLag
    from sprocket.message.queue import QueueId

app = typer.Typer(help="Consumer groups: members, lag, resetting and copying offsets.")

OneTopic = Annotated[
    str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic.")
]


@command(
    app, "list", "sprocket group list", "sprocket group list --status", "sprocket group list --json"
)
def list_groups(
    with_status: Annotated[
        bool, typer.Option("--status", help="Also members and lag; one query for each group.")
    ] = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Lists consumer groups."""
    from sprocket.admin import groups

    if not with_status:
        for name in ask(nameserver, timeout, groups.names):
            render.json({"group": name}) if as_json else typer.echo(name)
        return

    async def question(caller: Caller) -> list[dict[str, Any]]:
        names = await groups.names(caller)
        with render.progress("groups", len(names)) as advance:
            rows = []
            for name in names:
                rows.append(await _status(caller, name))
                advance(1)
        return rows

    rows = ask(nameserver, timeout, question)
    if as_json:
        for row in rows:
            render.json(row)
        return
    headings = ("group", "members", "kind", "model", "lag", "per second")
    render.table(headings, (tuple(row.values()) for row in rows))


async def _status(caller: Caller, group: str) -> dict[str, Any]:
    from sprocket.admin import groups, positions

    try:
        online: Online | None = await groups.online(caller, group)
    except ConsumerOffline:
        online = None
    lag = await positions.lag(caller, group)
    return {
        "group": group,
        "members": 0 if online is None else len(online.members),
        "kind": None if online is None else kind_of(online.consume_type),
        "model": None if online is None else online.message_model.lower(),
        "behind": lag.behind,
        "per_second": round(lag.per_second, 2),
    }


def kind_of(consume_type: str) -> str:
    kinds = {"CONSUME_PASSIVELY": "push", "CONSUME_ACTIVELY": "pull", "CONSUME_POP": "pop"}
    return kinds.get(consume_type, consume_type)


@command(
    app,
    "lag",
    "sprocket group lag billing",
    "sprocket group lag billing --topic orders --owners --json",
)
def lag(
    group: Group,
    topic: OneTopic = None,
    with_owners: Annotated[
        bool,
        typer.Option("--owners", help="Also the member that holds each queue; queries members."),
    ] = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows a group's committed offset and lag in each queue."""
    from sprocket.admin import consumers, known, positions
    from sprocket.message.queue import QueueId

    async def question(caller: Caller) -> tuple[ConsumerLag, dict[QueueId, str]]:
        await known.check_group(caller, group)
        if topic is not None:
            await known.check_topic(caller, topic)
        far = await positions.lag(caller, group, topic=topic)
        return far, await consumers.owners(caller, group) if with_owners else {}

    far, owners = ask(nameserver, timeout, question)
    rows = [
        (queue, owners.get(QueueId(queue.topic, queue.broker, queue.number)))
        for queue in far.queues
    ]
    if as_json:
        for queue, owner in rows:
            render.json({**queue._asdict(), "behind": queue.behind, "owner": owner})
        return
    headings = ["topic", "broker", "queue", "committed", "end", "lag", "last consumed"]
    render.table(
        headings + ["owner"] * with_owners,
        (
            (
                *queue[:5],
                queue.behind,
                moment(queue.consumed_ms) if queue.consumed_ms else None,
                *[owner] * with_owners,
            )
            for queue, owner in rows
        ),
    )
    typer.echo(f"\nlag {far.behind}, {far.per_second:.2f} messages a second consumed")


@command(
    app,
    "reset",
    "sprocket group reset billing orders --to first",
    'sprocket group reset billing orders --to "2030-01-31 08:00" --yes',
    "sprocket group reset billing orders --queue broker-a:3 --offset 1500",
)
def reset(
    group: Group,
    topic: Topic,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="first|last|TIME",
            help="The oldest message, the end, a time (2030-01-31 08:00), or some time ago (15m).",
        ),
    ] = None,
    queue: OneQueue = None,
    offset: InQueue = None,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Resets a group's offsets, whether it is online or not.

    The group consumes all messages after the new offset again.
    """
    import time

    from sprocket.admin import positions
    from sprocket.message.queue import QueueId

    if (to is None) == (offset is None):
        raise UsageError("give --to, or --queue with --offset")
    start = start_at("first" if to is None else to, int(time.time() * 1000))
    at_ms = {"first": positions.FIRST, "last": positions.LAST}.get(str(start), start)
    only = None if queue is None else QueueId(topic, *queue_of(queue))
    where = f"to {to}" if offset is None else f"to offset {offset}"
    confirm(f"Reset {group} in {only or topic} {where}?", yes=yes)

    async def question(caller: Caller) -> dict[QueueId, int]:
        return await positions.reset(
            caller, group, topic, at_ms=int(at_ms), queue=only, offset=offset
        )

    _show_positions(ask(nameserver, timeout, question), as_json=as_json)


def _show_positions(positions: dict[QueueId, int], *, as_json: bool) -> None:
    if as_json:
        for queue, offset in positions.items():
            render.json({**queue._asdict(), "offset": offset})
        return
    render.table(
        ("topic", "broker", "queue", "next offset"),
        ((*queue, offset) for queue, offset in positions.items()),
    )


@command(
    app,
    "clone",
    "sprocket group clone billing billing-test",
    "sprocket group clone billing billing-test --topic orders --yes",
)
def clone(
    source: Annotated[str, typer.Argument(metavar="GROUP", help="The group to copy from.")],
    target: Annotated[str, typer.Argument(metavar="TARGET", help="The group that gets offsets.")],
    topic: OneTopic = None,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Copies a group's committed offsets to another group."""
    from sprocket.admin import positions

    confirm(f"Set the offsets of {target} to those of {source}?", yes=yes)

    async def question(caller: Caller) -> dict[QueueId, int]:
        return await positions.clone(caller, source, target, topic=topic)

    _show_positions(ask(nameserver, timeout, question), as_json=as_json)
