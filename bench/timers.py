"""Messages that wait, by level and for a time of their own: what sending them costs, how late they
come, and what a million of them take, beside the Java broker.

A broker that must wait for a processor is late, whatever it does: beside the lateness stands how
long its threads were ready and did not run.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, java_missing, java_node, sprocket_node
from bench.figures import (
    CPU,
    P50,
    P99,
    RATE,
    Figure,
    Report,
    Sample,
    cpu_seconds,
    interleave,
    resident_mib,
)
from bench.load import drive, frame, send_fields
from sprocket.client.blocking import PullConsumer
from sprocket.message.message import StoredMessage
from sprocket.message.queue import QueueId

TOPIC = "BenchTimers"
QUEUES = 4
#: Different messages that a run goes round.
MESSAGES = 8192
MEMORY = Figure("own memory", "MiB", False)
WORST = Figure("latest", "ms", False)
EARLY = Figure("early", "messages", False)
READY = Figure("ready, not running", "ms/s", False)
_WAIT = "WAIT\x01true\x02"


def asking(number: int, wish: str) -> tuple[bytes, bytes]:
    """A send of 128 bytes whose properties end with a wish."""
    fields = send_fields(TOPIC, number % QUEUES, number)
    fields["g"] = str(int(time.time() * 1000))
    fields["i"] += wish
    return frame(310, fields, b"x" * 128)


def timed(number: int, due_ms: int) -> tuple[bytes, bytes]:
    return asking(number, f"TIMER_DELIVER_MS\x01{due_ms}\x02")


def send(node: Node, frames: list[tuple[bytes, bytes]], total: int, in_flight: int = 256) -> Sample:
    before = cpu_seconds(node.pid)
    seen = drive(node.broker_port, frames, total=total, in_flight=in_flight)
    if seen.refused:
        raise RuntimeError(f"{node.name} refused {seen.refused} sends: {seen.first_refusal!r}")
    cpu = (cpu_seconds(node.pid) - before) / seen.answered * 1e6
    return {RATE: seen.per_second, CPU: cpu, P99: seen.quantile_ms(0.99)}


def costs(node: Node, kind: str, total: int) -> Callable[[], Sample]:
    """Sends of one kind; what waits is due in two hours, spread over twenty minutes."""

    def measure() -> Sample:
        first_ms = int(time.time() * 1000) + 7_200_000
        wishes = {
            "at once": lambda n: asking(n, ""),
            "with a time": lambda n: timed(n, first_ms + n * 600),
            "with a level": lambda n: asking(n, "DELAY\x0118\x02"),
        }
        return send(node, [wishes[kind](n) for n in range(MESSAGES)], total)

    return measure


def delivered(
    node: Node, count: int, begin: dict[int, int], within_s: float
) -> list[StoredMessage]:
    """The messages that come behind offsets, once there are so many."""
    names = f"127.0.0.1:{node.nameserver_port}"
    found: list[StoredMessage] = []
    with PullConsumer("bench_timers", nameservers=names) as consumer:
        until = time.monotonic() + within_s
        while len(found) < count and time.monotonic() < until:
            before = len(found)
            for queue in consumer.queues(TOPIC):
                pulled = consumer.pull(queue, begin.get(queue.number, 0))
                begin[queue.number] = pulled.next_offset
                found += pulled.messages
            if len(found) == before:
                time.sleep(0.2)
    if len(found) < count:
        raise RuntimeError(f"{node.name}: {len(found)} of {count} messages came")
    return found


def offsets(node: Node) -> dict[int, int]:
    names = f"127.0.0.1:{node.nameserver_port}"
    with PullConsumer("bench_timers", nameservers=names) as consumer:
        return {queue.number: consumer.max_offset(queue) for queue in consumer.queues(TOPIC)}


def scheduled(node: Node, offset: int | None) -> tuple[dict[str, int], int]:
    """When messages of level 1 were stored from an offset on, by unique key; the queue's end."""
    names = f"127.0.0.1:{node.nameserver_port}"
    found: dict[str, int] = {}
    with PullConsumer("bench_timers", nameservers=names) as consumer:
        (queue, *_) = consumer.queues(TOPIC)
        queue = QueueId("SCHEDULE_TOPIC_XXXX", queue.broker, 0)
        end = int(consumer.max_offset(queue))
        offset = end if offset is None else offset
        while offset < end:
            pulled = consumer.pull(queue, offset)
            found.update((m.properties["UNIQ_KEY"], m.stored_ms) for m in pulled.messages)
            offset = int(pulled.next_offset)
    return found, end


def ready_ms(node: Node) -> float:
    """For how long all threads of a broker together have waited for a processor (Linux)."""
    total = 0
    for path in Path(f"/proc/{node.pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # a thread that has ended
            total += int(path.read_text().split()[1])
    return total / 1e6


def lateness(late_ms: list[int]) -> Sample:
    late_ms.sort()
    return {
        P50: float(late_ms[len(late_ms) // 2]),
        P99: float(late_ms[int(len(late_ms) * 0.99)]),
        WORST: float(late_ms[-1]),
        EARLY: float(sum(late < 0 for late in late_ms)),
    }


def times(node: Node, per_second: int, seconds: int) -> Callable[[], Sample]:
    """How late messages come that are due at a steady rate, each at a millisecond of its own."""

    def measure() -> Sample:
        begin = offsets(node)
        first_ms = int(time.time() * 1000) + 3_000
        count = per_second * seconds
        for start in range(0, count, MESSAGES):
            numbers = range(start, min(start + MESSAGES, count))
            send(node, [timed(n, first_ms + n * 1000 // per_second) for n in numbers], len(numbers))
        time.sleep(max(0.0, first_ms / 1000 - time.time()))
        before = ready_ms(node)
        time.sleep(seconds)
        waited = (ready_ms(node) - before) / seconds
        time.sleep(1)
        came = delivered(node, count, begin, 60)
        late_ms = [m.stored_ms - int(m.properties["TIMER_DELIVER_MS"]) for m in came]
        return {**lateness(late_ms), READY: waited}

    return measure


def levels(node: Node, per_second: int, seconds: int) -> Callable[[], Sample]:
    """How late messages of level 1 (1 s) come that were sent at a steady rate.

    Counted from when the broker stored them in the queue of their level.
    """

    def measure() -> Sample:
        begin, waiting_from = offsets(node), scheduled(node, None)[1]
        tick_s, count = 0.05, 0
        before, next_tick = ready_ms(node), time.monotonic()
        while count < per_second * seconds:
            numbers = range(count, count + int(per_second * tick_s))
            send(node, [asking(n, "DELAY\x011\x02") for n in numbers], len(numbers))
            count += len(numbers)
            next_tick += tick_s
            time.sleep(max(0.0, next_tick - time.monotonic()))
        waited = (ready_ms(node) - before) / seconds
        time.sleep(2)
        came = delivered(node, count, begin, 60)
        since = scheduled(node, waiting_from)[0]
        late_ms = [m.stored_ms - since[m.properties["UNIQ_KEY"]] - 1_000 for m in came]
        return {**lateness(late_ms), READY: waited}

    return measure


def fill(node: Node, kind: str, count: int) -> Sample:
    """Lets a million or so wait; what the broker's own memory is then."""
    step = 50_000
    for start in range(0, count, step):
        costs(node, kind, min(step, count - start))()
    time.sleep(2)
    return {MEMORY: resident_mib(node.pid)["anonymous"]}


@contextlib.contextmanager
def nodes(folder: Path) -> Iterator[dict[str, Node]]:
    """Both brokers; Java's with its timers on."""
    with contextlib.ExitStack() as stack:
        found = {"sprocket": stack.enter_context(sprocket_node(folder))}
        if java_missing() is None:
            sizes = {"timerWheelEnable": "true", "mappedFileSizeTimerLog": str(100 << 20)}
            found["java"] = stack.enter_context(java_node(folder, **sizes))
        for node in found.values():
            create_topic(node, TOPIC, QUEUES)
        yield found


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the tables."""
    total = 10_000 if quick else 20_000
    seconds = 2 if quick else 4
    waits = {"with a time": 1_000_000, "with a level": 200_000}
    if quick:
        waits = {kind: count // 10 for kind, count in waits.items()}
    with nodes(folder) as found:
        report = Report("messages that wait: sending", list(found))
        for kind in ("at once", "with a time", "with a level"):
            sides = {name: costs(node, kind, total) for name, node in found.items()}
            console.log(kind)
            report.add(f"send {kind}", interleave(sides, rounds=rounds))
        report.show(console)
        late = Report("messages that wait: lateness", list(found))
        memory = Report("messages that wait: memory", list(found))
        begin = {name: [{MEMORY: resident_mib(n.pid)["anonymous"]}] for name, n in found.items()}
        memory.add("before", begin)
        for others in ({}, waits):
            more = f"{sum(others.values()):,} others wait"
            for kind, count in others.items():
                console.log(f"{count:,} {kind}")
                filled = {name: [fill(node, kind, count)] for name, node in found.items()}
                memory.add(f"{count:,} more {kind}", filled)
            for case, measure, rate in (
                ("due at their times", times, 2000),
                ("due at level 1", levels, 1000),
            ):
                sides = {name: measure(node, rate, seconds) for name, node in found.items()}
                text = f"{rate:,}/s {case}, {more}"
                console.log(text)
                late.add(text, interleave(sides, rounds=rounds, warm_up=0))
        late.show(console)
        memory.show(console)
