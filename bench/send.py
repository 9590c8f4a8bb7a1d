"""Sends: rate, CPU of the broker per message, and latency, beside the Java broker."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, both, create_topic, sprocket_node
from bench.figures import CPU, P50, P99, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.load import Outcome, drive, frame, send_fields
from sprocket.broker.sending import kernel

QUEUES = 8
TOPIC = "BenchSend"
#: Different messages that a run goes round.
MESSAGES = 2048

GENERATOR = Figure("generator CPU", "µs/message", False)


def send_run(
    node: Node, *, size: int, total: int, connections: int, in_flight: int
) -> tuple[Outcome, float]:
    """One run of sends; what was seen, and the broker's CPU seconds."""
    requests = messages(TOPIC, QUEUES, size)
    before = cpu_seconds(node.pid)
    seen = drive(
        node.broker_port, requests, total=total, connections=connections, in_flight=in_flight
    )
    if seen.refused:
        raise RuntimeError(f"{node.name} refused {seen.refused} sends: {seen.first_refusal!r}")
    return seen, cpu_seconds(node.pid) - before


def messages(topic: str, queues: int, size: int) -> list[tuple[bytes, bytes]]:
    """Sends to all queues in turn, each with a unique key of its own."""
    body = b"x" * size
    return [
        frame(310, send_fields(topic, number % queues, number), body) for number in range(MESSAGES)
    ]


def measurement(node: Node, total: int, **case: int) -> Callable[[], Sample]:
    def measure() -> Sample:
        seen, cpu = send_run(node, total=total, **case)
        return {
            RATE: seen.per_second,
            CPU: cpu / seen.answered * 1e6,
            P50: seen.quantile_ms(0.5),
            P99: seen.quantile_ms(0.99),
            GENERATOR: seen.cpu_seconds / seen.answered * 1e6,
        }

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table of sends; where the native kernel is installed, also without it."""
    with both(folder) as nodes, contextlib.ExitStack() as more:
        if kernel.is_installed():
            options = ("--set", "broker.kernel=false")
            plain = sprocket_node(folder / "plain", *options, name="without kernel")
            nodes["without kernel"] = more.enter_context(plain)
        for node in nodes.values():
            create_topic(node, TOPIC, QUEUES)
            send_run(node, size=128, total=20_000, connections=1, in_flight=64)
        report = Report("sends, JSON header, asynchronous flush", list(nodes))
        for size, connections, in_flight in cases(quick):
            total = (4_000 if in_flight == 1 else 30_000) // (2 if quick else 1)
            sides = {
                name: measurement(
                    node, total, size=size, connections=connections, in_flight=in_flight
                )
                for name, node in nodes.items()
            }
            case = f"{size} B, {connections} connection(s), {in_flight} in flight"
            console.log(case)
            report.add(case, interleave(sides, rounds=rounds))
        report.show(console)


def cases(quick: bool) -> Sequence[tuple[int, int, int]]:
    """(body bytes, connections, in flight)."""
    if quick:
        return [(128, 1, 1), (128, 8, 64), (1024, 1, 256)]
    return [(128, 1, 1)] + [
        (size, connections, in_flight)
        for size in (128, 1024)
        for connections in (1, 8)
        for in_flight in (64, 256)
    ] + [(1024, 1, 1)]  # fmt: skip
