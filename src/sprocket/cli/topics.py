"""`sprocket topic`: inspects and changes topics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.attribute_options import (
    Attributes,
    MessageTypeOption,
    NoAttributes,
    attribute_changes,
)
from sprocket.cli.options import (
    NAMESERVER,
    Broker,
    Cluster,
    Json,
    NameServers,
    Timeout,
    Topic,
    Yes,
    command,
    confirm,
)
from sprocket.cli.times import moment

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.topic_changes import TopicChange, TopicSettings
    from sprocket.protocol.bodies import TopicConfig

app = typer.Typer(help="Topics: list, show, create, update, delete, route, status, volume.")


@command(app, "list", "sprocket topic list", "sprocket topic list --all --json")
def list_topics(
    with_internal: Annotated[
        bool, typer.Option("--all", help="Also RocketMQ's system topics.")
    ] = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Lists topics."""
    from sprocket.admin import topics

    async def question(caller: Caller) -> list[str]:
        return await topics.names(caller, with_internal=with_internal)

    for name in ask(nameserver, timeout, question):
        render.json({"topic": name}) if as_json else typer.echo(name)


Queues = Annotated[
    int | None,
    typer.Option("--queues", "-q", min=1, max=1024, help="Queues on each broker; new topics: 8."),
]
ReadQueues = Annotated[
    int | None,
    typer.Option("--read-queues", min=0, max=1024, help="Queues that consumers read."),
]
WriteQueues = Annotated[
    int | None,
    typer.Option("--write-queues", min=0, max=1024, help="Queues that producers write to."),
]
Permission = Annotated[
    str | None,
    typer.Option(
        "--permission", metavar="r|w|rw", help="Whether clients may read, write; new topics: rw."
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Also if messages that not all groups have consumed would then be in queues that "
        "nobody reads. They stay stored, and can be read only if the queues come back.",
    ),
]


@command(
    app,
    "create",
    "sprocket topic create orders",
    "sprocket topic create orders --queues 16 --permission r --cluster DefaultCluster",
    "sprocket topic create payments --message-type FIFO",
)
def create(
    topic: Topic,
    queues: Queues = None,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    permission: Permission = None,
    message_type: MessageTypeOption = None,
    attributes: Attributes = None,
    force: Force = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Creates a topic on all brokers. Where it exists, only what is named changes."""
    from sprocket.admin import topic_changes

    wanted = _settings(queues, read_queues, write_queues, permission)
    wanted = wanted._replace(attributes=attribute_changes(attributes, message_type=message_type))

    async def question(caller: Caller) -> list[TopicChange]:
        return await topic_changes.create(
            caller, topic, wanted=wanted, may_hide=force, cluster=cluster, broker=broker
        )

    _show_changes(topic, lambda: ask(nameserver, timeout, question))


@command(
    app,
    "update",
    "sprocket topic update orders --queues 16",
    "sprocket topic update orders --permission r --broker broker-a",
    "sprocket topic update orders --write-queues 4",
    "sprocket topic update orders --read-queues 4",
    "sprocket topic update orders --attribute reserve.time=72",
)
def update(
    topic: Topic,
    queues: Queues = None,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    permission: Permission = None,
    message_type: MessageTypeOption = None,
    attributes: Attributes = None,
    no_attributes: NoAttributes = None,
    force: Force = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Changes what is named of a topic, on all brokers that have it. The rest stays.

    To have fewer queues, lower --write-queues first, and --read-queues once the groups have
    consumed what is in the others.
    """
    from sprocket.admin import topic_changes

    wanted = _settings(queues, read_queues, write_queues, permission)
    named = attribute_changes(attributes, no_attributes, message_type)
    wanted = wanted._replace(attributes=named)
    if wanted == topic_changes.TopicSettings():
        raise UsageError(
            "give --queues, --read-queues, --write-queues, --permission, --message-type, "
            "--attribute or --no-attribute"
        )

    async def question(caller: Caller) -> list[TopicChange]:
        return await topic_changes.update(
            caller, topic, wanted=wanted, may_hide=force, cluster=cluster, broker=broker
        )

    _show_changes(topic, lambda: ask(nameserver, timeout, question))


def _settings(
    queues: int | None, read: int | None, write: int | None, permission: str | None
) -> TopicSettings:
    from sprocket.admin.topic_changes import TopicSettings

    if queues is not None and not (read is None and write is None):
        raise UsageError("give --queues, or --read-queues and --write-queues")
    bits = None if permission is None else _permission(permission)
    return TopicSettings(queues if read is None else read, queues if write is None else write, bits)


def _show_changes(topic: str, change: Callable[[], list[TopicChange]]) -> None:
    from sprocket.admin.topic_changes import UnreadQueues
    from sprocket.message.topic import permission_text

    try:
        changes = change()
    except UnreadQueues as error:
        raise UnreadQueues(f"{error}; nothing is changed; --force does it nevertheless") from None
    for each in changes:
        read, write = each.after.read_queue_nums, each.after.write_queue_nums
        queues = f"{read} queues" if read == write else f"{read} read and {write} write queues"
        rights = permission_text(each.after.perm).strip()
        named = "".join(
            f", {name}={value}" for name, value in sorted(each.after.attributes.items())
        )
        typer.echo(f"{topic}: {each.done} on {each.broker}: {queues}, {rights}{named}")


@command(
    app,
    "delete",
    "sprocket topic delete orders",
    "sprocket topic delete orders --broker broker-a --yes",
)
def delete(
    topic: Topic,
    yes: Yes = False,
    cluster: Cluster = None,
    broker: Broker = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Deletes a topic with all its messages."""
    from sprocket.admin import topics

    where = f" on {broker}" if broker else ""
    confirm(f"Delete {topic} with all its messages{where}?", yes=yes)

    async def question(caller: Caller) -> list[str]:
        return await topics.delete(caller, topic, cluster=cluster, broker=broker)

    had = ask(nameserver, timeout, question)
    if not had:
        raise TopicNotFound(f"no broker knew a topic {topic}; anything left of it is deleted")
    typer.echo(f"{topic}: deleted on {', '.join(had)}")


@command(app, "show", "sprocket topic show orders", "sprocket topic show orders --json")
def show(
    topic: Topic,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows a topic's settings at each broker."""
    import msgspec

    from sprocket.admin import topic_changes
    from sprocket.message.topic import permission_text
    from sprocket.message.topic_attributes import topic_type

    async def question(caller: Caller) -> dict[str, TopicConfig]:
        return await topic_changes.settings(caller, topic)

    found = ask(nameserver, timeout, question)
    if as_json:
        for broker, config in found.items():
            render.json({"broker": broker, **msgspec.to_builtins(config)})
        return
    render.table(
        ("broker", "read queues", "write queues", "permission", "messages", "attributes"),
        (
            (
                broker,
                config.read_queue_nums,
                config.write_queue_nums,
                permission_text(config.perm).strip(),
                topic_type(config.attributes).value,
                " ".join(f"{name}={value}" for name, value in config.attributes.items()) or None,
            )
            for broker, config in found.items()
        ),
    )


@command(app, "route", "sprocket topic route orders")
def route(
    topic: Topic,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows which brokers hold a topic's queues."""
    from sprocket.admin import topics
    from sprocket.message.topic import permission_text

    async def question(caller: Caller) -> list[topics.TopicPart]:
        return await topics.route(caller, topic)

    parts = ask(nameserver, timeout, question)
    if as_json:
        for part in parts:
            render.json(part._asdict())
        return
    render.table(
        ("cluster", "broker", "addresses", "read queues", "write queues", "permission"),
        (
            (
                part.cluster,
                part.broker,
                " ".join(f"{number}={address}" for number, address in part.addresses.items()),
                part.read_queues,
                part.write_queues,
                permission_text(part.permission),
            )
            for part in parts
        ),
    )


@command(app, "status", "sprocket topic status orders", "sprocket topic status orders --json")
def status(
    topic: Topic,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows the offsets and the number of messages of a topic's queues."""
    from sprocket.admin import topics

    async def question(caller: Caller) -> list[topics.QueueStatus]:
        return await topics.status(caller, topic)

    queues = ask(nameserver, timeout, question)
    if as_json:
        for queue in queues:
            render.json(queue._asdict())
        return
    render.table(
        ("broker", "queue", "first offset", "next offset", "messages", "last message"),
        (
            (
                queue.broker,
                queue.number,
                queue.min_offset,
                queue.max_offset,
                queue.max_offset - queue.min_offset,
                moment(queue.updated_ms) if queue.updated_ms else None,
            )
            for queue in queues
        ),
    )


@command(app, "volume", "sprocket topic volume orders", "sprocket topic volume orders --json")
def volume(
    topic: Topic,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows how many messages a topic got, and how many its groups got, in the last day."""
    from sprocket.admin import volumes

    async def question(caller: Caller) -> list[volumes.TopicVolume]:
        return await volumes.of_topic(caller, topic)

    told = ask(nameserver, timeout, question)
    if as_json:
        for each in told:
            render.json(each._asdict())
        return
    render.table(
        ("group", "last minute", "last hour", "last day", "per second"),
        (
            ("(sent)" if each.group is None else each.group, *each[1:4], round(each.per_second, 2))
            for each in told
        ),
    )


def _permission(text: str) -> int:
    if not re.fullmatch("r|w|rw|wr", text):
        raise typer.BadParameter(f"it takes r, w or rw, not {text!r}", param_hint="--permission")
    return 4 * ("r" in text) + 2 * ("w" in text)
