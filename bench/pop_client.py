"""Our consumers at our broker: one that pulls, one that pops, and a simple one, all by 32.

Each takes messages that are stored already, with a listener that does nothing.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.brokers import Node, create_topic, sprocket_node
from bench.clients import address
from bench.figures import CPU, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.python_client import PythonClient

QUEUES, WINDOW, BATCH = 8, 256, 32
CONSUMER_CPU = Figure("consumer CPU", "µs/message", False)


def consuming(
    node: Node, sender: Any, receiver: Any, name: str, *, count: int, **named: Any
) -> Callable[[], Sample]:
    """Takes all messages of a topic of its own; timed from the first to the last."""
    topics = (f"BenchPop{name}{number}" for number in itertools.count())
    command = "bench.receive" if name == "simple" else "bench.consume"

    def measure() -> Sample:
        topic = next(topics)
        create_topic(node, topic, QUEUES)
        where = {"namesrv": address(node), "topic": topic, "count": count}
        sender.call("bench.send", window=WINDOW, bodyBytes=128, **where)
        before = cpu_seconds(node.pid)
        seen = receiver.call(command, group=topic, **where, **named)
        return {
            RATE: count / seen["seconds"],
            CONSUMER_CPU: seen["cpuSeconds"] / count * 1e6,
            CPU: (cpu_seconds(node.pid) - before) / count * 1e6,
        }

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints one table."""
    sides: dict[str, dict[str, Any]] = {
        "pulls": {"mode": "pull"},
        "pops": {"mode": "pop"},
        "in order": {"mode": "pop", "ordered": True},
        "simple": {"batch": BATCH},
    }
    with sprocket_node(folder) as node, contextlib.ExitStack() as stack:
        sender = stack.enter_context(PythonClient())
        receiver = stack.enter_context(PythonClient())
        report = Report("consumers by kind, batches of 32", list(sides))
        count = 5_000 if quick else 30_000
        runs = {
            name: consuming(node, sender, receiver, name.replace(" ", ""), count=count, **named)
            for name, named in sides.items()
        }
        report.add("128 B, stored before", interleave(runs, rounds=rounds))
        report.show(console)
