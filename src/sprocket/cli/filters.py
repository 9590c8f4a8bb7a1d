"""`sprocket filter`: checks, uploads, lists and removes filters in Python."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sprocket.base.errors import FilterFailed, SubscriptionInvalid
from sprocket.cli import render
from sprocket.cli.asking import ask, run
from sprocket.cli.options import NAMESERVER, Json, NameServers, Timeout, Yes, command, confirm, pair

if TYPE_CHECKING:
    from sprocket.admin.caller import Caller
    from sprocket.filter.python import PythonFilter
    from sprocket.protocol.bodies import FilterFacts

app = typer.Typer(help="Filters in Python: check, upload, list, remove.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="Python source with the function.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="The function; by default the file's name."),
]
GroupOption = Annotated[
    str, typer.Option("--group", "-g", metavar="GROUP", help="Consumer group of the filter.")
]
TopicOption = Annotated[
    str, typer.Option("--topic", "-t", metavar="TOPIC", help="Topic of the filter.")
]
Secret = Annotated[
    str | None,
    typer.Option(
        "--secret",
        metavar="TEXT",
        envvar="SPROCKET_FILTER_SECRET",
        help="The brokers' filter_secret, for uploads from other machines.",
    ),
]


@command(
    app,
    "check",
    "sprocket filter check cheap.py",
    "sprocket filter check cheap.py --property amount=3 --property region=eu --body 'one gift'",
)
def check(
    file: File,
    name: Name = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--property", "-p", metavar="NAME=VALUE", help="Property of a message to try it on."
        ),
    ] = None,
    body: Annotated[
        str | None, typer.Option("--body", metavar="TEXT", help="Body of a message to try it on.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Checks whether a filter can run, and whether it matches a message, without a broker.

    It runs in the same sandbox as at a broker, if this system supports it.
    """
    wanted = _filter_of(file, name)
    properties = dict(map(pair, given or ()))
    is_judged = bool(properties) or body is not None
    level, verdict = run(_tried(wanted, properties, body or "", is_judged=is_judged))
    if as_json:
        facts: dict[str, Any] = {
            "filter": wanted.name, "version": wanted.version, "isolation": level,
        }  # fmt: skip
        render.json({**facts, "wanted": verdict} if is_judged else facts)
        return
    typer.echo(f"{wanted.expression}: valid ({_LEVELS[level]})")
    if is_judged:
        typer.echo("the message matches" if verdict else "the message does not match")


_LEVELS = {
    "kernel": "sandboxed by the kernel here",
    "limits": "this system has only resource limits: a broker here needs filter_isolation=limits",
}


def _filter_of(file: Path, name: str | None, secret: str | None = None) -> PythonFilter:
    from sprocket.base.decoding import decode_strictly
    from sprocket.filter.python import PythonFilter

    source = decode_strictly(file.read_bytes(), str(file))
    return PythonFilter(source, name or file.stem, secret=secret)


async def _tried(
    wanted: PythonFilter, properties: dict[str, str], body: str, *, is_judged: bool
) -> tuple[str, bool | None]:
    """The level of isolation, and whether the filter matches the message."""
    from sprocket.filterserver.exchange import FilterInput, batch
    from sprocket.filterserver.process import FilterProcess, ProcessLimits, ProcessLost
    from sprocket.message.properties import encode

    process = await FilterProcess.start(ProcessLimits(must_be_confined=False))
    try:
        fault = await process.load(wanted.name.rpartition(".")[2], wanted.source or b"")
        if fault is not None:
            raise SubscriptionInvalid(f"filter {wanted.name}: {fault}")
        if not is_judged:
            return process.level, None
        now_ms = int(time.time() * 1000)
        part = FilterInput(0, now_ms, now_ms, 0, encode(properties).encode(), body.encode())
        verdicts = await process.judge(batch("topic", 0, [part]), 1)
        if verdicts.fault is not None:
            raise FilterFailed(f"filter {wanted.name}: {verdicts.fault}")
        return process.level, verdicts.wanted[0]
    except ProcessLost as error:
        raise FilterFailed(f"filter {wanted.name}: {error}") from error
    finally:
        await process.kill()


@command(
    app,
    "upload",
    "sprocket filter upload cheap.py --group billing --topic orders",
    "sprocket filter upload cheap.py -g billing -t orders --again",
)
def upload(
    file: File,
    group: GroupOption,
    topic: TopicOption,
    name: Name = None,
    again: Annotated[
        bool, typer.Option("--again", help="Switch it on again if failures switched it off.")
    ] = False,
    secret: Secret = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 30.0,
) -> None:
    """Uploads a filter to all brokers, which try it first. The newest version is used.

    Consumers use it with code=PythonFilter(None, NAME), or upload it themselves.
    """
    from sprocket.admin import filters

    wanted = _filter_of(file, name, secret)
    target = filters.FilterTarget(group, topic, wanted.name)
    now_ms = int(time.time() * 1000)

    async def question(caller: Caller) -> dict[str, str]:
        return await filters.upload(caller, target, wanted, now_ms=now_ms, is_again=again)

    for broker, version in ask(nameserver, timeout, question).items():
        facts = {"broker": broker, "filter": wanted.name, "version": version}
        render.json(facts) if as_json else typer.echo(f"{broker}: {wanted.name}@{version}")


@command(app, "list", "sprocket filter list", "sprocket filter list --group billing --json")
def list_filters(
    group: Annotated[
        str | None,
        typer.Option("--group", "-g", metavar="GROUP", help="Only filters of this group."),
    ] = None,
    nameserver: NameServers = NAMESERVER,
    as_json: Json = False,
    timeout: Timeout = 5.0,
) -> None:
    """Lists filters at all brokers: versions, state, and how many messages they checked."""
    import msgspec

    from sprocket.admin import filters, known

    async def question(caller: Caller) -> dict[str, list[FilterFacts]]:
        found = await filters.listed(caller, group)
        if group is not None and not any(found.values()):
            await known.check_group(caller, group)
        return found

    found = ask(nameserver, timeout, question)
    rows = [(broker, each) for broker, those in found.items() for each in those]
    if as_json:
        for broker, each in rows:
            render.json({"broker": broker, **msgspec.to_builtins(each)})
        return
    render.table(
        ("broker", "group", "topic", "filter", "newest", "checked", "matched", "state"),
        (
            (
                broker, each.group, each.topic, f"{each.name}@{each.version}", each.is_newest,
                each.judged, each.wanted, _state(each),
            )
            for broker, each in rows
        ),
    )  # fmt: skip


def _state(each: FilterFacts) -> str:
    if each.off:
        return f"off: {each.off}"
    return "running" if each.is_running else "idle"


@command(app, "remove", "sprocket filter remove cheap --group billing --topic orders")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the filter.")],
    group: GroupOption,
    topic: TopicOption,
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="Only this version.")
    ] = None,
    secret: Secret = None,
    yes: Yes = False,
    nameserver: NameServers = NAMESERVER,
    timeout: Timeout = 5.0,
) -> None:
    """Removes a filter from all brokers. Consumers that use it get no more messages."""
    from sprocket.admin import filters

    confirm(f"Remove filter {name} of group {group}?", yes=yes)
    now_ms = int(time.time() * 1000)

    async def question(caller: Caller) -> list[str]:
        return await filters.remove(
            caller,
            filters.FilterTarget(group, topic, name),
            now_ms=now_ms,
            version=version,
            secret=secret,
        )

    for broker in ask(nameserver, timeout, question):
        typer.echo(f"{broker}: removed")
