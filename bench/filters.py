"""Choosing at the broker: what an SQL92 expression costs, and how fast a backlog is looked through
of which one message in a thousand is wanted: by tag, by SQL92, by a function in Python.

The backlog ends with one that is wanted: behind the last one a pull waits for more, and would be
measured waiting. Java's brokers have no filters in Python, so that row has one column.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, java_missing, java_node, sprocket_node
from bench.figures import CPU, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.load import drive, frame, send_fields
from sprocket.base.deadline import Deadline
from sprocket.filter.sql92 import SqlFilter
from sprocket.message.properties import encode
from sprocket.protocol.requests.filter import UploadFilter
from sprocket.protocol.requests.pull import SUBSCRIPTION, SUSPEND, PullMessage
from sprocket.remoting.pool import Pool

TOPIC = "BenchFilters"
GROUP = "bench_choosers"
ONE_IN = 1000
EXPRESSIONS = {
    "all three looked at": "amount > 5 AND region = 'eu' AND kind IN ('gift', 'book')",
    "the first decides": "amount > 50 AND region = 'eu' AND kind IN ('gift', 'book')",
    "four properties": "amount > 5 AND region = 'eu' AND (kind = 'x' OR customer = 'c-1234')",
}
PROPERTIES = {
    "amount": "7", "region": "eu", "kind": "gift", "customer": "c-1234",
    "UNIQ_KEY": "7F000001000118B4AAC2469E1FF70000", "TAGS": "paid", "WAIT": "true",
    "CLUSTER": "DefaultCluster",
}  # fmt: skip
SQL = "number = 999 AND region = 'eu' AND kind IN ('gift', 'book')"
CODE = b"""def wanted(message):
    properties = message.properties
    return (properties["number"] == "999" and properties["region"] == "eu"
            and properties["kind"] in ("gift", "book"))
"""
PER_EVALUATION = Figure("time", "µs/message", False)
_CHUNK, _CHUNKS = 1_000, 300


def evaluation(expression: str) -> Sample:
    """The least of many short runs: what else the machine does is no cost of the expression."""
    matches = SqlFilter.parse(expression).matches_text
    raw = encode(PROPERTIES).encode()
    best = float("inf")
    for _ in range(_CHUNKS):
        began = time.perf_counter()
        for _ in range(_CHUNK):
            matches(raw)
        best = min(best, time.perf_counter() - began)
    return {PER_EVALUATION: best / _CHUNK * 1e6}


def fill(node: Node, count: int) -> None:
    """Stores messages of which one in a thousand has number 999 and tag t999, the last one too."""
    create_topic(node, TOPIC, 1)
    frames = []
    for number in range(ONE_IN):
        fields = send_fields(TOPIC, 0, number)
        fields["i"] = (
            f"UNIQ_KEY\x01{number:032X}\x02WAIT\x01true\x02TAGS\x01t{number}\x02"
            f"number\x01{number}\x02region\x01eu\x02kind\x01gift\x02"
        )
        frames.append(frame(310, fields, b"x" * 128))
    seen = drive(node.broker_port, frames, total=count, in_flight=128)
    if seen.refused:
        raise RuntimeError(f"{node.name} refused {seen.refused} sends: {seen.first_refusal!r}")


def scan(node: Node, stored: int, kind: str, text: str) -> Callable[[], Sample]:
    """Pulls from the first message to the last."""

    def measure() -> Sample:
        before, began = cpu_seconds(node.pid), time.perf_counter()
        found = asyncio.run(_scanned(node, stored, kind, text))
        seconds = time.perf_counter() - began
        if found != stored // ONE_IN:
            raise RuntimeError(f"{node.name} gave {found} messages of {stored}")
        cpu = (cpu_seconds(node.pid) - before) / stored * 1e6
        return {RATE: stored / seconds, CPU: cpu}

    return measure


async def _scanned(node: Node, stored: int, kind: str, text: str) -> int:
    address, offset, found = f"127.0.0.1:{node.broker_port}", 0, 0
    async with Pool() as pool:
        if kind == "PYTHON":
            header = UploadFilter(consumer_group=GROUP, topic=TOPIC, class_name="wanted")
            await pool.ask(address, header, body=CODE, deadline=Deadline.after(30))
        while offset < stored:
            reply = await pool.call(
                address,
                PullMessage(
                    consumer_group=GROUP, topic=TOPIC, queue_id=0, queue_offset=offset,
                    max_msg_nums=32, sys_flag=SUBSCRIPTION | SUSPEND, suspend_timeout_millis=10_000,
                    subscription=text, expression_type=kind,
                ),
                deadline=Deadline.after(30),
            )  # fmt: skip
            if reply.code not in (0, 19, 20):
                raise RuntimeError(f"{node.name}: {reply.code} {reply.remark}")
            offset = int(reply.fields["nextBeginOffset"])
            found += bytes(reply.body).count(b"number\x01999\x02")
    return found


@contextlib.contextmanager
def nodes_in(folder: Path) -> Iterator[dict[str, Node]]:
    """Both, ours with processes for filters in Python."""
    with contextlib.ExitStack() as stack:
        options = ("--set", "broker.filter_workers=2")
        nodes = {"sprocket": stack.enter_context(sprocket_node(folder, *options))}
        if java_missing() is None:
            nodes["java"] = stack.enter_context(java_node(folder))
        yield nodes


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the tables of filters."""
    costs = Report("one message judged by SQL92, in the broker's process", ["sprocket"])
    for case, expression in EXPRESSIONS.items():
        side = {"sprocket": lambda expression=expression: evaluation(expression)}
        costs.add(case, interleave(side, rounds=rounds))
    costs.show(console)
    stored = 20_000 if quick else 100_000
    with nodes_in(folder) as nodes:
        for node in nodes.values():
            fill(node, stored)
        report = Report(f"one wanted in {ONE_IN} (rate in messages looked at)", list(nodes))
        for case, kind, text in (
            ("by tag", "TAG", "t999"),
            ("by SQL92", "SQL92", SQL), ("by Python", "PYTHON", "wanted"),
        ):  # fmt: skip
            sides = {
                name: scan(node, stored, kind, text)
                for name, node in nodes.items()
                if kind != "PYTHON" or name == "sprocket"
            }
            console.log(case)
            report.add(case, interleave(sides, rounds=rounds))
        report.show(console)
