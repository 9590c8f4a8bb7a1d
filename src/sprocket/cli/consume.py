"""`sprocket consume`: prints messages, without a group or as a member of a consumer group."""

from __future__ import annotations

from typing import Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli.decoding import Decode, MessageName, Registry, SchemaFile, decoding
from sprocket.cli.options import NAMESERVER, Json, NameServers, Topic
from sprocket.cli.times import start_at

EXAMPLES = (
    "sprocket consume orders --count 10",
    'sprocket consume orders --from last --tags "new || paid" --json',
    "sprocket consume orders --sql \"amount > 5 AND region = 'eu'\"",
    "sprocket consume orders --code cheap.py --group gifts",
    "sprocket consume orders --from 15m --end",
    'sprocket consume orders --from "2030-01-31 08:00" --group billing',
    "sprocket consume orders --group workers --pop",
    "sprocket consume orders --decode avro --schema order.avsc",
    "sprocket consume orders --registry http://registry.example:8081 --json",
)

Beginning = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="first|last|TIME",
        help="Where to begin: the first message, the end, a time (2030-01-31 08:00), or some "
        "time ago (15m). A group continues at its committed offsets; this is for one without. "
        "PushConsumer begins a new group at the end.",
    ),
]
Code = Annotated[
    str | None,
    typer.Option(
        "--code",
        metavar="FILE[:NAME]|NAME",
        help="Only messages that this Python function matches at the broker: a file, or the "
        "name of an uploaded filter.",
    ),
]
Member = Annotated[
    str | None,
    typer.Option(
        "--group",
        "-g",
        help="Consume as a member of this group and commit offsets. Without it, only read.",
    ),
]
Pop = Annotated[
    bool,
    typer.Option("--pop", help="With --group: pop messages one by one instead of owning queues."),
]


def consume(
    topic: Topic,
    beginning: Beginning = "first",
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="Stop after this many messages.")
    ] = None,
    to_end: Annotated[
        bool, typer.Option("--end", help="Stop at the end of the topic, without waiting for more.")
    ] = False,
    tags: Annotated[
        str, typer.Option("--tags", "-t", help="Only messages with these tags, separated by ||.")
    ] = "*",
    sql: Annotated[
        str | None,
        typer.Option(
            "--sql", help="Only messages whose properties match this condition: amount > 5."
        ),
    ] = None,
    code: Code = None,
    group: Member = None,
    pop: Pop = False,
    raw: Annotated[bool, typer.Option("--raw", help="Print only bodies, one a line.")] = False,
    decode: Decode = None,
    schema: SchemaFile = None,
    message: MessageName = None,
    registry: Registry = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
) -> None:
    """Prints messages as they arrive, until Ctrl-C. Without --group no offsets are committed."""
    import time

    from sprocket.cli import consuming

    chosen = consuming.chosen_by(tags, sql, code)
    if group is not None and to_end:
        raise UsageError("--end cannot be used with --group")
    if pop and group is None:
        raise UsageError("--pop needs --group: a message is popped for a group")
    show = consuming.show_raw if raw else consuming.show_json if as_json else consuming.show_line
    start = start_at(beginning, int(time.time() * 1000))
    printer = consuming.MessagePrinter(show, count, decoding(decode, schema, message, registry))
    if group is None:
        main = consuming.read(
            topic, start, chosen=chosen, to_end=to_end, nameservers=nameserver, printer=printer
        )
    else:
        main = consuming.join(
            topic, start, chosen=chosen, group=group, nameservers=nameserver, printer=printer,
            mode="pop" if pop else "pull",
        )  # fmt: skip
    try:
        ended = consuming.run(main)
    finally:
        printer.report()
    raise typer.Exit(ended)
