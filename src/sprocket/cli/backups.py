"""`sprocket backup` and `sprocket restore`: a store's backup, made while a broker has it open."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import UsageError
from sprocket.cli import render
from sprocket.cli.asking import run
from sprocket.cli.options import ConfigFile, Json, Set
from sprocket.cli.times import moment, start_at

if TYPE_CHECKING:
    from sprocket.store.backup.restoring import CheckedBackup
    from sprocket.store.config import StoreConfig

FOUND_SOMETHING = 1

BACKUP_EXAMPLES = (
    "sprocket backup sprocket-data --to /backup/broker-a",
    "sprocket backup /data/store --to /backup/broker-a --config broker.conf --json",
)
RESTORE_EXAMPLES = (
    "sprocket restore /backup/broker-a --check",
    "sprocket restore /backup/broker-a --to sprocket-data",
    "sprocket restore /backup/broker-a --to again --at '2030-01-31 08:00'",
)


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the store.")],
    to: Annotated[
        Path,
        typer.Option("--to", metavar="BACKUP", help="Folder of the backup; made if it is missing."),
    ],
    config: ConfigFile = None,
    given: Set = None,
    as_json: Json = False,
) -> None:
    """Copies a broker's store, also while the broker runs; again: what has come since.

    All messages that were acknowledged before it began are in it. Each time a state is kept, to
    which `sprocket restore --at` can go back. The exit code is 1 if parts of the log are damaged.
    """
    from sprocket.runtime.disk import SystemDisk
    from sprocket.store.backup.making import back_up

    source, target = _path(folder), _path(to)
    if target == source or target.startswith(f"{source}/") or source.startswith(f"{target}/"):
        raise UsageError("a backup is not in the store's own folder, nor around it")
    with render.progress("bytes") as advance:
        made = run(
            back_up(
                SystemDisk(), source, target, _settings(config, given),
                now_ms=_now_ms(), advance=advance,
            )
        )  # fmt: skip
    if as_json:
        facts = made._asdict()
        render.json({**facts, "damaged": [str(each) for each in made.damaged]})
    else:
        for each in made.damaged:
            typer.echo(f"FAULT log: {each}")
        typer.echo(
            f"{made.copied_bytes} bytes copied; the backup has log offsets {made.start} to "
            f"{made.end} and {made.states} states"
        )
    if made.damaged:
        raise typer.Exit(FOUND_SOMETHING)


def restore(
    folder: Annotated[Path, typer.Argument(metavar="BACKUP", help="The folder of the backup.")],
    to: Annotated[
        Path | None, typer.Option("--to", metavar="DIR", help="Folder of the new store.")
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Only what was stored until then."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the backup and list its states.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Move a folder aside that is not empty.")
    ] = False,
    config: ConfigFile = None,
    given: Set = None,
    as_json: Json = False,
) -> None:
    """Makes a store from a backup, after comparing all of it with its checksums.

    The broker's first start builds queues and key index from the log.
    """
    from sprocket.runtime.disk import SystemDisk
    from sprocket.store.backup import restoring

    if (to is None) != check:
        raise UsageError("give --to DIR, or --check")
    at_ms = None if at is None else start_at(at, _now_ms())
    if isinstance(at_ms, str):
        raise UsageError("--at takes a time, like '2030-01-31 08:00', or 15m (ago)")
    disk, source = SystemDisk(), _path(folder)
    with render.progress("bytes") as advance:
        if to is None:
            found = run(restoring.check_backup(disk, source, at_ms=at_ms, advance=advance))
            _show(found, as_json=as_json, moved_to=None)
            return
        done = run(
            restoring.restore(
                disk, source, _path(to), _settings(config, given),
                now_ms=_now_ms(), at_ms=at_ms, replaces=yes, advance=advance,
            )
        )  # fmt: skip
    _show(done.found, as_json=as_json, moved_to=done.moved_to)


def _show(found: CheckedBackup, *, as_json: bool, moved_to: str | None) -> None:
    states = [
        {"taken_ms": each.taken_ms, "log_start": each.start, "log_end": each.end}
        for each in found.manifest.states
    ]
    if as_json:
        render.json(
            {
                "records": found.records,
                "log_start": found.state.start,
                "log_end": found.end,
                "stored_ms": found.stored_ms,
                "state_taken_ms": found.state.taken_ms,
                "moved_to": moved_to or None,
                "states": states,
            }
        )
        return
    if moved_to is None:
        render.table(
            ("STATE OF", "LOG START", "LOG END"),
            [(moment(each.taken_ms), each.start, each.end) for each in found.manifest.states],
        )
    elif moved_to:
        typer.echo(f"what was there is in {moved_to}")
    last = f", the last one stored {moment(found.stored_ms)}" if found.records else ""
    typer.echo(
        f"{found.records} records{last}; the log ends at {found.end}; tables and positions of "
        f"{moment(found.state.taken_ms)}"
    )


def _settings(config: Path | None, given: list[str] | None) -> StoreConfig:
    from sprocket.broker.config import BrokerConfig
    from sprocket.cli import loading
    from sprocket.nameserver.config import NameServerConfig
    from sprocket.store.config import StoreConfig

    kinds: list[type] = [BrokerConfig, StoreConfig, NameServerConfig]
    return loading.settings(kinds, file=config, given=given).of(StoreConfig)


def _path(folder: Path) -> str:
    return str(folder.resolve()).rstrip("/")


def _now_ms() -> int:
    return int(time.time() * 1000)
