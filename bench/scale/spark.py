"""Spark over many queues: planning, micro-batches, and what the driver asks of the broker.

Requests are counted by the broker's own metrics; Spark runs in this machine's environment, in a
process of its own.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, free_port, sprocket_node
from bench.figures import Figure, Report, Sample, cpu_seconds
from bench.load import drive, frame, send_fields
from bench.spark.connectors import Source
from bench.spark.ground import ROOT, Ground
from bench.spark.session import Session

PLANNED = Figure("planning", "s", False)
READ = Figure("planning and reading", "s", False)
TASKS = Figure("tasks", "", False)
ROWS = Figure("rows", "", True)
ASKED = Figure("requests of the driver for a plan", "", False)
TRIGGER = Figure("micro-batch, median", "ms", False)
BATCHES = Figure("micro-batches", "/s", True)
ENDS = Figure("questions for ends, a trigger of a query", "requests", False)
PULLS = Figure("pulls of driver and tasks, a micro-batch", "requests", False)
QUIET = Figure("requests while nothing comes, a query", "/s", False)
QUIET_CPU = Figure("broker's CPU while nothing comes, a query", "% of a core", False)

_PER_SECOND = 1000
_WARM_SECONDS = 12.0
_SECONDS = 15.0
_QUIET_SECONDS = 10.0
_PULL, _ENDS, _END = "pull_message", "get_topic_stats_info", "get_max_offset"


class _Counted:
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
        counted = _Counted(port)
        _plans(console, node, spark, counted, (100, 500) if quick else (100, 500, 1000))
        _streams(console, node, spark, counted, quick)


def _source(node: Node, topic: str, **options: str) -> Source:
    return Source("sprocket", f"127.0.0.1:{node.nameserver_port}", topic, options)


def _plans(
    console: Console, node: Node, spark: Session, counted: _Counted, counts: tuple[int, ...]
) -> None:
    report = Report("a topic with a message in each queue, read as a table", ["sprocket"])
    for count in counts:
        console.log(f"a table of {count} queues")
        topic = f"BenchTable{count}"
        create_topic(node, topic, count)
        requests = [frame(310, send_fields(topic, n, n), b"x" * 100) for n in range(count)]
        drive(node.broker_port, requests, total=count)
        source = _source(node, topic)
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


def _streams(console: Console, node: Node, spark: Session, counted: _Counted, quick: bool) -> None:
    report = Report(f"streams, {_PER_SECOND:,} messages/s of 100 B", ["sprocket"])
    for queues, count in ((8, 1), (500, 1)) if quick else ((8, 1), (100, 1), (500, 1), (500, 3)):
        console.log(f"{count} streams of {queues} queues")
        topic = f"BenchStream{queues}x{count}"
        create_topic(node, topic, queues)
        sample = _streamed(node, spark, counted, topic, count)
        report.add(f"{queues} queues, {count} in the session", {"sprocket": [sample]})
    report.show(console)


def _streamed(node: Node, spark: Session, counted: _Counted, topic: str, count: int) -> Sample:
    source = _source(node, topic, startingOffsets="latest")
    spark.call("open_streams", source=source, count=count)
    with _sending(source):
        time.sleep(_WARM_SECONDS)
        spark.call("progress")
        before = counted.now()
        time.sleep(_SECONDS)
        asked = counted.now() - before
        progress = spark.call("progress")["triggers"]
    time.sleep(3)
    before, cpu = counted.now(), cpu_seconds(node.pid)
    time.sleep(_QUIET_SECONDS)
    quiet = counted.now() - before
    cpu = cpu_seconds(node.pid) - cpu
    spark.call("close_streams")
    batches = max(len(progress), 1)
    return {
        TRIGGER: statistics.median(progress or [0.0]),
        BATCHES: len(progress) / _SECONDS / count,
        ENDS: (asked[_ENDS] + asked[_END]) / batches,
        PULLS: asked[_PULL] / batches,
        QUIET: quiet.total() / _QUIET_SECONDS / count,
        QUIET_CPU: 100 * cpu / _QUIET_SECONDS / count,
    }


@contextmanager
def _sending(source: Source) -> Iterator[None]:
    seconds = str(_WARM_SECONDS + _SECONDS)
    command = [sys.executable, "-m", "bench.spark.sender", "sprocket", source.address]
    with subprocess.Popen(
        [*command, source.topic, str(_PER_SECOND), seconds], cwd=ROOT, stdout=subprocess.DEVNULL
    ) as sender:
        yield
        sender.wait(120)
