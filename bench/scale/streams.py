"""Streams over many queues at a steady rate: micro-batches, and what brokers are asked meanwhile.

The sender sends 1,000 messages a second to all queues in turn. A micro-batch begins when the one
before it ends. Requests are counted by the broker's own metrics, of all streams together; the pulls
are the tasks' too.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, free_port, sprocket_node
from bench.figures import Figure, Report, Sample, cpu_seconds
from bench.scale.spark import Counted, source_of
from bench.spark.ground import ROOT, Ground
from bench.spark.session import Session

PER_SECOND = 1_000
MEDIAN = Figure("micro-batch, median", "ms", False)
LONGEST = Figure("micro-batch, longest", "ms", False)
ROWS = Figure("rows of a micro-batch, median", "", True)
TRIGGERS = Figure("micro-batches of each stream", "/s", True)
ENDS_EACH = Figure("requests for ends, each micro-batch", "", False)
PULLS_EACH = Figure("pulls, each micro-batch", "", False)
ENDS = Figure("requests for ends, of all streams", "/s", False)
PULLS = Figure("pulls, of all streams", "/s", False)
OTHERS = Figure("other requests, of all streams", "/s", False)
SPARK_CPU = Figure("CPU of Spark", "% of a core", False)
BROKER_CPU = Figure("CPU of the broker", "% of a core", False)
#: Requests that are not the streams'.
_SENDERS = ("send_message_v2", "send_batch_message", "heart_beat", "get_consumer_list_by_group")


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the tables."""
    port = free_port()
    metrics = ("--set", "metrics.exporter=PROM", "--set", f"metrics.port={port}")
    ground = Ground(Path(sys.executable), None, None)
    report = Report(f"streams at {PER_SECOND:,} messages/s", ["sprocket"])
    cases = [(8, 1), (500, 1), (500, 4)]
    with sprocket_node(folder, *metrics) as node:
        for queues in sorted({queues for queues, _ in cases}):
            create_topic(node, f"BenchStream{queues}", queues)
        for queues, count in cases:
            # A session of its own: what one case has loaded would help the next.
            with Session(ground, "local[2]", folder / f"log-{queues}-{count}") as spark:
                seconds = 10 if quick else 20
                busy, idle = _case(console, node, spark, Counted(port), queues, count, seconds)
            name = f"{queues} queues, {count} stream(s)"
            report.add(name, {"sprocket": [busy]})
            report.add(f"{name}, no messages", {"sprocket": [idle]})
    report.show(console)


def _case(
    console: Console,
    node: Node,
    spark: Session,
    counted: Counted,
    queues: int,
    count: int,
    seconds: int,
) -> tuple[Sample, Sample]:
    topic = f"BenchStream{queues}"
    source = source_of(node, topic, startingOffsets="latest")
    console.log(f"{count} stream(s) over {queues} queues")
    address = f"127.0.0.1:{node.nameserver_port}"
    sender = [sys.executable, "-m", "bench.spark.sender", "sprocket", address, topic]
    with subprocess.Popen(
        [*sender, str(PER_SECOND), "3600"], cwd=ROOT, stdout=subprocess.DEVNULL
    ) as sending:
        try:
            spark.call("begin_streams", source=source, count=count)
            busy = _watched(node, spark, counted, seconds)
        finally:
            sending.kill()
    spark.call("watch_streams", seconds=5)
    idle = _watched(node, spark, counted, seconds)
    spark.call("end_streams")
    return busy, idle


def _watched(node: Node, spark: Session, counted: Counted, seconds: int) -> Sample:
    """What the streams do for so long."""
    before, cpu, began = counted.now(), cpu_seconds(node.pid), time.monotonic()
    seen = spark.call("watch_streams", seconds=seconds)
    took = time.monotonic() - began
    asked = counted.now() - before
    broker_cpu = cpu_seconds(node.pid) - cpu
    for kind in _SENDERS:
        del asked[kind]
    ends, pulls = asked.pop("get_topic_stats_info", 0), asked.pop("pull_message", 0)
    sample = {
        ENDS: ends / took,
        PULLS: pulls / took,
        OTHERS: asked.total() / took,
        SPARK_CPU: seen["cpu"] / took * 100,
        BROKER_CPU: broker_cpu / took * 100,
    }
    if triggers := seen["triggers"]:
        sample |= {
            MEDIAN: statistics.median(triggers),
            LONGEST: max(triggers),
            ROWS: statistics.median(seen["rows"]),
            TRIGGERS: len(triggers) / took / seen["streams"],
            ENDS_EACH: ends / len(triggers),
            PULLS_EACH: pulls / len(triggers),
        }
    return sample
