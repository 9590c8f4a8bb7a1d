"""Clients of RocketMQ's gRPC service: sends and receives, beside RocketMQ's own proxy and broker.

The load is a program in Go that makes bare calls (`grpc_load`), the same for all. The processor
time is that of all server processes together. "In one process" is `sprocket standalone`; "proxy
apart" is `sprocket proxy` before a broker. RocketMQ's proxy stands before its broker.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, free_port, java_missing, java_node, sprocket_node
from bench.figures import CPU, P50, P99, RATE, Report, Sample, cpu_seconds, interleave

TOPIC, GROUP = "BenchGrpc", "bench"
QUEUES = 8
_LOAD = Path(__file__).parent / "grpc_load"
_SECONDS_MAX = 300
#: Callers of a receive run may get so many messages more than it counts.
_SURPLUS = 64 * 32


@dataclass(frozen=True, slots=True)
class Service:
    """Where the service is, and the processes behind it."""

    endpoint: str
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """Seconds of all processes so far."""
        return sum(map(cpu_seconds, self.pids))


@contextlib.contextmanager
def in_one_process(folder: Path) -> Iterator[Service]:
    """`sprocket standalone`."""
    port = free_port()
    with sprocket_node(folder, "--grpc-port", str(port)) as node:
        create_topic(node, TOPIC, QUEUES)
        yield Service(f"127.0.0.1:{port}", (node.pid,))


@contextlib.contextmanager
def proxy_apart(folder: Path) -> Iterator[Service]:
    """`sprocket proxy` before a broker."""
    with sprocket_node(folder / "apart") as node, _proxy(node) as service:
        create_topic(node, TOPIC, QUEUES)
        yield service


@contextlib.contextmanager
def _proxy(node: Node) -> Iterator[Service]:
    command = [
        sys.executable, "-m", "sprocket", "proxy",
        "--nameserver", f"127.0.0.1:{node.nameserver_port}", "--port", "0",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("the proxy did not start")
            yield Service(line.split()[-1], (node.pid, process.pid))
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def java(folder: Path) -> Iterator[Service]:
    """RocketMQ's proxy before its broker."""
    from tests.compat.javaproxy import JavaProxy

    with java_node(folder) as node:
        create_topic(node, TOPIC, QUEUES)
        with JavaProxy.cluster(folder, f"127.0.0.1:{node.nameserver_port}") as proxy:
            yield Service(proxy.endpoint, (node.pid, proxy.pid))


#: The ways of ours, each in a table of its own.
WAYS = (("in one process", in_one_process), ("proxy apart", proxy_apart))


def program(folder: Path) -> Path:
    """The load, built."""
    if shutil.which("go") is None:
        raise RuntimeError("this bench needs Go, for the load")
    made = folder / "grpcload"
    command = ["go", "build", "-mod=mod", "-o", str(made), "."]
    source = folder / "grpc_load"
    shutil.copytree(_LOAD, source)
    subprocess.run(command, cwd=source, check=True)
    return made


def load(
    path: Path, service: Service, mode: str, *, total: int, in_flight: int
) -> dict[str, float]:
    """One run of the load."""
    command = [
        str(path), "-endpoint", service.endpoint, "-mode", mode, "-topic", TOPIC, "-group", GROUP,
        "-total", str(total), "-flight", str(in_flight),
    ]  # fmt: skip
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, timeout=_SECONDS_MAX
    )
    seen: dict[str, float] = json.loads(done.stdout)
    return seen


def measurement(
    path: Path, service: Service, mode: str, *, total: int, in_flight: int
) -> Callable[[], Sample]:
    def measure() -> Sample:
        if mode == "receive":
            load(path, service, "send", total=total + _SURPLUS, in_flight=64)
        before = service.cpu()
        seen = load(path, service, mode, total=total, in_flight=in_flight)
        return {
            RATE: seen["count"] / seen["seconds"],
            CPU: (service.cpu() - before) / seen["count"] * 1e6,
            P50: seen["p50"],
            P99: seen["p99"],
        }

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints a table for each way of ours, beside RocketMQ's."""
    path = program(folder)
    for title, ours in WAYS:
        with contextlib.ExitStack() as stack:
            sides = {"sprocket": stack.enter_context(ours(folder))}
            if java_missing() is None:
                sides["java"] = stack.enter_context(java(folder / title.replace(" ", "-")))
            report = Report(f"gRPC, {title}: 128 B, asynchronous flush", list(sides))
            for service in sides.values():
                load(path, service, "receive", total=0, in_flight=8)
                load(path, service, "send", total=20_000, in_flight=64)
                load(path, service, "receive", total=15_000, in_flight=8)
            for mode in ("send", "receive"):
                for in_flight in (1, 64):
                    total = (4_000 if in_flight == 1 else 20_000) // (2 if quick else 1)
                    case = f"{mode}, {in_flight} in flight"
                    console.log(f"{title}: {case}")
                    runs = {
                        name: measurement(path, each, mode, total=total, in_flight=in_flight)
                        for name, each in sides.items()
                    }
                    report.add(case, interleave(runs, rounds=rounds))
            report.show(console)
