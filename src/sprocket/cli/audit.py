"""`sprocket audit`: who changed what, by the files of this machine's servers or by a topic."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import loading, render
from sprocket.cli.asking import ask
from sprocket.cli.options import NAMESERVER, ConfigFile, Json, NameServers, Timeout, command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sprocket.audit.entries import AuditEntry

app = typer.Typer(help="The audit log: who changed what.")


@command(
    app,
    "show",
    "sprocket audit show /var/lib/sprocket/audit --since 1h",
    "sprocket audit show --config broker.conf --topic orders",
    "sprocket audit show --user alice --failed --json",
    "sprocket audit show --from audit-log --since 1d",
)
def show(
    place: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]",
            help="Folder or file of the audit log. By default where the settings say.",
        ),
    ] = None,
    from_topic: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TOPIC",
            help="Read this audit topic of the brokers (auditLogTopic) instead of files.",
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Only from this time on, or 15m for 15 minutes ago."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only before this time.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="Only changes by this user.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", metavar="NAME", help="Only what names this topic, group or user."),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only requests that were refused or failed.")
    ] = False,
    config: ConfigFile = None,
    as_json: Json = False,
    nameservers: NameServers = NAMESERVER,
    timeout: Timeout = 10.0,
) -> None:
    """Prints the audit log, the oldest change first."""
    from sprocket.audit.reading import concerns

    is_in_time = _between(since, until)
    found = (
        each
        for each in _entries(place, config, from_topic, nameservers, timeout)
        if is_in_time(each)
        and (user is None or each.user == user)
        and (topic is None or concerns(each, topic))
        and not (failed and not each.result)
    )
    if as_json:
        for each in found:
            render.json(each)
        return
    render.table(
        ("time", "server", "user", "address", "request", "names", "result"), map(_row, found)
    )


def _between(since: str | None, until: str | None) -> Callable[[AuditEntry], bool]:
    from sprocket.audit.entries import time_text
    from sprocket.cli.times import between

    first_ms, end_ms = between(since, until)
    first = time_text(first_ms) if since is not None else ""
    end = time_text(end_ms) if until is not None else "~"
    return lambda entry: first <= entry.time < end


def _entries(
    place: Path | None, config: Path | None, topic: str | None, nameservers: str, timeout: float
) -> Iterable[AuditEntry]:
    from sprocket.audit.reading import entries_in

    if topic is None:
        return entries_in(place or _place(config))
    if place is not None:
        raise UsageError("the entries are read from PATH or --from a topic, not from both")
    return _in_topic(topic, nameservers, timeout)


def _in_topic(topic: str, nameservers: str, timeout: float) -> list[AuditEntry]:
    from sprocket.admin import audits

    return ask(nameservers, timeout, lambda caller: audits.entries(caller, topic))


def _place(config: Path | None) -> Path:
    """The folder that the settings name."""
    from sprocket.audit.config import AuditConfig
    from sprocket.store.config import StoreConfig

    loaded = loading.settings(loading.kinds(), file=config)
    return Path(loaded.of(AuditConfig).path or os.path.join(loaded.of(StoreConfig).path, "audit"))


def _row(entry: AuditEntry) -> tuple[str, ...]:
    from sprocket.protocol.codes import response_name

    named = " ".join(f"{name}={_plain(value)}" for name, value in entry.named.items())
    times = f" ({entry.times} times)" if entry.times > 1 else ""
    result = "no reply" if entry.result < 0 else response_name(entry.result)
    return (
        entry.time,
        entry.server,
        entry.user or "-",
        entry.address or "-",
        entry.request + times,
        named if named.isprintable() else ascii(named),
        result,
    )


def _plain(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
