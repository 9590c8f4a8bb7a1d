"""Consumption end to end: our client at our broker beside Java's client at Java's broker.

* From send to listener, as fast as it goes: a producer and a consumer, each a process of its own.
* Latency from send to listener at 1,000 messages a second, both in one process.
* What a consumer of 64 empty queues costs.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.brokers import Node, both, create_topic
from bench.clients import JavaClient, address, latency
from bench.figures import CPU, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.python_client import PythonClient
from tests.compat.javaland import JavaDriver

QUEUES = 8
WINDOW = 256
IDLE_QUEUES = 64
PER_SECOND = 1000
#: Seconds that a consumer has to take its queues before something is sent.
READY_SECONDS = 3.0

PRODUCER_CPU = Figure("producer CPU", "µs/message", False)
CONSUMER_CPU = Figure("consumer CPU", "µs/message", False)
IDLE_CPU = Figure("CPU", "% of a core", False)

_FAST_JVM = ("-Xmx512m", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4")


@contextlib.contextmanager
def client_of(folder: Path, node: Node, role: str) -> Iterator[Any]:
    """The client of the broker's own kind, as a process."""
    if node.name == "sprocket":
        with PythonClient() as ours:
            yield ours
        return
    with JavaDriver(work=folder, name=f"{role}-{node.name}", jvm=_FAST_JVM) as driver:
        client = JavaClient(driver)
        client.call("producer.start", group="bench", namesrv=address(node))
        yield client


def flowing(
    node: Node, sender: Any, receiver: Any, *, size: int, count: int, ordered: bool
) -> Callable[[], Sample]:
    """Sends and consumes at the same time; timed from the first send to the last listener."""
    names = (f"BenchFlow{size}{'Ordered' * ordered}{number}" for number in itertools.count())
    threads = ThreadPoolExecutor(1)

    def measure() -> Sample:
        topic = next(names)
        create_topic(node, topic, QUEUES)
        consumed = threads.submit(
            receiver.call,
            "bench.consume",
            namesrv=address(node),
            topic=topic,
            group=topic,
            count=count,
            ordered=ordered,
        )
        time.sleep(READY_SECONDS)
        before, began = cpu_seconds(node.pid), time.perf_counter()
        sent = sender.call(
            "bench.send",
            namesrv=address(node),
            topic=topic,
            count=count,
            window=WINDOW,
            bodyBytes=size,
        )
        seen = consumed.result()
        return {
            RATE: count / (time.perf_counter() - began),
            PRODUCER_CPU: sent["cpuSeconds"] / count * 1e6,
            CONSUMER_CPU: seen["cpuSeconds"] / count * 1e6,
            CPU: (cpu_seconds(node.pid) - before) / count * 1e6,
        }

    return measure


def idling(node: Node, client: Any, *, seconds: int) -> Callable[[], Sample]:
    topic = "BenchIdle"
    create_topic(node, topic, IDLE_QUEUES)

    def measure() -> Sample:
        seen = client.call(
            "bench.idle",
            namesrv=address(node),
            topic=topic,
            group=topic,
            settleSeconds=5,
            seconds=seconds,
        )
        return {IDLE_CPU: 100 * seen["cpuSeconds"] / seen["seconds"]}

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints one table."""
    with both(folder) as nodes, contextlib.ExitStack() as stack:
        report = Report("consumption: Python at Sprocket, Java at Java", list(nodes))
        senders = {
            name: stack.enter_context(client_of(folder, node, "sender"))
            for name, node in nodes.items()
        }
        receivers = {
            name: stack.enter_context(client_of(folder, node, "receiver"))
            for name, node in nodes.items()
        }

        def add(
            case: str, of: Callable[[str, Node], Callable[[], Sample]], *, warm_up: int = 1
        ) -> None:
            console.log(case)
            sides = {name: of(name, node) for name, node in nodes.items()}
            report.add(case, interleave(sides, rounds=rounds, warm_up=warm_up))

        count = 20_000 if quick else 60_000
        for ordered, size in ((False, 128), (False, 1024), (True, 128), (True, 1024)):
            add(
                f"{'ordered' if ordered else 'concurrent'}, {size} B, from send to listener",
                lambda name, node, size=size, ordered=ordered: flowing(
                    node, senders[name], receivers[name], size=size, count=count, ordered=ordered
                ),
                warm_up=2,
            )
        seconds = 2 if quick else 10
        add(
            f"latency from send to listener at {PER_SECOND:,}/s, 128 B",
            lambda name, node: latency(
                receivers[name], node, name=f"Consume{name}", count=seconds * PER_SECOND
            ),
        )
        add(
            f"an idle consumer of {IDLE_QUEUES} queues",
            lambda name, node: idling(node, receivers[name], seconds=5 if quick else 20),
            warm_up=0,
        )
        report.show(console)
