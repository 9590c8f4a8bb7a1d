"""A master with a slave: rate of sends, CPU of both for a message, and how fast a slave catches up.

Beside Java's: `ASYNC_MASTER`, and `SYNC_MASTER`, which waits for the slave (`inSyncReplicas=2`).
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, create_topic, java_missing
from bench.figures import P50, P99, RATE, Figure, Report, Sample, cpu_seconds, interleave
from bench.load import drive, frame
from bench.send import QUEUES, TOPIC, messages
from tests.compat.javaland import JavaBroker
from tests.compat.sprocketland import SprocketBroker, SprocketNameServer

_BODY_BYTES = 128
_FOLLOW_SECONDS = 120.0
_AGAIN_SECONDS = 0.005
_BROKER_STATE = 28

MASTER_CPU = Figure("master CPU", "µs/message", False)
SLAVE_CPU = Figure("slave CPU", "µs/message", False)
BOTH_CPU = Figure("CPU of both", "µs/message", False)
APPLIED = Figure("slave takes in", "messages/s", True)

_ROLES = ("ASYNC_MASTER", "SYNC_MASTER")
_SIZES = {"mappedFileSizeCommitLog": 1 << 30, "mappedFileSizeConsumeQueue": 6_000_000}
_OUR_SIZES = {"store.log_file_bytes": 1 << 30, "store.queue_file_bytes": 6_000_000}
_JVM = ("-Xmx1g", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:TieredStopAtLevel=4")


@dataclass(slots=True)
class Pair:
    """A master and its slave; the slave may be stopped and started again."""

    master: SprocketBroker | JavaBroker
    slave: SprocketBroker | JavaBroker

    @property
    def node(self) -> Node:
        """The master, as other measurements take it."""
        return Node(self.master.name, 0, self.master.port, self.master.pid)


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the tables."""
    for role in _ROLES:
        with _pairs(folder / role, role) as pairs:
            for pair in pairs.values():
                create_topic(pair.node, TOPIC, QUEUES)
                _send(pair, 20_000, in_flight=64)
            report = Report(f"a master with a slave, {role}", list(pairs))
            for in_flight in (1, 64) if quick else (1, 64, 256):
                total = 4_000 if in_flight == 1 else 30_000
                case = f"{_BODY_BYTES} B, {in_flight} in flight"
                console.log(role, case)
                sides = {name: _measurement(pair, total, in_flight) for name, pair in pairs.items()}
                report.add(case, interleave(sides, rounds=rounds))
            if role == "ASYNC_MASTER":
                total = 100_000 if quick else 300_000
                console.log("a slave catches up")
                samples = {name: [_catch_up(pair, total)] for name, pair in pairs.items()}
                report.add(f"{total:,} messages missed", samples)
            report.show(console)


@contextlib.contextmanager
def _pairs(folder: Path, role: str) -> Iterator[dict[str, Pair]]:
    """Sprocket's pair, and Java's beside it where it can be had."""
    with contextlib.ExitStack() as stack:
        names = stack.enter_context(SprocketNameServer(folder))
        address = names.address

        def ours(name: str, **settings: object) -> SprocketBroker:
            words = {f"broker.{key}": value for key, value in settings.items()}
            broker = SprocketBroker(
                folder / name, address, name="ours", settings={**_OUR_SIZES, **words}
            )
            return stack.enter_context(broker)

        def java(number: int, **settings: object) -> JavaBroker:
            broker = JavaBroker(
                folder, address, name="java", broker_id=number,
                settings={**_SIZES, **settings}, jvm=_JVM,
            )  # fmt: skip
            return stack.enter_context(broker)

        pairs = {"sprocket": Pair(ours("master", role=role), ours("slave", role="SLAVE", id=1))}
        if java_missing() is None:
            copies = 2 if role == "SYNC_MASTER" else 1
            master = java(0, brokerRole=role, inSyncReplicas=copies, minInSyncReplicas=copies)
            pairs["java"] = Pair(master, java(1))
        for pair in pairs.values():
            _until_equal(pair)
        yield pairs


def _measurement(pair: Pair, total: int, in_flight: int) -> Callable[[], Sample]:
    return lambda: _send(pair, total, in_flight=in_flight)


def _send(pair: Pair, total: int, *, in_flight: int) -> Sample:
    """Sends, waits until the slave has it, and tells what it cost."""
    processes = [each for each in (pair.master, pair.slave) if each.is_running]
    before = [cpu_seconds(each.pid) for each in processes]
    seen = drive(
        pair.master.port, messages(TOPIC, QUEUES, _BODY_BYTES), total=total,
        connections=min(8, in_flight), in_flight=in_flight,
    )  # fmt: skip
    if seen.refused:
        raise RuntimeError(f"{pair.master.name} refused {seen.refused}: {seen.first_refusal!r}")
    if pair.slave.is_running:
        _until_equal(pair)
    spent = [
        (cpu_seconds(each.pid) - was) / seen.answered * 1e6
        for each, was in zip(processes, before, strict=True)
    ]
    return {
        RATE: seen.per_second,
        P50: seen.quantile_ms(0.5),
        P99: seen.quantile_ms(0.99),
        MASTER_CPU: spent[0],
        SLAVE_CPU: sum(spent[1:]),
        BOTH_CPU: sum(spent),
    }


def _catch_up(pair: Pair, total: int) -> Sample:
    """Stops the slave, sends, starts it again, and measures from its first new message on."""
    before = _end(pair.master.port)
    pair.slave.stop()
    seen = _send(pair, total, in_flight=256)
    end = _end(pair.master.port)
    pair.slave.start()
    while (first := _end(pair.slave.port)) <= before:
        time.sleep(_AGAIN_SECONDS)
    began = time.monotonic()
    _until_equal(pair)
    messages_left = (end - first) * total / (end - before)
    return {RATE: seen[RATE], APPLIED: messages_left / max(time.monotonic() - began, 1e-3)}


def _until_equal(pair: Pair) -> None:
    give_up = time.monotonic() + _FOLLOW_SECONDS
    while _end(pair.slave.port) < _end(pair.master.port):
        if time.monotonic() > give_up:
            raise RuntimeError(f"the slave of {pair.master.name} does not follow")
        time.sleep(_AGAIN_SECONDS)


def _end(port: int) -> int:
    """The end of a broker's log, from its figures; 0 if it gives none."""
    head, tail = frame(_BROKER_STATE, {})
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(head + b"10000000" + tail)
            reply = b""
            while len(reply) < 4 or len(reply) < 4 + int.from_bytes(reply[:4]):
                reply += connection.recv(1 << 16)
    except OSError:
        return 0
    header = int.from_bytes(reply[4:8]) & 0xFFFFFF
    body = reply[8 + header :]
    return int(json.loads(body)["table"]["commitLogMaxOffset"]) if body else 0
