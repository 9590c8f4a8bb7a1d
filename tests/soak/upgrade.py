"""`python -m tests.soak.upgrade --from COMMIT`: a rolling upgrade under load, with a report.

Two name servers and a group of three brokers with etcd run the code of an older commit, while
messages are sent and consumed with the present code. Then each server is stopped in order and
started with the present code: the name servers, the brokers that follow, and the master last, which
hands over. With `--back` the upgrade is undone in the same way. Nothing that was acknowledged may
be lost, sends must go on after each step, and all logs must be equal in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from sprocket.demo.cluster.observer import GroupObserver, Setback
from sprocket.demo.cluster.servers import ClusterServers, ServerProcess
from tests.soak.cluster.__main__ import differences
from tests.soak.cluster.faults import PacedLoad

ROOT = Path(__file__).resolve().parent.parent.parent
_BROKERS = 3
_SENDERS = 4
_SECONDS_MAX = 90.0
#: The load between two steps, s.
_BETWEEN = 2.0


class StepCost(NamedTuple):
    """What a step did.

    Attributes:
        name: the server, what it was, and the code that it runs from now on.
        pause: for how long no send was acknowledged, s.
        failed: how many attempts of a send failed, as a program without retries would see it.
        setback: how far committed offsets went back.
    """

    name: str
    pause: float
    failed: int
    setback: Setback


class RunningServers(ClusterServers):
    """Servers of which each can be started again with other code."""

    def code(self, server: ServerProcess, source: Path) -> None:
        """Has a server run the code of a folder from its next start on."""
        command = server._command
        if command[0] == "env":
            command = command[2:]
        server._command = ["env", f"PYTHONPATH={source}", *command]


def checked_out(commit: str, folder: Path) -> Path:
    """The folder `src` of a commit."""
    packed = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def name_of(commit: str) -> str:
    """A commit's short name and date."""
    asked = ["git", "show", "--no-patch", "--format=%h of %cs", commit]
    return subprocess.run(
        asked, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


class RollingUpgrade:
    """Goes through all servers, one by one.

    Attributes:
        costs: of the steps so far.
        wrong: what did not hold.
    """

    def __init__(self, servers: RunningServers, load: PacedLoad, observer: GroupObserver) -> None:
        self._servers, self._load, self._observer = servers, load, observer
        self.costs: list[StepCost] = []
        self.wrong: list[str] = []

    async def run(self, source: Path, words: str) -> None:
        """Has all servers run the code of a folder."""
        async for server, role in self._in_order():
            await self._step(server, source, f"{role} {words}")
            if self.wrong:
                return

    async def _in_order(self) -> AsyncIterator[tuple[ServerProcess, str]]:
        for each in self._servers.nameservers:
            yield each, "name server"
        master = await self._observer.master()
        for each in self._servers.brokers:
            if each.address != master:
                yield each, "broker that follows"
        for each in self._servers.brokers:
            if each.address == master:
                yield each, "master"

    async def _step(self, server: ServerProcess, source: Path, name: str) -> None:
        began, failed = time.monotonic(), self._load.failed
        self._observer.setback = Setback()
        await server.stop()
        self._servers.code(server, source)
        await server.start()
        if not await self._load.accepted_after(time.monotonic(), _SECONDS_MAX):
            self.wrong.append(f"no send is accepted after: {name}")
        elif not await self._observer.in_sync(_BROKERS, _SECONDS_MAX):
            self.wrong.append(f"not all brokers are in sync after: {name}")
        await asyncio.sleep(_BETWEEN)
        pause = self._load.longest_pause(began, time.monotonic())
        self.costs.append(StepCost(name, pause, self._load.failed - failed, self._observer.setback))


async def rolled(folder: Path, old: Path, new: Path, console: Console, *, back: bool) -> list[str]:
    """Upgrades, prints what it cost, and returns what is wrong."""
    settings = [
        "broker.role=SYNC_MASTER",
        "broker.replication_start=first",
        "store.log_file_bytes=16777216",  # all of it is compared in the end
    ]
    servers = RunningServers(folder, brokers=_BROKERS, settings=settings)
    for each in (*servers.nameservers, *servers.brokers):
        servers.code(each, old)
    load, observer = PacedLoad(), GroupObserver(servers.nameserver_list)
    upgrade = RollingUpgrade(servers, load, observer)
    async with (
        servers,
        observer.running(),
        load.running(servers.nameserver_list, senders=_SENDERS),
    ):
        if not await observer.in_sync(_BROKERS, _SECONDS_MAX):
            return ["the brokers did not come into sync at first"]
        await asyncio.sleep(_BETWEEN)
        await upgrade.run(new, "to the present code")
        if back and not upgrade.wrong:
            await upgrade.run(old, "back to the older code")
        lost = await load.all_consumed(_SECONDS_MAX)
    console.print(_table(upgrade.costs))
    twice = sum(times - 1 for times in load.consumed.values())
    console.print(
        f"{len(load.acknowledged):,} acknowledged, {len(lost)} lost, {twice:,} consumed again, "
        f"{load.failed:,} sends failed"
    )
    wrong = upgrade.wrong + ([f"acknowledged and lost: {lost[:5]}"] if lost else [])
    return wrong + differences([folder / f"broker-{number + 1}" for number in range(_BROKERS)])


def _table(costs: Sequence[StepCost]) -> Table:
    table = Table("step", "no send accepted for", "sends failed", "offsets back")
    for each in costs:
        back = f"{each.setback.messages} messages"
        table.add_row(each.name, f"{each.pause:.2f} s", str(each.failed), back)
    return table


def main() -> int:
    """Runs it; 0 if all that must hold holds."""
    parser = argparse.ArgumentParser(prog="make upgrade", description=__doc__)
    parser.add_argument("--from", dest="commit", required=True, help="the older code")
    parser.add_argument("--back", action="store_true", help="undo it afterwards")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="upgrade-"))
    console = Console()
    old = checked_out(asked.commit, folder / "old")
    console.print(
        f"from {name_of(asked.commit)} to the tree on {name_of('HEAD')}, {os.cpu_count()} cores, "
        f"in {folder}"
    )
    wrong = asyncio.run(rolled(folder, old, ROOT / "src", console, back=asked.back))
    for each in wrong:
        console.print(f"[red]{each}[/]")
    if asked.keep or wrong:
        console.print(f"all logs are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
