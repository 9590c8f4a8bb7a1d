"""What a client that floods costs another one: its sends beside the flood, and the same alone.

One client sends 64 B every 5 ms over its own connection; the flood is sends of 256 B, as many as
the broker takes. Both are processes of their own. Where it is permitted, broker and clients have
real-time priority while they are measured, so that what else the machine does is not in the
figures. The runs are short, since on two cores nothing else has its turn meanwhile. The slowest
hundredth is that of all rounds together, the beginnings of floods among them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.brokers import Node, create_topic, sprocket_node
from bench.figures import cpu_seconds
from bench.innocent import TOPIC as INNOCENT
from bench.load import drive, frame, send_fields

_TOPIC = "BenchFlood"
#: Connections, and sends in flight on each.
FLOODS = ((1, 64), (1, 256), (4, 64), (64, 8))
_SENDS = 40_000
_ALONE_SECONDS = 0.6
#: Real-time priorities: the modest client asks at the time it means to.
_PRIORITY, _MODEST_PRIORITY = 20, 30


@contextlib.contextmanager
def _urgent(priorities: dict[int, int]) -> Iterator[None]:
    """Real-time priority for some processes, if this one may set it."""
    with contextlib.suppress(OSError):
        for pid, priority in priorities.items():
            os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(priority))
    try:
        yield
    finally:
        for pid in priorities:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


def measure(node: Node, flood: tuple[int, int] | None) -> tuple[list[float], float]:
    """The seconds that each send of the modest client waits, and the broker's CPU for each send of
    the flood."""
    requests = [frame(310, send_fields(_TOPIC, number), b"x" * 256) for number in range(4)]
    command = [sys.executable, "-m", "bench.innocent", str(node.broker_port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as modest:
        assert modest.stdout is not None
        modest.stdout.readline()
        ranks = {modest.pid: _MODEST_PRIORITY, node.pid: _PRIORITY, 0: _PRIORITY}
        with _urgent(ranks):
            cpu = cpu_seconds(node.pid)
            if flood is None:
                time.sleep(_ALONE_SECONDS)
            else:
                connections, each = flood
                drive(
                    node.broker_port, requests,
                    total=_SENDS, connections=connections, in_flight=connections * each,
                )  # fmt: skip
            spent = cpu_seconds(node.pid) - cpu
            written, _ = modest.communicate("")
    return json.loads(written), spent / _SENDS


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table."""
    waits: dict[tuple[int, int] | None, list[float]] = {each: [] for each in (None, *FLOODS)}
    costs: dict[tuple[int, int] | None, list[float]] = {each: [] for each in waits}
    with sprocket_node(folder) as node:
        for topic, queues in ((INNOCENT, 8), (_TOPIC, 4)):
            create_topic(node, topic, queues)
        measure(node, FLOODS[0])
        for _ in range(1 if quick else rounds):
            for flood in waits:
                time.sleep(1.0)
                seen, cost = measure(node, flood)
                waits[flood] += seen
                costs[flood].append(cost)
    table = Table(
        "flood, connections × in flight", "p50, ms", "p90, ms", "p99, ms", "p99 × alone", "sends",
        "broker CPU, µs/send of the flood", title="a modest client beside a flood",
    )  # fmt: skip
    alone = _part(waits[None], 99)
    for flood, seen in waits.items():
        name = "nothing else" if flood is None else f"{flood[0]} × {flood[1]}"
        shares = [f"{_part(seen, share) * 1e3:.2f}" for share in (50, 90, 99)]
        cost = "" if flood is None else f"{sorted(costs[flood])[len(costs[flood]) // 2] * 1e6:.2f}"
        table.add_row(name, *shares, f"{_part(seen, 99) / alone:.1f}", str(len(seen)), cost)
    console.print(table)


def _part(waits: list[float], share: int) -> float:
    return sorted(waits)[len(waits) * share // 100]
