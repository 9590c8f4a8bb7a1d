"""`sprocket spark checkpoint`: where a query in Spark stands, and where it goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.options import (
    NAMESERVER,
    InQueue,
    Json,
    NameServers,
    OneQueue,
    Timeout,
    Yes,
    command,
    confirm,
    examples,
    queue_of,
)
from sprocket.cli.synonyms import CommandGroup
from sprocket.cli.times import start_at

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.message.queue import QueueId
    from sprocket.spark.checkpoints import LastBatch

SHOW = "sprocket spark checkpoint show data/checkpoint"
SET = "sprocket spark checkpoint set data/checkpoint orders --to 1h"

app = typer.Typer(help="Queries in Spark.")
checkpoint = typer.Typer(help="Where a query stands, and where it goes on.")
app.add_typer(
    checkpoint,
    name="checkpoint",
    cls=CommandGroup,
    no_args_is_help=True,
    epilog=examples(SHOW, SET),
)

Folder = Annotated[
    str, typer.Argument(metavar="FOLDER", help="The query's checkpointLocation, on this machine.")
]
Source = Annotated[
    int | None,
    typer.Option("--source", min=0, help="Number of the source in the query, if it has several."),
]


@command(
    checkpoint,
    "show",
    SHOW,
    f"{SHOW} --lag",
    f"{SHOW} --offsets  # for startingOffsets of another query",
)
def show(
    folder: Folder,
    source: Source = None,
    with_lag: Annotated[
        bool, typer.Option("--lag", help="Also the ends of the queues; asks the brokers.")
    ] = False,
    only_offsets: Annotated[
        bool, typer.Option("--offsets", help="Print only the JSON that startingOffsets takes.")
    ] = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows the last micro-batch of a query, and the next offset in each queue."""
    from sprocket.spark.options.checkpoint import shape_checkpoint

    found = _read(folder)
    number = _source(found, source)
    offsets = found.sources[number]
    if only_offsets:
        typer.echo(json.dumps(shape_checkpoint(offsets)))
        return
    ends = _ends(nameserver, timeout, {q.topic for q in offsets.next}) if with_lag else {}
    rows = [
        (*queue, offset, ends.get(queue), max(ends[queue] - offset, 0) if queue in ends else None)
        for queue, offset in sorted(offsets.next.items())
    ]
    width = 6 if with_lag else 4
    names = ("topic", "broker", "number", "offset", "end", "behind")[:width]
    if as_json:
        for row in rows:
            render.json(dict(zip(names, row[:width], strict=True)))
        return
    state = "done" if found.is_done else "not done: the query begins with it again"
    typer.echo(f"micro-batch {found.batch}, {state}\n")
    headings = ("topic", "broker", "queue", "next offset", "end", "lag")
    render.table(headings[:width], (row[:width] for row in rows))


@command(
    checkpoint,
    "set",
    SET,
    "sprocket spark checkpoint set data/checkpoint orders --to group:billing --yes",
    "sprocket spark checkpoint set data/checkpoint orders --queue broker-a:3 --offset 1500",
)
def set_offsets(
    folder: Folder,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="first|last|TIME|group:GROUP",
            help="The oldest message, the end, a time (2030-01-31 08:00), some time ago (15m), or "
            "a group's committed offsets.",
        ),
    ] = None,
    queue: OneQueue = None,
    offset: InQueue = None,
    source: Source = None,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Sets where a query goes on in a topic. Stop the query first.

    It reads all messages after the new offsets, also those that it has read before; the sink gets
    them again. The file as it was is kept beside it, with the ending .bak.
    """
    from sprocket.message.queue import QueueId
    from sprocket.runtime.disk import SystemDisk
    from sprocket.spark import checkpoints

    if (to is None) == (offset is None):
        raise UsageError("give --to, or --queue with --offset")
    if offset is not None and queue is None:
        raise UsageError("--offset needs --queue")
    only = None if queue is None else QueueId(topic, *queue_of(queue))
    found = _read(folder)
    number = _source(found, source)
    known = {each for each in found.sources[number].next if each.topic == topic}
    if not known or (only is not None and only not in known):
        raise UsageError(f"the query does not read {only or topic}; it reads {_topics(found)}")
    if only is not None and offset is not None:
        new = {only: offset}
    else:
        new = _positions(nameserver, timeout, topic, "first" if to is None else to)
        new = {each: at for each, at in new.items() if only in (None, each)}
    if not new:
        raise UsageError(f"{to} gives no offset in {only or topic}")
    old = found.sources[number].next
    rows = [(*each, old.get(each), at) for each, at in sorted(new.items())]
    if as_json:
        for row in rows:
            render.json(dict(zip(("topic", "broker", "number", "old", "offset"), row, strict=True)))
    else:
        render.table(("topic", "broker", "queue", "old offset", "next offset"), rows)
    confirm(f"Is the query stopped, and should it go on there ({len(new)} queues)?", yes=yes)
    checkpoints.set_offsets(SystemDisk(), found, number, new)


def _read(folder: str) -> LastBatch:
    from sprocket.runtime.disk import SystemDisk
    from sprocket.spark import checkpoints

    return checkpoints.read_last(SystemDisk(), folder)


def _source(found: LastBatch, wanted: int | None) -> int:
    """The number of the source that is meant."""
    numbers = sorted(found.sources)
    if wanted is None and len(numbers) == 1:
        return numbers[0]
    if wanted in numbers:
        return int(wanted or 0)
    if not numbers:
        raise UsageError("no source of this query is a RocketMQ topic")
    raise UsageError(f"RocketMQ's sources of this query have the numbers {numbers}: give --source")


def _topics(found: LastBatch) -> str:
    names = {queue.topic for offsets in found.sources.values() for queue in offsets.next}
    return ", ".join(sorted(names)) or "nothing"


def _ends(nameserver: str, timeout: float, topics: set[str]) -> dict[QueueId, int]:
    from sprocket.admin import positions

    async def question(caller: Caller) -> dict[QueueId, int]:
        found: dict[QueueId, int] = {}
        for topic in sorted(topics):
            found.update(await positions.at_time(caller, topic, positions.LAST))
        return found

    return ask(nameserver, timeout, question)


def _positions(nameserver: str, timeout: float, topic: str, to: str) -> dict[QueueId, int]:
    """The offsets in a topic's queues that a text names."""
    import time

    from sprocket.admin import known, positions
    from sprocket.message.queue import QueueId

    word, _, group = to.partition(":")
    if word == "group" and group:

        async def committed(caller: Caller) -> dict[QueueId, int]:
            await known.check_group(caller, group)
            lag = await positions.lag(caller, group, topic=topic)
            return {QueueId(q.topic, q.broker, q.number): q.committed for q in lag.queues}

        return ask(nameserver, timeout, committed)
    start = start_at(to, int(time.time() * 1000))
    at_ms = {"first": positions.FIRST, "last": positions.LAST}.get(str(start), start)

    async def question(caller: Caller) -> dict[QueueId, int]:
        return await positions.at_time(caller, topic, int(at_ms))

    return ask(nameserver, timeout, question)
