"""Consumption end to end: our client at our broker beside Java's client at Java's broker.

* From send to listener, as fast as it goes: a producer and a consumer, each a process of its own.
* Latency from send to listener at 1,000 messages a second, both in one process.
* What a consumer of 64 empty queues costs.
* How long messages wait while members of a group come, go and are killed.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from bench.brokers import Node, both, create_topic
from bench.clients import JavaClient, address, latency
from bench.figures import CPU, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.python_client import Json, PythonClient
from sprocket import Message
from sprocket.client.blocking import Producer
from tests.compat.javaland import JavaDriver

QUEUES = 8
WINDOW = 256
IDLE_QUEUES = 64
PER_SECOND = 1000
#: Seconds that a consumer has to take its queues before something is sent.
READY_SECONDS = 3.0
#: Seconds after a change in a group in which waiting messages count for it.
WATCH_SECONDS = 8.0
MEMBERS_PER_SECOND = 100

PRODUCER_CPU = Figure("producer CPU", "µs/message", False)
CONSUMER_CPU = Figure("consumer CPU", "µs/message", False)
IDLE_CPU = Figure("CPU", "% of a core", False)
JOIN = Figure("longest wait after a join", "s", False)
LEAVE = Figure("longest wait after a leave", "s", False)
KILL = Figure("longest wait after a kill", "s", False)

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


class Member(Protocol):
    """A member of a group, in a process of its own."""

    def join(self, namesrv: str, topic: str, *, ordered: bool) -> None:
        """Starts the process, and begins to listen."""
        ...

    def heard(self) -> list[tuple[int, int]]:
        """When messages were sent, and how late they were, since it was asked last; both in ns."""
        ...

    def leave(self) -> None:
        """Ends in order."""
        ...

    def kill(self) -> None:
        """Ends as a crash would."""
        ...


class PythonMember:
    """One of ours."""

    def __init__(self, folder: Path, name: str) -> None:
        self._client = PythonClient()

    def join(self, namesrv: str, topic: str, *, ordered: bool) -> None:
        self._client.call("bench.join", namesrv=namesrv, topic=topic, group=topic, ordered=ordered)

    def heard(self) -> list[tuple[int, int]]:
        return [(sent, late) for sent, late in self._client.call("bench.heard")["heard"]]

    def leave(self) -> None:
        self._client.call("bench.leave")
        self._client.kill()

    def kill(self) -> None:
        self._client.kill()


class JavaMember(JavaDriver):
    """One of Java's: its events are read as they come."""

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(work=folder, name=name)
        self._came: list[tuple[int, int]] = []

    def join(self, namesrv: str, topic: str, *, ordered: bool) -> None:
        self.start()
        self.call("consumer.start", group=topic, topic=topic, namesrv=namesrv, orderly=ordered)

    def heard(self) -> list[tuple[int, int]]:
        came, self._came = self._came, []
        return came

    def leave(self) -> None:
        self.call("consumer.stop")
        self.kill()

    def _hear(self, event: Json) -> None:
        super()._hear(event)
        if event["event"] == "message":
            sent = int(event["body"])
            self._came.append((sent, time.time_ns() - sent))


class Sending:
    """Sends the time of day to each queue in turn, all the time."""

    def __init__(self, node: Node, topic: str) -> None:
        self._topic = topic
        self._namesrv = address(node)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _send(self) -> None:
        with Producer("bench", nameservers=self._namesrv) as producer:
            queues = itertools.cycle(producer.queues(self._topic))
            while not self._is_over.wait(1 / MEMBERS_PER_SECOND):
                body = str(time.time_ns()).encode()
                producer.send(Message(self._topic, body), queue=next(queues))


def regrouping(node: Node, folder: Path, *, ordered: bool) -> Callable[[], Sample]:
    """A group of two gets a third, loses one in order, and one by a kill, while messages come.

    Nobody is killed in an ordered group: there the lease has to run out first.
    """
    names = (f"BenchGroup{'Ordered' * ordered}{number}" for number in itertools.count())
    kind: Callable[[Path, str], Member] = PythonMember if node.name == "sprocket" else JavaMember

    def measure() -> Sample:
        topic = next(names)
        create_topic(node, topic, QUEUES)
        members = [kind(folder, f"{topic}-{number}") for number in range(3)]
        try:
            with Sending(node, topic):
                for member in members[:2]:
                    member.join(address(node), topic, ordered=ordered)
                worst_wait(members[:2])
                members[2].join(address(node), topic, ordered=ordered)
                waits = {JOIN: worst_wait(members)}
                members[0].leave()
                waits[LEAVE] = worst_wait(members[1:])
                if not ordered:
                    members[1].kill()
                    waits[KILL] = worst_wait(members[2:])
        finally:
            for member in members:
                member.kill()
        return waits

    return measure


def worst_wait(members: Sequence[Member]) -> float:
    """The longest time, in seconds, that a message sent within the next seconds waited."""
    began = time.time_ns()
    time.sleep(WATCH_SECONDS)
    heard = [each for member in members for each in member.heard()]
    return max(late for sent, late in heard if sent >= began) / 1e9


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
        for ordered in (False, True):
            add(
                f"{'an ordered' if ordered else 'a'} group that changes, "
                f"{MEMBERS_PER_SECOND} messages a second",
                lambda name, node, ordered=ordered: regrouping(node, folder, ordered=ordered),
                warm_up=0,
            )
        report.show(console)
