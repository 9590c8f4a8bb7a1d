"""`sprocket consume`: prints messages, by itself or as a member of a consumer group."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal

import typer

from sprocket.base.errors import UsageError
from sprocket.cli.options import NAMESERVER, Json, NameServers, Topic

EXAMPLES = (
    "sprocket consume orders --count 10",
    'sprocket consume orders --from last --tags "new || paid" --json',
    "sprocket consume orders --sql \"amount > 5 AND region = 'eu'\"",
    "sprocket consume orders --code cheap.py --group gifts",
    "sprocket consume orders --from 15m --end",
    'sprocket consume orders --from "2030-01-31 08:00" --group billing',
)

_AGO = re.compile(r"(\d{1,9})([smhd])")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


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
            help="Only what this function at the broker wants: a file with it, named like the "
            "file or behind a colon, or one that was uploaded.",
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
    if group is None:
        main = consuming.read(
            topic, start, chosen=chosen, to_end=to_end, nameservers=nameserver,
            taken=consuming.Taken(show, count),
        )  # fmt: skip
    else:
        main = consuming.join(
            topic, start, chosen=chosen, group=group, nameservers=nameserver,
            taken=consuming.Taken(show, count),
        )  # fmt: skip
    raise typer.Exit(consuming.run(main))


def start_at(text: str, now_ms: int) -> Literal["first", "last"] | int:
    """Where to begin: a word, or ms since 1970 UTC.

    Raises:
        UsageError: the text says neither a word nor a time.
    """
    if text in ("first", "last"):
        return text  # type: ignore[return-value]  # mypy does not see through the tuple
    if ago := _AGO.fullmatch(text):
        return max(0, now_ms - int(ago[1]) * _UNIT_MS[ago[2]])
    if re.fullmatch(r"\d{1,15}", text):
        return int(text)
    try:
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1000))
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"a time is first, last, like '2030-01-31 08:00', or like 15m (ago), not {text!r}"
        ) from None
