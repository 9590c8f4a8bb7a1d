"""A broker's files read by a standalone cluster of Spark: a master, two workers of a core each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from bench.brokers import create_topic, sprocket_node
from bench.figures import Figure, Report
from bench.load import drive, frame, send_fields
from bench.spark.connectors import Source
from bench.spark.ground import ROOT, Ground
from bench.spark.session import Session, tree_cpu_seconds
from sprocket.message import batch

_TOPIC, _QUEUES, _BODY, _AT_ONCE = "BenchScan", 8, b"x" * 100, 500
_PATIENCE_SECONDS = 120.0

RATE = Figure("rate", "rows/s", True)
CPU = Figure("CPU of workers and driver", "µs/row", False)
TASKS = Figure("tasks", "", False)
HUNDRED = Figure("100 million rows, by calculation", "s", False)


class Cluster(NamedTuple):
    """A running cluster: its address, and the processes of its workers."""

    master: str
    workers: tuple[int, ...]


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the table."""
    rows = 1_000_000 if quick else 10_000_000
    with sprocket_node(folder) as node:
        create_topic(node, _TOPIC, _QUEUES)
        console.log(f"{rows:,} rows of 100 B")
        _fill(node.broker_port, rows)
        report = Report(f"a scan of {rows:,} rows by a cluster of two workers", ["sprocket"])
        ground = Ground(Path(sys.executable), None, None)
        with cluster(folder) as found, Session(ground, found.master, folder / "log") as spark:
            for name, columns in {
                "three columns": "queue_id int, queue_offset bigint, body binary",
                "all columns": "",
            }.items():
                options = {"store": str(folder / "sprocket"), "columns": columns}
                source = Source("sprocket", "", _TOPIC, options)
                tasks = spark.call("plan", source=source)["tasks"]
                spark.call("batch", source=source, into="noop")  # once before it counts
                before = sum(map(tree_cpu_seconds, found.workers))
                done = spark.call("batch", source=source, into="noop")
                cpu = sum(map(tree_cpu_seconds, found.workers)) - before + done["cpu"]
                counted = spark.call("count", source=source)["rows"]
                if counted != rows:
                    raise RuntimeError(f"{counted} of {rows} rows read")
                rate = rows / done["seconds"]
                report.add(name, {"sprocket": [
                    {RATE: rate, CPU: cpu / rows * 1e6, TASKS: tasks, HUNDRED: 1e8 / rate}
                ]})  # fmt: skip
    report.show(console)


def _fill(port: int, rows: int) -> None:
    body = batch.encode([batch.BatchedMessage(0, _BODY, "TAGS\x01paid\x02")] * _AT_ONCE)
    requests = [
        frame(320, {**send_fields(_TOPIC, queue), "m": "true"}, body) for queue in range(_QUEUES)
    ]
    seen = drive(port, requests, total=rows // _AT_ONCE, connections=2, in_flight=4)
    if seen.refused:
        raise RuntimeError(f"the broker refused a batch: {seen.first_refusal!r}")


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A master and two workers on loopback, each a process of its own."""
    import pyspark

    from sprocket.spark.launching.java import find_java, home_for_spark

    home = str(Path(pyspark.__file__).parent)
    environment = {
        **os.environ,
        "JAVA_HOME": str(home_for_spark(find_java())), "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }  # fmt: skip
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, kind: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        command = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{kind}"]
        host = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        with log.open("wb") as output:
            running.append(
                subprocess.Popen(
                    [*command, *host, *arguments],
                    stdout=output, stderr=output, env=environment, cwd=folder,
                )
            )  # fmt: skip
        return log

    try:
        master = _said(start("master", "master.Master"), r"Starting Spark master at (spark://\S+)")
        logs = [
            start(f"worker-{n}", "worker.Worker", "-c", "1", "-m", "1g", master) for n in range(2)
        ]
        for log in logs:
            _said(log, r"(Successfully registered with master)")
        yield Cluster(master, tuple(one.pid for one in running[1:]))
    finally:
        for one in running:
            one.terminate()
        for one in running:
            one.wait(30)


def _said(log: Path, pattern: str) -> str:
    """What a process has written, once it has."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.2)
    raise RuntimeError(f"{log.name}: {log.read_text(errors='replace')[-2000:]}")
