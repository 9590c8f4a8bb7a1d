"""`sprocket container`: the brokers that a folder has, and another number of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sprocket.base.errors import DirectoryInUse, UsageError
from sprocket.cli import loading, render
from sprocket.cli.containers import PROCESSES_MAX
from sprocket.cli.loading import Program
from sprocket.cli.options import ConfigFile, Json, Set, Yes, command, confirm

if TYPE_CHECKING:
    from sprocket.base.ports import DirectoryLock
    from sprocket.container.remembered import BrokerEntry, ContainerFile
    from sprocket.runtime.disk import SystemDisk

app = typer.Typer(help="The brokers of --processes: list them, have more or fewer.")

Store = Annotated[
    Path | None,
    typer.Option("--store", "-s", metavar="DIR", help="Folder of all data."),
]


@command(app, "list", "sprocket container list --store /var/lib/sprocket")
def show(
    store: Store = None, config: ConfigFile = None, given: Set = None, as_json: Json = False
) -> None:
    """Lists the brokers that a folder has."""
    file, _, _ = _opened(store, config, given)
    state = file.load()
    if state is None:
        raise UsageError(f"{file.root} is no folder of several brokers")
    rows = [(each.name, each.folder, _state(each)) for each in state.brokers]
    rows += [(each.name, each.config, "was added") for each in state.added]
    if as_json:
        for name, place, what in rows:
            render.json({"broker": name, "place": place, "state": what})
        return
    render.table(("broker", "folder", "state"), rows)


@command(
    app,
    "resize",
    "sprocket container resize --store /var/lib/sprocket --processes 8",
    "sprocket container resize --config broker.conf --processes 2 --yes",
)
def resize(
    processes: Annotated[
        int,
        typer.Option(
            "--processes", metavar="N", min=1, max=PROCESSES_MAX, help="How many brokers."
        ),
    ],
    store: Store = None,
    config: ConfigFile = None,
    given: Set = None,
    force: Annotated[
        bool, typer.Option("--force", help="Remove brokers although messages remain in them.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Says what another number of brokers means, and makes it; the brokers must not run.

    More brokers are empty at first. Fewer take two steps: the last ones take no more messages; once
    consumers have the rest, the same command removes them.
    """
    from sprocket.container.remembered import share_users, users_in
    from sprocket.container.resizing import resized

    file, disk, name = _opened(store, config, given)
    lock = _locked(file, disk)
    try:
        change = resized(
            file.load(),
            processes,
            name=name,
            is_there=lambda folder: bool(disk.names(f"{file.root}/{folder}")),
            may_leave_messages=force,
        )
        for line in change.lines:
            typer.echo(f"{line}.")
        confirm(f"Change {file.root}?", yes=yes)
        users = users_in(disk, f"{file.root}/{change.after.brokers[0].folder}")
        for entry in change.added:
            if users is not None:  # else a new broker would be open to others
                share_users(disk, users, f"{file.root}/{entry.folder}")
        file.save(change.after)
        typer.echo(f"Start it with --processes {change.after.count}.")
    finally:
        lock.release()


def _opened(
    store: Path | None, config: Path | None, given: list[str] | None
) -> tuple[ContainerFile, SystemDisk, str]:
    """The file of a container, the disk, and the name of its brokers."""
    from sprocket.broker.config import BrokerConfig
    from sprocket.container.remembered import ContainerFile
    from sprocket.runtime.disk import SystemDisk
    from sprocket.store.config import StoreConfig

    loaded = loading.settings(
        loading.kinds_of(Program.BROKER),
        file=config,
        given=given,
        overrides={"store.path": None if store is None else os.path.abspath(store)},
    )
    disk = SystemDisk()
    root = os.path.abspath(loaded.of(StoreConfig).path)
    return ContainerFile(disk, root), disk, loaded.of(BrokerConfig).name


def _locked(file: ContainerFile, disk: SystemDisk) -> DirectoryLock:
    """Keeps the brokers from being started meanwhile.

    Raises:
        UsageError: they run, or the folder has no messages.
    """
    from sprocket.container.remembered import has_store

    is_single = file.load() is None
    if is_single and not has_store(disk, file.root):
        raise UsageError(f"{file.root} has no broker yet: start it with --processes N")
    try:
        if is_single:
            disk.lock(file.root).release()
        disk.make_directory(file.folder)
        return disk.lock(file.folder)
    except DirectoryInUse:
        raise UsageError(f"{file.root} is in use: stop its brokers first") from None


def _state(entry: BrokerEntry) -> str:
    if not entry.leaves:
        return "serves"
    return "leaves, nothing is left" if entry.drained else "leaves"
