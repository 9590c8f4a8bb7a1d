"""The options of the demo of failover, its table, and its exit codes."""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from sprocket.base.errors import SprocketError
from sprocket.demo.cluster.load import ClusterLoad
from sprocket.demo.cluster.observer import GroupObserver
from sprocket.demo.cluster.servers import ClusterServers
from sprocket.demo.cluster.trials import TrialResult, Trials
from sprocket.runtime.process import INTERRUPTED, run

FAILED = 1


def command(
    brokers: Annotated[int, typer.Option(min=2, max=5, help="Brokers of the group.")] = 3,
    senders: Annotated[
        int, typer.Option(min=1, max=256, help="Senders, each with one message in flight.")
    ] = 8,
    role: Annotated[
        str,
        typer.Option(
            help="SYNC_MASTER: a send is answered when all copies in sync have the message; "
            "ASYNC_MASTER: when the master has it."
        ),
    ] = "SYNC_MASTER",
    lease: Annotated[
        int, typer.Option(min=500, max=60_000, help="The master's lease, in ms.")
    ] = 3_000,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PART.NAME=VALUE", help="A further setting of all brokers; again."
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="Folder of all data, kept; by default a temporary one.")
    ] = None,
) -> None:
    """Starts etcd, two name servers and a group of brokers; breaks them, and measures."""
    logging.basicConfig(level=logging.CRITICAL, format="%(message)s")
    settings = [f"broker.role={role}", f"broker.lease_ms={lease}", *(setting or ())]
    folder = store or Path(tempfile.mkdtemp(prefix="sprocket-cluster-"))
    folder.mkdir(parents=True, exist_ok=True)
    code = demonstrate(folder, Console(), brokers=brokers, senders=senders, settings=settings)
    if store is None and code == 0:
        shutil.rmtree(folder)
    sys.exit(code)


def demonstrate(
    folder: Path, console: Console, *, brokers: int, senders: int, settings: Sequence[str]
) -> int:
    """Runs the demo, prints its result, and returns the exit code: 1 if a message was lost."""

    async def whole() -> int:
        servers = ClusterServers(folder, brokers=brokers, settings=settings)
        load, observer = ClusterLoad(), GroupObserver(servers.nameserver_list)
        with console.status("starting etcd, two name servers and the brokers") as status:
            async with (
                servers,
                observer.running(),
                load.running(servers.nameserver_list, senders=senders),
            ):
                trials = Trials(servers, load, observer, status.update)
                await trials.ready()
                results = await trials.all()
                status.update("consuming the rest")
        console.print(_table(results))
        lost = sum(each.lost for each in results)
        if lost:
            console.print(f"[red]{lost} acknowledged messages were lost[/]; logs are in {folder}")
        return FAILED if lost else 0

    try:
        code = run(whole())
    except (SprocketError, OSError) as error:
        console.print(f"[red]failed:[/] {error}", highlight=False, soft_wrap=True)
        console.print(f"logs are in {folder}", highlight=False, soft_wrap=True)
        return FAILED
    if code == INTERRUPTED:
        console.print(f"stopped; everything is closed, and the logs are in {folder}")
    return code


def _table(results: Sequence[TrialResult]) -> Table:
    table = Table(title="a group of brokers, broken", box=box.SIMPLE_HEAD, padding=0)
    table.add_column("what happens", no_wrap=True)
    for heading in (
        "no send\naccepted", "acknow-\nledged", "lost", "twice", "failed\nsends", "offsets\nback",
        "in sync\nafter",
    ):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    for each in results:
        back = each.setback
        table.add_row(
            each.name,
            f"{each.pause:.2f} s",
            f"{each.acknowledged:,}",
            f"{each.lost:,}",
            f"{each.doubled:,}",
            f"{each.failed:,}",
            f"{back.seconds:.1f} s",
            f"{each.in_sync:.1f} s",
        )
    return table


def main() -> None:
    """Runs the command line and exits."""
    typer.run(command)
