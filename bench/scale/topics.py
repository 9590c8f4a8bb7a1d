"""Many topics at one broker: start, memory, registration, routes, and a start after a kill."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, sprocket_node
from bench.figures import Figure, Report, Sample, cpu_seconds, resident_mib
from bench.load import drive, frame, send_fields

_QUEUES = 4
_IDLE_SECONDS = 35.0  # a registration of all topics is among them
#: Topics that get messages.
_USED = 2_000

START = Figure("start", "s", False)
MEMORY = Figure("memory of name server and broker", "MiB", False)
TABLE = Figure("table of topics, as a registration has it", "MB", False)
ROUTE = Figure("answer for a route", "ms", False)
ALL = Figure("answer with all topics", "ms", False)
IDLE = Figure("CPU while nothing happens", "% of a core", False)
FIRST = Figure("first message of a topic", "ms", False)
AGAIN = Figure("start after SIGKILL", "s", False)


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the table."""
    report = Report(f"topics of {_QUEUES} queues at one broker", ["sprocket"])
    for count in (1_000, 10_000) if quick else (1_000, 10_000, 50_000):
        console.log(f"{count} topics")
        place = folder / str(count)
        place.mkdir()
        report.add(f"{count:,}", {"sprocket": [_measured(place, count)]})
    report.show(console)


def with_topics(folder: Path, count: int) -> None:
    """Makes the store of a node with so many topics, which starts with them."""
    file = folder / "sprocket" / "config" / "topics.json"
    with sprocket_node(folder):
        pass
    table = json.loads(file.read_text())
    form = next(iter(table["topicConfigTable"].values()))
    own = {"readQueueNums": _QUEUES, "writeQueueNums": _QUEUES, "perm": 6}
    for number in range(count):
        table["topicConfigTable"][name_of(number)] = {**form, "topicName": name_of(number), **own}
    file.write_text(json.dumps(table))


def _measured(folder: Path, count: int) -> Sample:
    with_topics(folder, count)
    began = time.perf_counter()
    with sprocket_node(folder) as node:
        started = time.perf_counter() - began
        _asked(node, 21, {})  # once before it counts
        seconds, size = _asked(node, 21, {})
        cpu = cpu_seconds(node.pid)
        time.sleep(_IDLE_SECONDS)
        idle = (cpu_seconds(node.pid) - cpu) / _IDLE_SECONDS
        sample = {
            START: started,
            MEMORY: resident_mib(node.pid)["anonymous"],
            TABLE: size / 1e6,
            ROUTE: _route(node) * 1000,
            ALL: seconds * 1000,
            IDLE: 100 * idle,
        }
        used = min(_USED, count)
        began = time.perf_counter()
        requests = [frame(310, send_fields(name_of(n), 0, n), b"x" * 128) for n in range(used)]
        drive(node.broker_port, requests, total=used)
        sample[FIRST] = (time.perf_counter() - began) / used * 1000
        os.kill(node.pid, signal.SIGKILL)
    began = time.perf_counter()
    with sprocket_node(folder):
        sample[AGAIN] = time.perf_counter() - began
    return sample


def name_of(number: int) -> str:
    """The name of a topic."""
    return f"BenchTopic{number:06}"


def _route(node: Node) -> float:
    request = frame(105, {"topic": name_of(7)})
    times = []
    for _ in range(20):
        began = time.perf_counter()
        drive(node.nameserver_port, [request], total=1)
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def _asked(node: Node, code: int, fields: dict[str, str]) -> tuple[float, int]:
    """Seconds and bytes of an answer of the broker."""
    began = time.perf_counter()
    seen = drive(node.broker_port, [frame(code, fields)], total=1)
    return time.perf_counter() - began, seen.body_bytes
