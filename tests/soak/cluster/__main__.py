"""`python -m tests.soak.cluster --faults 100`: breaks a group of brokers under load, and reports.

Three brokers with three servers of etcd (or, with `--mixed`, a broker of Java's and one of ours
under RocketMQ's controller) are killed, stand still and end, by seed. Nothing that was acknowledged
may be lost, the group must accept sends after each fault, all logs must be equal in the end, and no
process may be left.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from sprocket.demo.cluster.observer import GroupObserver
from tests.soak.cluster.faults import FaultCost, FaultSeries, PacedLoad, by_kind
from tests.soak.cluster.groups import ControllerGroup, EtcdGroup, SoakGroup

_SENDERS = 4
_REST_SECONDS = 60.0


def main() -> int:
    """Runs it; 0 if all that must hold holds."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.cluster", description=__doc__)
    parser.add_argument("--faults", type=int, default=100, help="how many (100)")
    parser.add_argument("--key-faults", type=int, help="of these, on etcd or the controller (15%%)")
    parser.add_argument("--mixed", action="store_true", help="a broker of Java's and one of ours")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the faults")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-cluster-"))
    console = Console()
    console.print(f"{asked.faults} faults, seed {asked.seed}, {os.cpu_count()} cores, in {folder}")
    group = ControllerGroup(folder) if asked.mixed else EtcdGroup(folder)
    usual = 0 if asked.mixed else asked.faults * 15 // 100
    on_keys = usual if asked.key_faults is None else asked.key_faults
    dice = random.Random(asked.seed)
    wrong = asyncio.run(_soak(group, console, dice, count=asked.faults, on_keys=on_keys))
    for each in wrong:
        console.print(f"[red]{each}[/]")
    if asked.keep or wrong:
        console.print(f"all logs are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


async def _soak(
    group: SoakGroup, console: Console, dice: random.Random, *, count: int, on_keys: int
) -> list[str]:
    """Makes the faults, prints what they cost, and returns what is wrong."""
    load, observer = PacedLoad(), GroupObserver(group.nameservers)
    series = FaultSeries(group, load, observer, dice)
    wrong, brokers = [], len(group.brokers)
    async with (
        group.running(),
        observer.running(),
        load.running(group.nameservers, senders=_SENDERS),
    ):
        if not await observer.in_sync(brokers, _REST_SECONDS):
            return ["the brokers did not come into sync at first"]
        columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn()
        with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
            shown = bar.add_task("faults", total=count)

            def show(cost: FaultCost) -> None:
                words = f"{cost.name}: no send accepted for {cost.pause:.2f} s"
                bar.update(shown, advance=1, description=words)

            await series.make(count, on_keys=on_keys, on_cost=show)
        if not series.stuck and not await observer.in_sync(brokers, _REST_SECONDS):
            wrong.append(f"not all are in sync {_REST_SECONDS:g} s after the last fault")
        lost = await load.all_consumed(_REST_SECONDS)
    console.print(_table(series))
    twice = sum(times - 1 for times in load.consumed.values())
    console.print(
        f"{len(load.acknowledged):,} acknowledged, {len(lost)} lost, {twice:,} consumed again, "
        f"{load.failed:,} sends failed"
    )
    wrong += series.stuck
    wrong += [f"{name} did not end in order" for name in series.unended]
    wrong += [f"acknowledged and lost: {len(lost)}, such as {lost[:5]}"] if lost else []
    wrong += [f"{each.name} is alive" for each in (*group.brokers, *group.keys) if each.is_alive]
    return wrong + differences(group.stores)


def differences(stores: list[Path]) -> list[str]:
    """Where the logs of two stores differ; a log ends at its last byte that is not zero."""
    logs = [_log(store) for store in stores]
    return [
        f"the logs of {stores[0].name} and {store.name} differ: {len(logs[0])} and {len(other)} B"
        for store, other in itertools.islice(zip(stores, logs, strict=True), 1, None)
        if other != logs[0]
    ]


def _log(store: Path) -> bytes:
    files = sorted(each for each in (store / "commitlog").iterdir() if each.name.isdigit())
    return b"".join(each.read_bytes() for each in files).rstrip(b"\0")


def _table(series: FaultSeries) -> Table:
    table = Table("fault", "times", "no send accepted: median", "longest", "offsets back")
    for name, times, median, longest, back in by_kind(series.costs):
        words = f"{back.messages} messages, {back.seconds:.1f} s"
        table.add_row(name, str(times), f"{median:.2f} s", f"{longest:.2f} s", words)
    return table


if __name__ == "__main__":
    sys.exit(main())
