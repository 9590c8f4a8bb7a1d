"""`sprocket message waiting` and `recall`: counts and recalls delayed messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.options import NAMESERVER, Broker, Cluster, Json, NameServers, Timeout
from sprocket.cli.times import length, moment

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.timers import TimerBacklog

WAITING_EXAMPLES = (
    "sprocket message waiting",
    "sprocket message waiting --broker broker-a --json",
)
RECALL_EXAMPLES = ("sprocket message recall djEgb3JkZXJzIGJyb2tlci1hIDE3MDQwNjcyMDEwMDEgQzBGRkVF",)


def waiting(
    broker: Broker = None,
    cluster: Cluster = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows how many messages with a delay or a time wait, by topic and by time."""
    from sprocket.admin import timers

    async def question(caller: Caller) -> list[TimerBacklog]:
        return await timers.waiting(caller, cluster=cluster, broker=broker)

    found = ask(nameserver, timeout, question)
    if as_json:
        for each in found:
            render.json({**each._asdict(), "total": each.total})
        return
    rows = [
        (each.broker, "topic", topic, str(count))
        for each in found
        for topic, count in each.topics.items()
    ]
    for each in found:
        rows += [(each.broker, "due within", length(s), str(n)) for s, n in each.spans.items() if n]
        if each.later > 0:
            rows.append((each.broker, "due", "later", str(each.later)))
        if each.next_ms:
            rows.append((each.broker, "next", "not before", moment(each.next_ms)))
    render.table(("broker", "what", "which", "messages"), rows)


def recall(
    handle: Annotated[
        str, typer.Argument(metavar="HANDLE", help="The handle that the send returned.")
    ],
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Recalls a message that waits for its time."""
    from sprocket.admin import timers

    async def question(caller: Caller) -> str:
        return await timers.recall(caller, handle)

    message_id = ask(nameserver, timeout, question)
    if as_json:
        render.json({"message_id": message_id})
    else:
        typer.echo(f"message {message_id} is recalled")
