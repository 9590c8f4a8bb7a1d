"""Brokers behind one command (`--processes`): CPU a message of all processes, and what they can do.

The machine that measures has few cores, and the load generator takes some of them. So a rate is
also given without it: what the brokers would take on cores of their own, by the CPU that each of
them needed for its messages. The processes of the parent and of all brokers count.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, free_port
from bench.figures import CPU, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.load import Outcome, drive
from bench.send import GENERATOR, TOPIC, messages

COUNTS = (1, 2, 4)
QUEUES = 8
SIZE, CONNECTIONS, IN_FLIGHT = 128, 4, 64
ALONE = Figure("rate with a core for each broker", "/s", True)
PART = Figure("part of N times one broker", "", True)


@dataclass(frozen=True, slots=True)
class Brokers:
    """Brokers that run: their ports, and their processes; `parent` is one more, or one of them."""

    ports: tuple[int, ...]
    pids: tuple[int, ...]
    parent: int


@contextlib.contextmanager
def running(folder: Path, count: int) -> Iterator[Brokers]:
    """So many brokers, behind one command if they are several."""
    command = [
        sys.executable, "-m", "sprocket", "standalone", "--grpc-port", "off",
        "--store", str(folder / f"of-{count}"), "--set", "container.port=0",
        "--nameserver-port", str(free_port()), "--broker-port", str(free_port()),
        *(("--processes", str(count)) if count > 1 else ()),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            ports = tuple(map(int, re.findall(r"broker\S* 127\.0\.0\.1:(\d+)", line)))
            if len(ports) != count:
                raise RuntimeError(f"not all brokers started: {line}")
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            pids = tuple(map(int, children.split())) if count > 1 else (process.pid,)
            yield Brokers(ports, pids, process.pid)
        finally:
            process.terminate()
            process.wait(60)


def load(port: int, total: int) -> Outcome:
    """Sends of one generator to one broker."""
    seen = drive(
        port, messages(TOPIC, QUEUES, SIZE), total=total, connections=CONNECTIONS,
        in_flight=IN_FLIGHT,
    )  # fmt: skip
    if seen.refused:
        raise RuntimeError(f"port {port} refused {seen.refused} sends: {seen.first_refusal!r}")
    return seen


def measurement(
    brokers: Brokers, generators: ProcessPoolExecutor, total: int, one: list[float]
) -> Callable[[], Sample]:
    """A run: a generator for each broker, all at the same time.

    Args:
        one: gets what a single broker takes on a core of its own, from the first of all runs on.
    """

    def measure() -> Sample:
        count = len(brokers.ports)
        before = {pid: cpu_seconds(pid) for pid in {*brokers.pids, brokers.parent}}
        work = partial(load, total=total // count)
        seen = list(generators.map(work, brokers.ports))
        used = {pid: cpu_seconds(pid) - at for pid, at in before.items()}
        answered = sum(each.answered for each in seen)
        alone = sum(answered / count / used[pid] for pid in brokers.pids)
        if count == 1:
            one[:] = [alone]
        return {
            RATE: min(each.per_second for each in seen) * count,
            CPU: sum(used.values()) / answered * 1e6,
            GENERATOR: sum(each.cpu_seconds for each in seen) / answered * 1e6,
            ALONE: alone,
            PART: alone / count / one[0],
        }

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table."""
    total = 40_000 if quick else 160_000
    one: list[float] = []
    with contextlib.ExitStack() as stack:
        generators = stack.enter_context(ProcessPoolExecutor(max(COUNTS)))
        sides = {}
        for count in COUNTS:
            brokers = stack.enter_context(running(folder, count))
            for port in brokers.ports:
                node = Node("sprocket", 0, port, brokers.parent)
                create_topic(node, TOPIC, QUEUES)
                load(port, 5_000)
            sides[str(count)] = measurement(brokers, generators, total, one)
        report = Report("sends of 128 B by number of processes", list(sides))
        report.add(f"{CONNECTIONS} connections a broker, {IN_FLIGHT} in flight",
                   interleave(sides, rounds=rounds))  # fmt: skip
        report.show(console)
