"""`sprocket group create`, `update`, `show`, `delete`, `mode`: consumer groups and their settings.

These commands are added to `app` of `groups`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import GroupNotFound, UsageError
from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.attribute_options import Attributes, NoAttributes, attribute_changes
from sprocket.cli.groups import app
from sprocket.cli.options import (
    NAMESERVER,
    Broker,
    Cluster,
    Group,
    Json,
    NameServers,
    Timeout,
    Topic,
    Yes,
    command,
    confirm,
)

__all__ = ["app"]

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.groups import GroupChange
    from sprocket.protocol.bodies import GroupConfig

Retries = Annotated[
    int | None,
    typer.Option(
        "--retries",
        min=0,
        help="Retries of a message before it becomes a dead letter; new groups: 16.",
    ),
]
RetryQueues = Annotated[
    int | None,
    typer.Option(
        "--retry-queues",
        min=1,
        max=1024,
        help="Queues of its retry topic on each broker; new groups: 1.",
    ),
]
Ordered = Annotated[
    bool | None,
    typer.Option("--ordered/--unordered", help="Whether the group uses ordered consumption."),
]
Consumes = Annotated[
    bool | None,
    typer.Option("--enabled/--disabled", help="Whether its members may consume."),
]
Broadcasts = Annotated[
    bool | None,
    typer.Option("--broadcast/--no-broadcast", help="Whether its members may broadcast."),
]


@command(
    app,
    "create",
    "sprocket group create billing",
    "sprocket group create ledger --ordered --retries 100 --cluster DefaultCluster",
)
def create(
    group: Group,
    retries: Retries = None,
    retry_queues: RetryQueues = None,
    is_ordered: Ordered = None,
    consumes: Consumes = None,
    broadcasts: Broadcasts = None,
    attributes: Attributes = None,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Creates a consumer group on all brokers. Where it exists, only what is named changes.

    This is needed only for special settings: the first member creates its group by itself.
    """
    from sprocket.admin import groups

    wanted = groups.GroupSettings(
        retries, retry_queues, is_ordered, consumes, broadcasts, attribute_changes(attributes)
    )

    async def question(caller: Caller) -> list[GroupChange]:
        return await groups.create(caller, group, wanted=wanted, cluster=cluster, broker=broker)

    _show_changes(group, ask(nameserver, timeout, question))


@command(
    app,
    "update",
    "sprocket group update billing --retries 3",
    "sprocket group update billing --retry-queues 4 --broker broker-a",
    "sprocket group update billing --disabled",
    "sprocket group update billing --attribute priority.factor=80",
)
def update(
    group: Group,
    retries: Retries = None,
    retry_queues: RetryQueues = None,
    is_ordered: Ordered = None,
    consumes: Consumes = None,
    broadcasts: Broadcasts = None,
    attributes: Attributes = None,
    no_attributes: NoAttributes = None,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Changes what is named of a group's settings, on all brokers that have it. The rest stays."""
    from sprocket.admin import groups

    wanted = groups.GroupSettings(
        retries, retry_queues, is_ordered, consumes, broadcasts,
        attribute_changes(attributes, no_attributes),
    )  # fmt: skip
    if wanted == groups.GroupSettings():
        raise UsageError("give a setting to change, such as --retries 3")

    async def question(caller: Caller) -> list[GroupChange]:
        return await groups.update(caller, group, wanted=wanted, cluster=cluster, broker=broker)

    _show_changes(group, ask(nameserver, timeout, question))


def _show_changes(group: str, changes: list[GroupChange]) -> None:
    for each in changes:
        typer.echo(f"{group}: {each.done} on {each.broker}")


@command(app, "show", "sprocket group show billing", "sprocket group show billing --json")
def show(
    group: Group,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows a group's settings at each broker."""
    import msgspec

    from sprocket.admin import groups

    async def question(caller: Caller) -> dict[str, GroupConfig]:
        return await groups.settings(caller, group)

    found = ask(nameserver, timeout, question)
    if as_json:
        for broker, config in found.items():
            render.json({"broker": broker, **msgspec.to_builtins(config)})
        return
    render.table(
        ("broker", "consumes", "broadcasts", "ordered", "retries", "retry queues", "attributes"),
        (
            (
                broker,
                config.consume_enable,
                config.consume_broadcast_enable,
                config.consume_message_orderly,
                config.retry_max_times,
                config.retry_queue_nums,
                " ".join(f"{name}={value}" for name, value in config.attributes.items()) or None,
            )
            for broker, config in found.items()
        ),
    )


@command(
    app,
    "delete",
    "sprocket group delete billing",
    "sprocket group delete billing --broker broker-a --yes",
)
def delete(
    group: Group,
    keeps: Annotated[
        bool, typer.Option("--keep", help="Keep its offsets, retries and dead letters.")
    ] = False,
    yes: Yes = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Deletes a group, its offsets, its retries and its dead letters."""
    from sprocket.admin import groups

    confirm(f"Delete consumer group {group}{'' if keeps else ' with its dead letters'}?", yes=yes)

    async def question(caller: Caller) -> list[str]:
        return await groups.delete(
            caller, group, with_offsets=not keeps, cluster=cluster, broker=broker
        )

    knew = ask(nameserver, timeout, question)
    if not knew:
        raise GroupNotFound(
            f"no broker knew a consumer group {group}; anything left of it is deleted"
        )
    typer.echo(f"{group}: deleted on {', '.join(knew)}")


class RequestModeName(StrEnum):
    """What the brokers tell members that let them decide."""

    PULL = "PULL"
    POP = "POP"


@command(
    app,
    "mode",
    "sprocket group mode orders billing",
    "sprocket group mode orders billing POP",
    "sprocket group mode orders billing POP --shared 2 --broker broker-a",
)
def mode(
    topic: Topic,
    group: Group,
    wanted: Annotated[
        RequestModeName | None,
        typer.Argument(
            metavar="[PULL|POP]",
            case_sensitive=False,
            help="What its members do from now on. Without it, the mode is shown.",
        ),
    ] = None,
    shared: Annotated[
        int,
        typer.Option(
            "--shared",
            "-q",
            min=0,
            help="POP: of how many next members each member pops the queues too; 0: all members "
            "pop all queues.",
        ),
    ] = 0,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Sets whether a group pulls or pops a topic, for members that let the brokers decide.

    These are consumers with `mode="broker"`, and Java's with `setClientRebalance(false)`.
    """
    from sprocket.admin import request_modes

    async def question(caller: Caller) -> dict[str, str]:
        if wanted is None:
            found = await request_modes.modes(caller, topic, group)
            return {name: "default" if each is None else each.mode for name, each in found.items()}
        done = await request_modes.set_mode(
            caller, topic, group, wanted.value, shared=shared, cluster=cluster, broker=broker
        )
        return dict.fromkeys(done, wanted.value)

    for name, found in ask(nameserver, timeout, question).items():
        typer.echo(f"{topic} for {group}: {found} on {name}")
