"""Pulls of 32: messages a second and CPU of the broker per message, beside the Java broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, both, create_topic
from bench.figures import CPU, P50, P99, RATE, Report, Sample, cpu_seconds, interleave
from bench.load import drive, frame, pull_fields
from bench.send import messages

BATCH = 32


def fill(node: Node, topic: str, size: int, count: int) -> None:
    """Stores `count` messages in the one queue of `topic`."""
    create_topic(node, topic, 1)
    seen = drive(node.broker_port, messages(topic, 1, size), total=count, in_flight=128)
    if seen.refused:
        raise RuntimeError(f"{node.name} refused {seen.refused} sends: {seen.first_refusal!r}")


def measurement(node: Node, topic: str, stored: int, in_flight: int) -> Callable[[], Sample]:
    pulls = stored // BATCH

    def request(number: int) -> tuple[bytes, bytes]:
        return frame(11, pull_fields(topic, 0, number * BATCH, BATCH))

    prepared = [request(number) for number in range(pulls)]

    def measure() -> Sample:
        before = cpu_seconds(node.pid)
        seen = drive(node.broker_port, prepared, total=pulls, in_flight=in_flight)
        if seen.refused:
            raise RuntimeError(f"{node.name} refused a pull: {seen.first_refusal!r}")
        messages = pulls * BATCH
        return {
            RATE: messages / seen.seconds,
            CPU: (cpu_seconds(node.pid) - before) / messages * 1e6,
            P50: seen.quantile_ms(0.5),
            P99: seen.quantile_ms(0.99),
        }

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table of pulls."""
    stored = 32_000 if quick else 96_000
    with both(folder) as nodes:
        report = Report(f"pulls of {BATCH} (rate in messages)", list(nodes))
        for size in (128, 1024):
            topic = f"BenchPull{size}"
            for node in nodes.values():
                fill(node, topic, size, stored)
            for in_flight in (1, 8):
                sides = {
                    name: measurement(node, topic, stored, in_flight)
                    for name, node in nodes.items()
                }
                case = f"{size} B, {in_flight} in flight"
                console.log(case)
                report.add(case, interleave(sides, rounds=rounds))
        report.show(console)
