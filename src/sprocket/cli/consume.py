"""`sprocket consume`: prints messages, by itself or as a member of a consumer group."""

from __future__ import annotations

from typing import Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli.options import NAMESERVER, Json, NameServers, Topic
from sprocket.cli.times import start_at

EXAMPLES = (
    "sprocket consume orders --count 10",
    'sprocket consume orders --from last --tags "new || paid" --json',
    "sprocket consume orders --sql \"amount > 5 AND region = 'eu'\"",
    "sprocket consume orders --code cheap.py --group gifts",
    "sprocket consume orders --from 15m --end",
    'sprocket consume orders --from "2030-01-31 08:00" --group billing',
)


def consume(
    topic: Topic,
    beginning: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="first|last|TIME",
            help="first message, only new ones, a time (2030-01-31 08:00), or how long ago (15m).",
        ),
    ] = "first",
    count: Annotated[
        int | None, typer.Option("--count", "-c", min=1, help="End after so many messages.")
    ] = None,
    to_end: Annotated[
        bool, typer.Option("--end", help="End when everything there is has been read.")
    ] = False,
    tags: Annotated[
        str, typer.Option("--tags", "-t", help="Only these tags, with || between them.")
    ] = "*",
    sql: Annotated[
        str | None,
        typer.Option("--sql", help="Only what this condition over properties says: amount > 5."),
    ] = None,
    code: Annotated[
        str | None,
        typer.Option(
            "--code",
            metavar="FILE[:NAME]|NAME",
            help="Only what this function at the broker wants, in a file or uploaded before.",
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            "--group", "-g", help="Share the messages with this group, and commit; else just read."
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Print bodies only, each on a line.")] = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
) -> None:
    """Prints messages as they come, until Ctrl-C. Without --group nothing is committed."""
    import time

    from sprocket.cli import consuming

    chosen = consuming.chosen_by(tags, sql, code)
    if group is not None and to_end:
        raise UsageError("--end is for reading without --group")
    show = consuming.show_raw if raw else consuming.show_json if as_json else consuming.show_line
    start = start_at(beginning, int(time.time() * 1000))
    taken = consuming.Taken(show, count)
    if group is None:
        main = consuming.read(
            topic, start, chosen=chosen, to_end=to_end, nameservers=nameserver, taken=taken
        )
    else:
        main = consuming.join(
            topic, start, chosen=chosen, group=group, nameservers=nameserver, taken=taken
        )
    raise typer.Exit(consuming.run(main))
