"""`sprocket message`: finds messages, resends them, has a member consume one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import QueryNotFound, UsageError
from sprocket.cli import render, waiting
from sprocket.cli.asking import ask
from sprocket.cli.options import (
    NAMESERVER,
    Group,
    Json,
    NameServers,
    Since,
    Timeout,
    Topic,
    Until,
    Yes,
    command,
    confirm,
)
from sprocket.cli.times import between, moment

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.consumers import ConsumeOutcome
    from sprocket.admin.resend import Resent
    from sprocket.message.message import StoredMessage

#: Brokers return no more in one reply.
_OF_A_BROKER = 64

app = typer.Typer(
    help="Single messages: find, show, resend, consume directly; delayed messages: count, recall."
)
command(app, "waiting", *waiting.WAITING_EXAMPLES)(waiting.waiting)
command(app, "recall", *waiting.RECALL_EXAMPLES)(waiting.recall)

MessageId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Its offset id; or, with --topic, its unique id, as `sprocket send` prints it.",
    ),
]
OfTopic = Annotated[
    str | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="ID is a unique id in this topic."),
]


@command(
    app,
    "find",
    "sprocket message find orders o-1",
    "sprocket message find orders o-1 --since 2h --json",
    "sprocket message find orders --id 7F0000010000C0FFEE0000000000002A",
    "sprocket message find orders --since 15m --until 10m",
)
def find(
    topic: Topic,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="A key of the message.")
    ] = None,
    unique_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="Its unique id; also searches retries and dead letters of the topic's groups.",
        ),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group", "-g", metavar="GROUP", help="With --id: also search this group's retries."
        ),
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            "--count", "-c", min=1, help="At most this many; by key at most 64 from each broker."
        ),
    ] = 64,
    since: Since = None,
    until: Until = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Finds messages by key, by unique id, or by the time when they were stored."""
    from sprocket.admin import known, messages

    named = [name for name in (key, unique_id) if name is not None]
    if len(named) > 1 or not (named or since or until):
        raise UsageError("give a key, --id, or a time with --since or --until")
    if groups and unique_id is None:
        raise UsageError("--group needs --id")
    times = between(since, until)

    async def question(caller: Caller) -> list[StoredMessage]:
        if key is not None:
            begin_ms, end_ms = times
            at_most = min(count, _OF_A_BROKER)
            return await messages.query(
                caller, topic, key, count_max=at_most, begin_ms=begin_ms, end_ms=end_ms
            )
        for group in groups or ():
            await known.check_group(caller, group)
        if unique_id is not None:
            found = await messages.journey(caller, topic, unique_id, groups=groups or ())
            return [message for message in found if times[0] <= message.stored_ms <= times[1]]
        return await _of_time(caller, topic, times, count)

    show_list(ask(nameserver, timeout, question), as_json=as_json)


async def _of_time(
    caller: Caller, topic: str, times: tuple[int, int], count: int
) -> list[StoredMessage]:
    from sprocket.admin import reading

    found: list[StoredMessage] = []
    begin_ms, end_ms = times
    with render.progress("messages") as advance:
        async for message in reading.messages(caller, topic, begin_ms=begin_ms, end_ms=end_ms):
            found.append(message)
            advance(1)
            if len(found) >= count:
                break
    return found


@command(
    app,
    "show",
    "sprocket message show 7F00000100002A9F0000000000000A1C",
    "sprocket message show 7F0000010000C0FFEE0000000000002A --topic orders --json",
)
def show(
    message_id: MessageId,
    topic: OfTopic = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows a message with all its fields."""

    async def question(caller: Caller) -> list[StoredMessage]:
        return await found(caller, message_id, topic)

    for message in ask(nameserver, timeout, question):
        facts = facts_of(message)
        if as_json:
            render.json(facts)
            continue
        properties = facts.pop("properties")
        facts = {**facts, "born": moment(message.born_ms), "stored": moment(message.stored_ms)}
        render.table(("what", "value"), [(name, str(value)) for name, value in facts.items()])
        typer.echo()
        render.table(("property", "value"), sorted(properties.items()))


@command(
    app,
    "resend",
    "sprocket message resend 7F00000100002A9F0000000000000A1C",
    "sprocket message resend 7F0000010000C0FFEE0000000000002A --topic orders --to test --yes",
)
def resend(
    message_id: MessageId,
    topic: OfTopic = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="TOPIC", help="Send it to this topic, not to its original."),
    ] = None,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Sends a message again as a new one, with its body, tag, keys and user properties."""
    from sprocket.admin import resend as again

    confirm(f"Send {message_id} to {to or 'its topic'} again, for all its groups?", yes=yes)

    async def question(caller: Caller) -> Resent:
        (message, *_) = await found(caller, message_id, topic)
        return await again.resend(caller, message, topic=to)

    show_resent(ask(nameserver, timeout, question), as_json=as_json)


@command(
    app,
    "consume-directly",
    "sprocket message consume-directly billing 7F00000100002A9F0000000000000A1C",
)
def consume_directly(
    group: Group,
    message_id: MessageId,
    topic: OfTopic = None,
    client: Annotated[
        str | None, typer.Option("--client", metavar="ID", help="The member; default: the first.")
    ] = None,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 15.0,
) -> None:
    """Has a member of a group consume one message now, even if it was consumed before."""
    from sprocket.admin import consumers

    confirm(f"Have {client or group} consume {message_id} now?", yes=yes)

    async def question(caller: Caller) -> ConsumeOutcome:
        (message, *_) = await found(caller, message_id, topic)
        return await consumers.consume_directly(caller, group, message, client_id=client)

    outcome = ask(nameserver, timeout, question)
    if as_json:
        render.json(outcome._asdict())
    else:
        render.table(("client", "result", "remark", "ms"), [outcome])


async def found(caller: Caller, message_id: str, topic: str | None) -> list[StoredMessage]:
    """The message with an id; several if it was stored more than once.

    Raises:
        UsageError: the text is not an id.
        QueryNotFound: there is no such message.
    """
    from sprocket.admin import messages

    if topic is None:
        return [await messages.view(caller, message_id)]
    several = await messages.by_unique_id(caller, topic, message_id)
    if not several:
        raise QueryNotFound(f"no message {message_id} in topic {topic}")
    return several


def facts_of(message: StoredMessage) -> dict[str, Any]:
    """All fields of a message, for JSON; a body that is not text is in base64."""
    from sprocket.admin.resend import place_of
    from sprocket.cli.consuming import body_of

    return {
        "topic": message.topic,
        "broker": message.queue.broker,
        "queue": message.queue.number,
        "queue_offset": message.queue_offset,
        "offset_id": place_of(message),
        "message_id": message.properties.get("UNIQ_KEY"),
        "tag": message.tag,
        "keys": message.keys,
        "reconsume_times": message.reconsume_times,
        "born_ms": message.born_ms,
        "born_host": message.born_host,
        "stored_ms": message.stored_ms,
        "store_host": message.store_host,
        "flag": message.flag,
        "properties": message.properties,
        **body_of(message),
    }


def show_list(messages: list[StoredMessage], *, as_json: bool) -> None:
    """Prints messages, one a line."""
    from sprocket.admin.resend import origin_of, place_of

    if as_json:
        for message in messages:
            render.json(facts_of(message))
        return
    render.table(
        ("offset id", "topic", "queue", "offset", "tag", "keys", "tries", "stored"),
        (
            (
                place_of(message),
                origin_of(message),
                f"{message.queue.broker}:{message.queue.number}",
                message.queue_offset,
                message.tag,
                " ".join(message.keys) or None,
                message.reconsume_times,
                moment(message.stored_ms),
            )
            for message in messages
        ),
    )


def show_resent(sent: Resent, *, as_json: bool) -> None:
    """Prints where a message was stored."""
    if as_json:
        render.json(sent._asdict())
        return
    where = f"{sent.topic}@{sent.broker}:{sent.queue_number} offset {sent.queue_offset}"
    typer.echo(f"{where} id {sent.message_id} offset id {sent.offset_id}")
