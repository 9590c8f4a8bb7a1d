"""`sprocket deadletters`: lists and resends the dead letters of a consumer group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import TopicNotFound, UsageError
from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.messages import show_list, show_resent
from sprocket.cli.options import (
    NAMESERVER,
    Group,
    Json,
    NameServers,
    Since,
    Timeout,
    Until,
    Yes,
    command,
    confirm,
)
from sprocket.cli.times import between

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.admin.resend import Resent
    from sprocket.message.message import StoredMessage

app = typer.Typer(help="Dead letters of a consumer group: list, resend.")


@command(
    app,
    "list",
    "sprocket deadletters list billing",
    "sprocket deadletters list billing --since 1d --json",
)
def list_letters(
    group: Group,
    count: Annotated[
        int, typer.Option("--count", "-c", min=1, help="At most this many, the oldest first.")
    ] = 1000,
    since: Since = None,
    until: Until = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Lists a group's dead letters."""
    begin_ms, end_ms = between(since, until)

    async def question(caller: Caller) -> list[StoredMessage]:
        return await _letters(caller, group, (begin_ms, end_ms), count)

    show_list(ask(nameserver, timeout, question), as_json=as_json)


async def _letters(
    caller: Caller, group: str, times: tuple[int, int], count: int | None
) -> list[StoredMessage]:
    from sprocket.admin import known, resend

    found: list[StoredMessage] = []
    begin_ms, end_ms = times
    try:
        with render.progress("dead letters") as advance:
            async for message in resend.dead_letters(
                caller, group, begin_ms=begin_ms, end_ms=end_ms
            ):
                found.append(message)
                advance(1)
                if count is not None and len(found) >= count:
                    break
    except TopicNotFound:  # the group has no dead letters, or does not exist
        await known.check_group(caller, group)
        return []
    return found


@command(
    app,
    "resend",
    "sprocket deadletters resend billing 7F00000100002A9F0000000000000A1C",
    "sprocket deadletters resend billing --all --since 1d --yes",
    "sprocket deadletters resend billing --all --to-topic",
)
def resend(
    group: Group,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Offset ids, as `list` shows them."),
    ] = None,
    is_all: Annotated[
        bool, typer.Option("--all", help="All dead letters, or those of --since and --until.")
    ] = False,
    to_topic: Annotated[
        bool,
        typer.Option(
            "--to-topic",
            help="Send them to their original topics, so to all groups, not only to this one.",
        ),
    ] = False,
    since: Since = None,
    until: Until = None,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Sends dead letters to their group again, with the sender's tag, keys and properties.

    The dead letters also stay in the list.
    """
    if bool(ids) == is_all:
        raise UsageError("give offset ids, or --all")
    times = between(since, until)
    letters = ask(nameserver, timeout, lambda caller: _chosen(caller, group, ids=ids, times=times))
    where = "their topics" if to_topic else f"consumer group {group}"
    if letters:
        confirm(f"Send {len(letters)} dead letters to {where}?", yes=yes)

    async def question(caller: Caller) -> int:
        return await _resend(caller, group, letters, to_topic=to_topic, as_json=as_json)

    count = ask(nameserver, timeout, question) if letters else 0
    if not as_json:
        typer.echo(f"{count} dead letters sent to {where}")


async def _chosen(
    caller: Caller, group: str, *, ids: list[str] | None, times: tuple[int, int]
) -> list[StoredMessage]:
    from sprocket.admin import messages
    from sprocket.message.topic import dead_letter_topic

    if not ids:
        return await _letters(caller, group, times, None)
    chosen = [await messages.view(caller, each) for each in ids]
    for place, message in zip(ids, chosen, strict=True):
        if message.topic != dead_letter_topic(group):
            raise UsageError(
                f"{place} is no dead letter of {group}: it is stored in {message.topic}"
            )
    return chosen


async def _resend(
    caller: Caller, group: str, letters: list[StoredMessage], *, to_topic: bool, as_json: bool
) -> int:
    from sprocket.admin import resend as again

    if not to_topic:
        await again.check_takes_retries(caller, group)
    with render.progress("dead letters", len(letters)) as advance:
        for letter in letters:
            sent: Resent
            if to_topic:
                sent = await again.resend(caller, letter)
            else:
                sent = await again.put_back(caller, letter, group)
            advance(1)
            if as_json:
                show_resent(sent, as_json=True)
    return len(letters)
