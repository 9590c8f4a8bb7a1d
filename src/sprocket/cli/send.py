"""`sprocket send`: messages from an argument, a file, or the lines of standard input."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli.options import NAMESERVER, Json, NameServers, Timeout, Topic, pair
from sprocket.cli.times import CLOCK, coming
from sprocket.message.properties import DELAY_LEVEL_MAX

EXAMPLES = (
    'sprocket send orders "one coffee" --tag new --key o-1 --property shop=7',
    "sprocket send photos --file cup.jpg",
    "sprocket send orders --tag new < lines.txt",
    'sprocket send reminders "tea is ready" --delay 180',
    'sprocket send reminders "good morning" --deliver-at 08:00',
)

DeliverAt = Annotated[
    datetime | None,
    typer.Option(
        "--deliver-at",
        metavar="TIME",
        formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", CLOCK],
        help="Time before which nobody gets it: 08:00 for the next time that it is, or like "
        "2030-01-31T08:00:00+0100; local if it names no zone. Brokers take three days at most, "
        "unless set otherwise.",
    ),
]


def send(
    topic: Topic,
    body: Annotated[
        str | None, typer.Argument(metavar="[BODY]", help="Text to send.", show_default=False)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="Send a file's content.")
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", "-t", help="Word by which subscribers choose.")
    ] = None,
    keys: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", help="Word by which it is found; may be given again."),
    ] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", "-p", metavar="NAME=VALUE", help="May be given again."),
    ] = None,
    delay_level: Annotated[
        int,
        typer.Option(
            "--delay-level", min=0, max=DELAY_LEVEL_MAX, help="1 (1 s) to 18 (2 h); 0 at once."
        ),
    ] = 0,
    delay: Annotated[
        float | None, typer.Option("--delay", min=0, help="Seconds that it waits at the broker.")
    ] = None,
    deliver_at: DeliverAt = None,
    group: Annotated[str, typer.Option("--group", "-g", help="Producer group.")] = "sprocket-cli",
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Sends messages: BODY, a file, or each line of standard input."""
    from sprocket.cli import sending
    from sprocket.message.message import Message

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
    )
    code = sending.run(
        draft,
        is_whole=content is not None,
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
