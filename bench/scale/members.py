"""Large groups, and many groups: what joining and leaving costs, and how long it goes on."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from bench.brokers import create_topic, sprocket_node
from bench.figures import Figure, Report, Sample, cpu_seconds
from bench.load import drive, frame
from bench.scale.many import ManyConnections, heartbeat

TOPIC = "BenchScale"
_ASKED = 20

JOIN = Figure("all join: broker CPU", "µs/member", False)
NOTICES = Figure("all join: notices", "per member", False)
QUIET = Figure("quiet after the last has joined", "s", False)
BEAT = Figure("broker CPU of a heartbeat", "µs", False)
LIST = Figure("answer with a group's members", "ms", False)
LIST_BYTES = Figure("its size", "kB", False)
LEAVE = Figure("a tenth hangs up: broker CPU", "s", False)
LEAVE_QUIET = Figure("quiet after that", "s", False)


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the table."""
    cases = [(1, 100), (1, 1_000), (100, 10)]
    if not quick:
        cases += [(1, 3_000), (1, 10_000), (100, 100), (1_000, 10)]
    report = Report("members that join and leave", ["sprocket"])
    for groups, members in cases:
        console.log(f"{groups} groups of {members}")
        place = folder / f"{groups}-{members}"
        place.mkdir()
        sample = _measured(place, groups, members)
        report.add(f"{groups:,} groups of {members:,}", {"sprocket": [sample]})
    report.show(console)


def _measured(folder: Path, groups: int, members: int) -> Sample:
    beats = [
        heartbeat(f"{group}-{member}@bench", f"bench_group_{group}", TOPIC)
        for member in range(members)
        for group in range(groups)
    ]
    count = len(beats)
    with (
        sprocket_node(folder, "--set", "broker.connections_max=1000000") as node,
        ManyConnections(node.broker_port) as many,
    ):
        create_topic(node, TOPIC, 8)
        cpu = cpu_seconds(node.pid)
        many.join(beats)
        joined = time.perf_counter()
        sample = {QUIET: max(many.until_quiet() - joined, 0.0)}
        sample |= {
            JOIN: (cpu_seconds(node.pid) - cpu) / count * 1e6,
            NOTICES: many.notices / count,
        }
        cpu = cpu_seconds(node.pid)
        many.forget()
        many.say(lambda place: beats[place])
        many.until_quiet()
        sample[BEAT] = (cpu_seconds(node.pid) - cpu) / count * 1e6
        asked = frame(38, {"consumerGroup": "bench_group_0"})
        seen = drive(node.broker_port, [asked], total=_ASKED)
        sample |= {LIST: seen.quantile_ms(0.5), LIST_BYTES: seen.body_bytes / _ASKED / 1000}
        cpu = cpu_seconds(node.pid)
        many.hang_up(count // 10)
        many.forget()
        left = time.perf_counter()
        sample[LEAVE_QUIET] = max(many.until_quiet() - left, 0.0)
        sample[LEAVE] = cpu_seconds(node.pid) - cpu
        return sample
