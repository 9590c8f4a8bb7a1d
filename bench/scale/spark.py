"""A table of many queues in Spark: planning, reading, and what the driver asks of the broker.

Requests are counted by the broker's own metrics; Spark runs in this machine's environment, in a
process of its own.
"""

from __future__ import annotations

import re
import sys
import urllib.request
from collections import Counter
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, free_port, sprocket_node
from bench.figures import Figure, Report, Sample
from bench.load import drive, frame, send_fields
from bench.spark.connectors import Source
from bench.spark.ground import Ground
from bench.spark.session import Session

PLANNED = Figure("planning", "s", False)
READ = Figure("planning and reading", "s", False)
TASKS = Figure("tasks", "", False)
ROWS = Figure("rows", "", True)
ASKED = Figure("requests of the driver for a plan", "", False)


class Counted:
    """The broker's requests by their kinds, from its metrics."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"

    def now(self) -> Counter[str]:
        with urllib.request.urlopen(self._url) as page:
            text = page.read().decode()
        found: Counter[str] = Counter()
        for labels, value in re.findall(
            r"^rocketmq_rpc_latency\w*_count\{(.*?)\} (\S+)", text, re.MULTILINE
        ):
            code = re.search(r'request_code="(\w+)"', labels)
            found[code[1].lower() if code else "?"] += int(float(value))
        return found


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the tables."""
    port = free_port()
    metrics = ("--set", "metrics.exporter=PROM", "--set", f"metrics.port={port}")
    with (
        sprocket_node(folder, *metrics) as node,
        Session(Ground(Path(sys.executable), None, None), "local[2]", folder / "log") as spark,
    ):
        counted = Counted(port)
        _plans(console, node, spark, counted, (100, 500) if quick else (100, 500, 1000))


def source_of(node: Node, topic: str, **options: str) -> Source:
    """A topic of a node."""
    return Source("sprocket", f"127.0.0.1:{node.nameserver_port}", topic, options)


def _plans(
    console: Console, node: Node, spark: Session, counted: Counted, counts: tuple[int, ...]
) -> None:
    report = Report("a topic with a message in each queue, read as a table", ["sprocket"])
    for count in counts:
        console.log(f"a table of {count} queues")
        topic = f"BenchTable{count}"
        create_topic(node, topic, count)
        requests = [frame(310, send_fields(topic, n, n), b"x" * 100) for n in range(count)]
        drive(node.broker_port, requests, total=count)
        source = source_of(node, topic)
        spark.call("plan", source=source)  # once before it counts
        before = counted.now()
        planned = spark.call("plan", source=source)
        asked = counted.now() - before
        read = spark.call("batch", source=source, into="noop")
        rows = spark.call("count", source=source)["rows"]
        sample: Sample = {
            PLANNED: planned["seconds"], TASKS: planned["tasks"], ASKED: asked.total(),
            READ: read["seconds"], ROWS: rows,
        }  # fmt: skip
        report.add(f"{count:,} queues", {"sprocket": [sample]})
    report.show(console)
