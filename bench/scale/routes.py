"""Many brokers at one name server: memory, registrations, routes."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from bench.brokers import free_port
from bench.figures import Figure, Report, Sample, cpu_seconds, resident_mib
from bench.load import drive, frame
from bench.scale.many import ManyConnections, whole
from sprocket.message.record import body_crc
from sprocket.protocol.bodies.body import DataVersion
from sprocket.protocol.bodies.topic import RegisterBody, TopicConfig, TopicTable
from sprocket.protocol.registration import encode

_TOPICS = 200
#: Rounds of heartbeats, and routes that are asked for.
_BEATS, _ASKED = 10, 20

MEMORY = Figure("memory", "MiB", False)
REGISTER = Figure("first registration, CPU", "ms", False)
AGAIN = Figure("the same again, CPU", "ms", False)
BEAT = Figure("heartbeat, CPU", "µs", False)
ROUTE = Figure("route of a topic at all brokers", "ms", False)
ROUTE_BYTES = Figure("its size", "kB", False)


@contextlib.contextmanager
def nameserver(folder: Path) -> Iterator[tuple[int, int]]:
    """A name server: its port and its process."""
    port = free_port()
    command = [
        sys.executable, "-m", "sprocket", "nameserver", "--port", str(port),
        "--store", str(folder),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield port, process.pid
        finally:
            process.terminate()
            process.wait(30)


def measure(console: Console, folder: Path, quick: bool) -> None:
    """Prints the table."""
    report = Report(f"brokers of {_TOPICS} topics at one name server", ["sprocket"])
    for count in (10, 100) if quick else (10, 100, 1_000):
        console.log(f"{count} brokers")
        report.add(f"{count:,}", {"sprocket": [_measured(folder / str(count), count)]})
    report.show(console)


def _measured(folder: Path, count: int) -> Sample:
    body = _body()
    registrations = [_registration(number, body) for number in range(count)]
    beats = [_beat(number) for number in range(count)]
    with nameserver(folder) as (port, pid), ManyConnections(port) as many:
        cpu = cpu_seconds(pid)
        many.join(registrations)
        first = _settled(many, pid, cpu, count)
        cpu = cpu_seconds(pid)
        many.say(registrations.__getitem__)
        again = _settled(many, pid, cpu, count)
        cpu = cpu_seconds(pid)
        for _ in range(_BEATS):
            many.say(beats.__getitem__)
        beat = _settled(many, pid, cpu, count)
        seen = drive(port, [frame(105, {"topic": "BenchTopic000"})], total=_ASKED)
        if not seen.answered:
            raise RuntimeError(f"no route: {seen.first_refusal!r}")
        return {
            MEMORY: resident_mib(pid)["anonymous"],
            REGISTER: first * 1000,
            AGAIN: again * 1000,
            BEAT: beat / _BEATS * 1e6,
            ROUTE: seen.quantile_ms(0.5),
            ROUTE_BYTES: seen.body_bytes / _ASKED / 1000,
        }


def _settled(many: ManyConnections, pid: int, cpu: float, count: int) -> float:
    """Seconds of CPU for each broker, once all is answered."""
    many.until_quiet()
    if many.replies < count:
        raise RuntimeError(f"{count - many.replies} of {count} requests were not accepted")
    many.forget()
    return (cpu_seconds(pid) - cpu) / count


def _body() -> bytes:
    names = [f"BenchTopic{number:03}" for number in range(_TOPICS)]
    topics = {name: TopicConfig(topic_name=name, perm=6) for name in names}
    table = TopicTable(topic_config_table=topics, data_version=DataVersion())
    return encode(RegisterBody(topics=table))


def _registration(number: int, body: bytes) -> bytes:
    crc = str(body_crc(body))
    return whole(103, {**_of(number), "compressed": "false", "bodyCrc32": crc}, body)


def _beat(number: int) -> bytes:
    return whole(904, {**_of(number), "heartbeatTimeoutMillis": "30000"})


def _of(number: int) -> dict[str, str]:
    return {
        "brokerName": f"bench-{number}", "clusterName": "bench", "brokerId": "0",
        "brokerAddr": f"10.0.{number >> 8}.{number & 255}:10911", "haServerAddr": "",
    }  # fmt: skip
