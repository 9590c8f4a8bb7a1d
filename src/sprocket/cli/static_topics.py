"""`sprocket statictopic`: topics whose queues move between brokers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.cli import render
from sprocket.cli.asking import ask
from sprocket.cli.options import NAMESERVER, Json, NameServers, Timeout, Topic, command

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.protocol.bodies import MappedTopic

app = typer.Typer(help="Topics whose queues move between brokers: create, move, finish, show.")

Brokers = Annotated[
    list[str] | None,
    typer.Option("--broker", metavar="NAME", help="A broker that leads queues; may be repeated."),
]
Queues = Annotated[
    int, typer.Option("--queues", "-q", min=1, max=16_384, help="Logical queues in all.")
]


@command(
    app,
    "create",
    "sprocket statictopic create orders --queues 8",
    "sprocket statictopic create orders --queues 16 --broker broker-a --broker broker-b",
)
def create(
    topic: Topic,
    queues: Queues,
    broker: Brokers = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Creates a static topic, or gives it more queues; on all brokers unless some are named."""
    from sprocket.admin import static_topics

    async def question(caller: Caller) -> dict[str, MappedTopic]:
        return await static_topics.create(
            caller, topic, queues=queues, brokers=broker or (), now_ms=_now_ms()
        )

    _print(ask(nameserver, timeout, question))


@command(app, "move", "sprocket statictopic move orders --broker broker-b --broker broker-c")
def move(
    topic: Topic,
    broker: Brokers = None,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Moves a topic's queues, so that the named brokers lead all of them."""
    from sprocket.admin import static_topics

    async def question(caller: Caller) -> dict[str, MappedTopic]:
        return await static_topics.move_queues(
            caller, topic, brokers=broker or (), now_ms=_now_ms()
        )

    _print(ask(nameserver, timeout, question))


@command(app, "finish", "sprocket statictopic finish orders")
def finish(topic: Topic, nameserver: NameServers = NAMESERVER, timeout: Timeout = 5.0) -> None:
    """Finishes a change that failed at some brokers: all get the newest state."""
    from sprocket.admin import static_topics

    async def question(caller: Caller) -> dict[str, MappedTopic]:
        return await static_topics.finish(caller, topic)

    _print(ask(nameserver, timeout, question))


@command(app, "show", "sprocket statictopic show orders", "sprocket statictopic show orders --json")
def show(
    topic: Topic,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Shows which broker leads each queue, and which queues of brokers hold its messages."""
    from sprocket.admin import static_topics

    async def question(caller: Caller) -> dict[str, MappedTopic]:
        return await static_topics.mappings(caller, topic)

    _print(ask(nameserver, timeout, question), as_json=as_json)


def _print(topics: dict[str, MappedTopic], *, as_json: bool = False) -> None:
    from sprocket.clientcore.logical_queues import leader

    rows = []
    for broker, mapped in topics.items():
        if (detail := mapped.mapping_detail) is None:
            continue
        for number, parts in detail.hosted_queues.items():
            if leader(detail, number) is not None:
                rows.append((number, broker, parts))
    for number, broker, parts in sorted(rows, key=lambda row: row[0]):
        held = [(part.logic_offset, part.bname, part.queue_id) for part in parts]
        if as_json:
            render.json({"queue": number, "leader": broker, "parts": held})
        else:
            words = (
                f"{'undecided' if begin < 0 else f'from {begin}'} in {name}:{queue}"
                for begin, name, queue in held
            )
            typer.echo(f"{number}: {broker} ({', '.join(words)})")


def _now_ms() -> int:
    return int(time.time() * 1000)
