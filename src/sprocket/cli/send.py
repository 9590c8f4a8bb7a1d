"""`sprocket send`: sends messages from an argument, a file, or the lines of standard input."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli.options import NAMESERVER, Json, NameServers, Timeout, Topic, pair, queue_of
from sprocket.cli.times import CLOCK, coming
from sprocket.message.properties import DELAY_LEVEL_MAX

EXAMPLES = (
    'sprocket send orders "one coffee" --tag new --key o-1 --property shop=7',
    "sprocket send photos --file cup.jpg",
    "sprocket send orders --tag new < lines.txt",
    'sprocket send orders "paid" --order-key o-1',
    'sprocket send orders "to queue 3" --queue broker-a:3',
    'sprocket send reminders "tea is ready" --delay 180',
    'sprocket send reminders "good morning" --deliver-at 08:00',
)

DelayLevel = Annotated[
    int,
    typer.Option(
        "--delay-level",
        min=0,
        max=DELAY_LEVEL_MAX,
        help="1 (1 s) to 18 (2 h); 0 for no delay.",
    ),
]
DeliverAt = Annotated[
    datetime | None,
    typer.Option(
        "--deliver-at",
        metavar="TIME",
        formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", CLOCK],
        help="Consumers do not get it before this time: 08:00 for the next 08:00, or like "
        "2030-01-31T08:00:00+0100; local time without a zone. By default brokers accept at most "
        "three days.",
    ),
]

Queue = Annotated[
    str | None, typer.Option("--queue", metavar="BROKER:NUMBER", help="Send to this queue.")
]
OrderKey = Annotated[
    str | None,
    typer.Option(
        "--order-key", metavar="TEXT", help="Messages with the same order key share a queue."
    ),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        "-p",
        metavar="NAME=VALUE",
        help="Property of the message; may be given again.",
    ),
]

Priority = Annotated[
    int | None,
    typer.Option(
        "--priority", min=0, help="Priority, for a topic made with --message-type PRIORITY."
    ),
]


def send(
    topic: Topic,
    body: Annotated[
        str | None, typer.Argument(metavar="[BODY]", help="Text to send.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Send this file's content.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", "-t", help="Word that consumers can filter by.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", help="Word to find the message by; may be given again."),
    ] = None,
    properties: Properties = None,
    delay_level: DelayLevel = 0,
    delay: Annotated[float | None, typer.Option("--delay", min=0, help="Delay in seconds.")] = None,
    deliver_at: DeliverAt = None,
    priority: Priority = None,
    queue: Queue = None,
    order_key: OrderKey = None,
    group: Annotated[str, typer.Option("--group", "-g", help="Producer group.")] = "sprocket-cli",
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Sends BODY, a file's content, or each line of standard input as a message."""
    from sprocket.cli import sending
    from sprocket.message.message import Message
    from sprocket.message.queue import QueueId

    if queue is not None and order_key is not None:
        raise UsageError("give --queue or --order-key, not both")
    content = None if body is None and file is None else _content(body, file)
    draft = Message(
        topic,
        content or b"",
        tag=tag,
        keys=keys or (),
        properties=dict(map(pair, properties or ())),
        delay_level=delay_level,
        delay=delay,
        deliver_at=None if deliver_at is None else coming(deliver_at, datetime.now()),
        priority=priority,
    )
    code = sending.run(
        draft,
        is_whole=content is not None,
        order=sending.SendOrder(
            key=order_key, queue=None if queue is None else QueueId(topic, *queue_of(queue))
        ),
        group=group,
        nameservers=nameserver,
        timeout=timeout,
        as_json=as_json,
    )
    raise typer.Exit(code)


def _content(body: str | None, file: Path | None) -> bytes:
    if body is not None and file is not None:
        raise UsageError("give BODY or --file, not both")
    return (
        file.read_bytes() if file is not None else (body or "").encode("utf-8", "surrogateescape")
    )
