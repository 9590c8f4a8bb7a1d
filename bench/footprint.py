"""Start to first accepted send, and memory after a million messages, beside the Java broker."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, both, create_topic, java_missing, java_node, sprocket_node
from bench.figures import Figure, Report, Sample, interleave, resident_mib
from bench.load import drive, frame, send_fields
from bench.send import TOPIC, send_run

START = Figure("start to first accepted send", "s", False)
MEMORY = Figure("resident without mapped files", "MiB", False)


def starting(
    node_in: Callable[[Path], AbstractContextManager[Node]],
) -> Callable[[], Sample]:
    def measure() -> Sample:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with node_in(Path(folder)) as node:
                request = frame(310, send_fields("BenchStart", 0), b"x")
                while not accepted(node, request):
                    time.sleep(0.02)
                return {START: time.perf_counter() - began}

    return measure


def accepted(node: Node, request: tuple[bytes, bytes]) -> bool:
    try:
        seen = drive(node.broker_port, [request], total=1)
    except OSError:
        return False
    return bool(seen.answered)


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table of start-up time and memory."""
    kinds = {"sprocket": sprocket_node}
    if java_missing() is None:
        kinds["java"] = java_node
    report = Report("start and memory", list(kinds))
    starts = {name: starting(kind) for name, kind in kinds.items()}
    report.add("empty store", interleave(starts, rounds=rounds, warm_up=0))
    step = 50_000 if quick else 250_000
    with both(folder) as nodes:
        for node in nodes.values():
            create_topic(node, TOPIC, 8)
        for sent in (0, step, 2 * step, 4 * step):
            samples: dict[str, list[Sample]] = {}
            for name, node in nodes.items():
                grow(node, sent)
                sizes = resident_mib(node.pid)
                samples[name] = [{MEMORY: sizes["anonymous"]}]
            report.add(f"after {sent:,} messages of 128 B", samples)
    report.show(console)


_SENT: dict[int, int] = {}


def grow(node: Node, total: int) -> None:
    """Sends until `node` has had `total` messages."""
    missing = total - _SENT.get(node.pid, 0)
    if missing:
        send_run(node, size=128, total=missing, connections=1, in_flight=64)
    _SENT[node.pid] = total
