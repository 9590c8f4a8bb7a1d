"""The Python client beside the Java client 5.3.3, both against the same broker.

Each client is a process of its own and counts its own processor time. Java's is compiled by both
of its compilers and warmed up; Python's runs on uvloop, which comes with it. Both are set as they
come, except that they wait longer for a busy machine.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from bench.brokers import Node, both, create_topic, java_missing
from bench.figures import P50, P99, RATE, Figure, Report, Sample, interleave
from bench.load import drive
from bench.python_client import PythonClient
from bench.send import messages
from tests.compat.javaland import JavaDriver

QUEUES = 8
WINDOW = 256
PER_SECOND = 1000
LATENCY_SECONDS = 5
WARM_UP = 3

CLIENT_CPU = Figure("client CPU", "µs/message", False)


class Client(Protocol):
    """A client in a process of its own that measures what it is told to."""

    def call(self, command: str, /, **args: Any) -> Mapping[str, Any]: ...


@contextlib.contextmanager
def clients(folder: Path, node: Node) -> Iterator[dict[str, Client]]:
    """Both clients, or Python's alone where there is no Java."""
    with contextlib.ExitStack() as stack:
        found: dict[str, Client] = {"python": stack.enter_context(PythonClient())}
        if java_missing() is None:
            driver = JavaDriver(
                work=folder,
                name=f"client-on-{node.name}",
                jvm=("-Xmx512m", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4"),
            )
            java = stack.enter_context(driver)
            java.call("producer.start", group="bench", namesrv=address(node))
            found["java"] = JavaClient(java)
        yield found


class JavaClient:
    """The driver, with time enough for a measurement."""

    def __init__(self, driver: JavaDriver) -> None:
        self._driver = driver

    def call(self, command: str, /, **args: Any) -> Mapping[str, Any]:
        """Runs one command to its end and returns the answer."""
        return self._driver.call(command, within=180.0, **args)


def address(node: Node) -> str:
    return f"127.0.0.1:{node.nameserver_port}"


def fill(node: Node, topic: str, *, size: int, count: int) -> None:
    """Stores `count` messages of `size` bytes, the same number in each queue."""
    create_topic(node, topic, QUEUES)
    seen = drive(node.broker_port, messages(topic, QUEUES, size), total=count, in_flight=128)
    if seen.refused:
        raise RuntimeError(f"{node.name} refused {seen.refused} sends: {seen.first_refusal!r}")


def sending(client: Client, node: Node, *, size: int, count: int) -> Callable[[], Sample]:
    def measure() -> Sample:
        seen = client.call(
            "bench.send",
            namesrv=address(node),
            topic=f"BenchClients{size}",
            count=count,
            window=WINDOW,
            bodyBytes=size,
        )
        return {**rates(seen, count), P50: seen["p50Ms"], P99: seen["p99Ms"]}

    return measure


def consuming(
    client: Client, node: Node, *, groups: Iterator[str], topic: str, count: int
) -> Callable[[], Sample]:
    def measure() -> Sample:
        seen = client.call(
            "bench.consume", namesrv=address(node), topic=topic, group=next(groups), count=count
        )
        return rates(seen, count)

    return measure


def latency(client: Client, node: Node, *, name: str, count: int) -> Callable[[], Sample]:
    topic = f"BenchLatency{name}"
    create_topic(node, topic, QUEUES)

    def measure() -> Sample:
        seen = client.call(
            "bench.latency",
            namesrv=address(node),
            topic=topic,
            group=f"BenchLatency{name}",
            count=count,
            warmUp=PER_SECOND,
            perSecond=PER_SECOND,
            bodyBytes=128,
        )
        total = count + PER_SECOND
        return {
            CLIENT_CPU: seen["cpuSeconds"] / total * 1e6,
            P50: seen["p50Ms"],
            P99: seen["p99Ms"],
        }

    return measure


def rates(seen: Mapping[str, Any], count: int) -> dict[Figure, float]:
    return {RATE: count / seen["seconds"], CLIENT_CPU: seen["cpuSeconds"] / count * 1e6}


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints a table for each broker."""
    with both(folder) as nodes:
        for node in nodes.values():
            if quick and node.name != "sprocket":
                continue
            with clients(folder, node) as sides:
                report = Report(f"clients, against the {node.name} broker", list(sides))
                measure(report, console, node=node, sides=sides, quick=quick, rounds=rounds)
                report.show(console)


def measure(
    report: Report,
    console: Console,
    *,
    node: Node,
    sides: Mapping[str, Client],
    quick: bool,
    rounds: int,
) -> None:
    """All cases of one broker."""
    sent, stored = (20_000, 40_000) if quick else (50_000, 100_000)

    def add(case: str, of: Callable[[str, Client], Callable[[], Sample]]) -> None:
        console.log(f"{node.name}: {case}")
        measures = {name: of(name, client) for name, client in sides.items()}
        report.add(case, interleave(measures, rounds=rounds, warm_up=WARM_UP))

    for size in (128, 1024):
        create_topic(node, f"BenchClients{size}", QUEUES)
        add(
            f"sends of {size} B, window {WINDOW}",
            lambda _, client, size=size: sending(client, node, size=size, count=sent),
        )
    groups = (f"BenchConsume{number}" for number in itertools.count())
    for size in (128, 1024):
        topic = f"BenchStored{size}"
        fill(node, topic, size=size, count=stored)
        add(
            f"push consumption of {stored:,} stored messages of {size} B",
            lambda _, client, topic=topic: consuming(
                client, node, groups=groups, topic=topic, count=stored
            ),
        )
    seconds = 2 if quick else LATENCY_SECONDS
    add(
        f"from send to listener at {PER_SECOND:,}/s, 128 B",
        lambda name, client: latency(client, node, name=name, count=seconds * PER_SECOND),
    )
