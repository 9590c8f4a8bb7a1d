"""Sends: rate, CPU of the broker per message, and latency, beside the Java broker.

Batches have rows of their own: their figures are those of a message, latencies those of a batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, both, create_topic, sprocket_node
from bench.figures import CPU, P50, P99, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.load import Outcome, drive, frame, send_fields
from sprocket.broker.sending import kernel
from sprocket.message.batch import BatchedMessage, encode

QUEUES = 8
TOPIC = "BenchSend"
#: Different messages that a run goes round.
MESSAGES = 2048
#: Messages of a batch.
BATCH = 100

GENERATOR = Figure("generator CPU", "µs/message", False)


def send_run(
    node: Node, *, size: int, total: int, connections: int, in_flight: int, batch: int = 0
) -> tuple[Outcome, float]:
    """One run of sends, or of batches; what was seen, and the broker's CPU seconds.

    Args:
        total: how many requests.
        batch: messages in each; 0 for sends of single messages.
    """
    requests = batches(TOPIC, QUEUES, size, batch) if batch else messages(TOPIC, QUEUES, size)
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


def batches(topic: str, queues: int, size: int, count: int) -> list[tuple[bytes, bytes]]:
    """Batches (code 320) to all queues in turn; each message has a unique key of its own."""
    body = b"x" * size
    requests = []
    for number in range(MESSAGES // 16):
        fields = send_fields(topic, number % queues, number) | {"m": "true"}
        keyed = (send_fields(topic, 0, number * count + place)["i"] for place in range(count))
        parts = [BatchedMessage(0, body, text) for text in keyed]
        requests.append(frame(320, fields, encode(parts)))
    return requests


def measurement(node: Node, total: int, batch: int = 0, **case: int) -> Callable[[], Sample]:
    def measure() -> Sample:
        seen, cpu = send_run(node, total=total, batch=batch, **case)
        sent = seen.answered * max(batch, 1)
        return {
            RATE: seen.per_second * max(batch, 1),
            CPU: cpu / sent * 1e6,
            P50: seen.quantile_ms(0.5),
            P99: seen.quantile_ms(0.99),
            GENERATOR: seen.cpu_seconds / sent * 1e6,
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
        for size, connections, in_flight in batch_cases(quick):
            total = 1_000 if quick else 3_000
            sides = {
                name: measurement(
                    node,
                    total,
                    batch=BATCH,
                    size=size,
                    connections=connections,
                    in_flight=in_flight,
                )
                for name, node in nodes.items()
            }
            case = f"batches of {BATCH} x {size} B, {connections} connection(s), {in_flight}"
            console.log(case)
            report.add(f"{case} in flight", interleave(sides, rounds=rounds))
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


def batch_cases(quick: bool) -> Sequence[tuple[int, int, int]]:
    """The same for batches."""
    return [(100, 1, 8)] if quick else [(100, 1, 1), (100, 1, 8), (100, 8, 32), (1024, 1, 8)]
