"""Many idle clients at one broker: memory for each, and what a sender sees meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from bench import innocent
from bench.brokers import create_topic, sprocket_node
from bench.figures import Figure, Report, cpu_seconds, resident_mib
from bench.scale.many import ManyConnections, heartbeat

_BEATS = 30.0  # seconds between two heartbeats of a client, as clients have it
_SECONDS = 10.0

MEMORY = Figure("memory", "KiB/connection", False)
JOINING = Figure("broker CPU of connecting and a heartbeat", "µs/connection", False)
P99 = Figure("sends every 5 ms meanwhile, p99", "ms", False)
WORST = Figure("sends every 5 ms meanwhile, worst", "ms", False)
IDLE = Figure("broker CPU of heartbeats", "% of a core", False)


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the table."""
    counts = (1_000, 4_000) if quick else (1_000, 2_500, 5_000, 10_000)
    report = Report("connections at one broker", ["sprocket"])
    for count in counts:
        place = folder / str(count)
        place.mkdir()
        console.log(f"{count} connections")
        with (
            sprocket_node(place, "--set", "broker.connections_max=1000000") as node,
            ManyConnections(node.broker_port) as many,
        ):
            create_topic(node, innocent.TOPIC, 4)
            memory, cpu = resident_mib(node.pid)["anonymous"], cpu_seconds(node.pid)
            many.join(heartbeat(f"client-{place}") for place in range(count))
            many.until_quiet()
            cost = cpu_seconds(node.pid) - cpu
            grown = (resident_mib(node.pid)["anonymous"] - memory) * 1024
            waits, idle = _meanwhile(many, node.broker_port, node.pid)
            ordered = sorted(waits)
            report.add(f"{count:,}", {"sprocket": [{
                MEMORY: grown / count,
                JOINING: cost / count * 1e6,
                P99: ordered[int(len(ordered) * 0.99)] * 1000,
                WORST: ordered[-1] * 1000,
                IDLE: 100 * idle,
            }]})  # fmt: skip
    report.show(console)


def _meanwhile(many: ManyConnections, port: int, pid: int) -> tuple[list[float], float]:
    """What an innocent client waits while all others send heartbeats at their pace; and the share
    of a core that these heartbeats take."""
    command = [sys.executable, "-m", "bench.innocent", str(port)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        client.stdout.readline()
        due, each, sent = time.perf_counter(), _BEATS / len(many), 0
        end = due + _SECONDS
        lines = list(many.lines())
        while (now := time.perf_counter()) < end:
            while due <= now:
                lines[sent % len(lines)].send(heartbeat(f"client-{sent % len(lines)}"))
                sent, due = sent + 1, due + each
            many.look(min(each, 0.01))
        out, _ = client.communicate()
    before = cpu_seconds(pid)
    many.say(lambda place: heartbeat(f"client-{place}"))
    many.forget()
    many.until_quiet()
    cost = cpu_seconds(pid) - before
    return json.loads(out), cost / _BEATS
