"""`python -m tests.soak --minutes 5`: lets a cluster of processes live through kills, and reports.

Two brokers and a name server, four consumers that are members of two groups each (one of them
ordered), two producers. Consumers and brokers are killed, stopped for a while, or ended in order,
and started again, at random. At the end nothing may be lost and nothing out of order.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

from tests.soak.director import Director
from tests.soak.judge import told

#: Seconds after the last fault in which all must be consumed.
_QUIET_SECONDS_MAX = 150.0


def main() -> int:
    """Runs it; 0 if nothing was lost and nothing was out of order."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long faults go on (5)")
    parser.add_argument("--rate", type=float, default=100.0, help="messages a second of a producer")
    parser.add_argument("--flush", choices=["ASYNC_FLUSH", "SYNC_FLUSH"], default="ASYNC_FLUSH")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the faults")
    parser.add_argument("--report", type=Path, help="where the report goes as JSON")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    asked = parser.parse_args()
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    console.print(f"{asked.minutes:g} min, seed {asked.seed}, {os.cpu_count()} cores, in {folder}")
    director = Director(folder, rate=asked.rate, flush=asked.flush)
    try:
        report = _run(director, console, minutes=asked.minutes, dice=random.Random(asked.seed))
    finally:
        director.end()
    report |= {"seed": asked.seed, "minutes": asked.minutes, "flush": asked.flush}
    _show(report, console)
    if asked.report:
        asked.report.write_text(json.dumps(report, indent=2))
    is_good = all(
        not each["lost"] and not each["unordered"] and not each["overlapping"]
        for each in report["groups"].values()
    )
    if asked.keep or not is_good:
        console.print(f"all logs are in {folder}")
    else:
        shutil.rmtree(folder)
    return 0 if is_good else 1


def _run(director: Director, console: Console, *, minutes: float, dice: random.Random) -> dict:  # type: ignore[type-arg]
    director.begin()
    director.settle(30.0)
    began = time.monotonic()
    until = began + minutes * 60
    with Live(_table(director, began), console=console, auto_refresh=False) as live:
        while time.monotonic() < until:
            director.step(dice)
            live.update(_table(director, began), refresh=True)
            time.sleep(0.5)
        ended = time.monotonic()
        director.clear_up()
        director.stop_producers()
        give_up = time.monotonic() + _QUIET_SECONDS_MAX
        while not director.is_done and time.monotonic() < give_up:
            director.look()
            live.update(_table(director, began), refresh=True)
            time.sleep(0.5)
    quiet = time.monotonic() - ended
    director.end()
    director.look()
    return {
        "groups": told(director.judge.figures(since=began, until=ended)),
        "faults": dict(sorted(director.faults.items())),
        "memory_mib": director.memory(),
        "seconds_to_come_to_rest": round(quiet, 1),
    }


def _table(director: Director, began: float) -> Table:
    table = Table(title=f"{time.monotonic() - began:.0f} s: {director.last_fault}")
    for heading in ("group", "sent", "acknowledged", "of these consumed"):
        table.add_column(heading, justify="right")
    for kind, (sent, acknowledged, consumed) in director.judge.counts.items():
        table.add_row(kind, f"{sent:,}", f"{acknowledged:,}", f"{consumed:,}")
    return table


def _show(report: dict, console: Console) -> None:  # type: ignore[type-arg]
    table = Table("figure", *report["groups"])
    names = [name for name in next(iter(report["groups"].values())) if name != "lost_keys"]
    for name in names:
        cells = [f"{group[name]:,}" for group in report["groups"].values()]
        table.add_row(name.replace("_", " "), *cells)
    console.print(table)
    faults = ", ".join(f"{name} {count}" for name, count in report["faults"].items())
    console.print(f"faults: {faults}")
    memory = Table("process", "MiB at first", "MiB at most", "MiB in the end", title="memory")
    for name, sizes in report["memory_mib"].items():
        memory.add_row(name, *(f"{size:.0f}" for size in sizes))
    console.print(memory)
    console.print(f"at rest {report['seconds_to_come_to_rest']} s after the last fault")


if __name__ == "__main__":
    sys.exit(main())
