"""Pop consumption: rate and CPU of the broker per message popped and acknowledged, beside Java;
pops in order; pops that wait; and what a million messages in flight cost in memory.

A worker pops up to 32 messages, acknowledges each by a request of its own, as Java's consumers do,
and pops again.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, both, create_topic, sprocket_node
from bench.figures import CPU, RATE, Figure, Report, Sample, cpu_seconds, interleave, resident_mib
from bench.load import drive, frame
from bench.send import messages

QUEUES, BATCH = 8, 32
_PREFIX = struct.Struct(">ii")
_INVISIBLE_MS = 600_000
POPS = Figure("pops of 32", "/s", True)
IDLE = Figure("broker CPU, idle", "ms/s", False)
MEMORY = Figure("resident", "MiB", False)


def pop_fields(
    topic: str, group: str, *, count: int = BATCH, poll_ms: int = 0, order: bool = False
) -> dict[str, str]:
    """Header fields of a pop of all queues (200050)."""
    return {
        "consumerGroup": group, "topic": topic, "queueId": "-1", "maxMsgNums": str(count),
        "invisibleTime": str(_INVISIBLE_MS), "pollTime": str(poll_ms),
        "bornTime": str(int(time.time() * 1000)), "initMode": "0", "exp": "*", "expType": "TAG",
        "order": "true" if order else "false",
    }  # fmt: skip


def acks_of(
    fields: dict[str, str], topic: str, group: str, broker: str
) -> Iterator[dict[str, str]]:
    """Header fields of the acknowledgements (200051) of all messages in the reply to a pop."""
    starts = {}
    for part in fields["startOffsetInfo"].split(";"):
        kind, queue, start = part.split(" ")
        starts[kind, queue] = start
    for part in fields["msgOffsetInfo"].split(";"):
        kind, queue, offsets = part.split(" ")
        for offset in offsets.split(","):
            handle = (
                f"{starts[kind, queue]} {fields['popTime']} {fields['invisibleTime']} "
                f"{fields['reviveQid']} {kind} {broker} {queue} {offset}"
            )
            yield {
                "consumerGroup": group, "topic": topic, "queueId": queue, "extraInfo": handle,
                "offset": offset,
            }  # fmt: skip


class PopLine:
    """One connection with a number of workers, each with one request in flight or more.

    Args:
        acks_at_once: acknowledgements that a worker sends before it waits for a reply.
    """

    def __init__(
        self, port: int, topic: str, *, group: str, broker: str, acks_at_once: int, order: bool
    ) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._topic, self._group, self._broker = topic, group, broker
        self._pop = frame(200050, pop_fields(topic, group, order=order))
        self._acks_at_once = acks_at_once
        self._opaque = 10_000_000
        #: By opaque, the acknowledgements that the worker has still to send.
        self._flying: dict[int, deque[dict[str, str]]] = {}
        self._open: dict[int, int] = {}
        self._out: list[bytes] = []
        self._rest = b""
        self.popped = self.acked = self.pops = 0
        self.is_empty = False

    def _send(self, halves: tuple[bytes, bytes], worker: deque[dict[str, str]]) -> None:
        self._opaque += 1
        self._flying[self._opaque] = worker
        self._out.append(b"%b%d%b" % (halves[0], self._opaque, halves[1]))

    def run(self, workers: int) -> None:
        """Pops and acknowledges until the topic is empty."""
        for _ in range(workers):
            self._send(self._pop, deque())
        while self._flying or self._out:
            self.socket.sendall(b"".join(self._out))
            self._out.clear()
            self._take(self.socket.recv(1 << 20))

    def pop_all(self) -> None:
        """Pops until the topic is empty, and acknowledges nothing."""
        self._acks_at_once = 0
        while True:
            before = self.popped
            for _ in range(8):
                self._send(self._pop, deque())
            while self._flying:
                if self._out:
                    self.socket.sendall(b"".join(self._out))
                    self._out.clear()
                self._take(self.socket.recv(1 << 20))
            self._open.clear()
            if self.popped == before:
                return

    def _take(self, data: bytes) -> None:
        data, at = self._rest + data, 0
        while len(data) - at >= 8:
            length, header = _PREFIX.unpack_from(data, at)
            if len(data) - at < 4 + length:
                break
            self._settle(json.loads(data[at + 8 : at + 8 + (header & 0xFFFFFF)]))
            at += 4 + length
        self._rest = data[at:]

    def _settle(self, reply: dict[str, object]) -> None:
        worker = self._flying.pop(int(str(reply["opaque"])))
        fields = reply.get("extFields") or {}
        if "startOffsetInfo" in fields and reply["code"] == 0:  # type: ignore[operator]
            acks = acks_of(fields, self._topic, self._group, self._broker)  # type: ignore[arg-type]
            worker.extend(acks)
            self.popped += len(worker)
            self.pops += 1
            self._open[id(worker)] = len(worker)
            for _ in range(min(self._acks_at_once, len(worker))):
                self._send(frame(200051, worker.popleft()), worker)
        elif id(worker) in self._open:
            if reply["code"] != 0:
                raise RuntimeError(f"an acknowledgement is refused: {reply}")
            self.acked += 1
            self._open[id(worker)] -= 1
            if worker:
                self._send(frame(200051, worker.popleft()), worker)
            elif not self._open[id(worker)]:
                del self._open[id(worker)]
                self._send(self._pop, worker)
        # else nothing was found: this worker ends


def fill(node: Node, topic: str, total: int, size: int = 128) -> None:
    """Sends so many messages to a new topic."""
    create_topic(node, topic, QUEUES)
    seen = drive(
        node.broker_port, messages(topic, QUEUES, size), total=total, connections=4, in_flight=128
    )
    if seen.refused:
        raise RuntimeError(f"{node.name} refused {seen.refused} sends")
    time.sleep(0.5)


def pop_run(
    node: Node, topic: str, *, workers: int, acks_at_once: int, order: bool = False
) -> tuple[PopLine, float, float]:
    """Pops all of a topic; the line, the seconds, and the broker's CPU seconds."""
    line = PopLine(
        node.broker_port, topic, group="bench_pop", broker="broker-a", acks_at_once=acks_at_once,
        order=order,
    )  # fmt: skip
    before, start = cpu_seconds(node.pid), time.perf_counter()
    line.run(workers)
    seconds, cpu = time.perf_counter() - start, cpu_seconds(node.pid) - before
    line.socket.close()
    if line.acked != line.popped or not line.acked:
        raise RuntimeError(f"{node.name}: {line.popped} popped, {line.acked} acknowledged")
    return line, seconds, cpu


def measurement(
    node: Node, total: int, *, workers: int, acks_at_once: int, order: bool
) -> Callable[[], Sample]:
    """A measurement that fills a topic of its own and pops it."""
    runs = 0

    def measure() -> Sample:
        nonlocal runs
        runs += 1
        topic = f"BenchPop{workers}_{acks_at_once}_{int(order)}_{runs}"
        fill(node, topic, total)
        line, seconds, cpu = pop_run(
            node, topic, workers=workers, acks_at_once=acks_at_once, order=order
        )
        return {RATE: line.acked / seconds, CPU: cpu / line.acked * 1e6, POPS: line.pops / seconds}

    return measure


def idle_cost(node: Node, pops: int, seconds: float) -> float:
    """The broker's CPU for pops that wait in vain, ms a second."""
    create_topic(node, "BenchIdle", QUEUES)
    halves = frame(200050, pop_fields("BenchIdle", "bench_idle", poll_ms=120_000))
    sockets = []
    for _ in range(0, pops, 500):
        line = socket.create_connection(("127.0.0.1", node.broker_port))
        line.sendall(
            b"".join(b"%b%d%b" % (halves[0], 10_000_000 + n, halves[1]) for n in range(500))
        )
        sockets.append(line)
    time.sleep(2)
    before = cpu_seconds(node.pid)
    time.sleep(seconds)
    spent = cpu_seconds(node.pid) - before
    for line in sockets:
        line.close()
    return spent / seconds * 1000


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the tables."""
    with both(folder) as nodes:
        for node in nodes.values():
            fill(node, "BenchWarm", 10_000)
            pop_run(node, "BenchWarm", workers=8, acks_at_once=8)
        report = Report("pop of up to 32 and an acknowledgement of each", list(nodes))
        for workers, acks_at_once, order in cases():
            total = (3_000 if workers == 1 else 20_000) // (2 if quick else 1)
            sides = {
                name: measurement(
                    node, total, workers=workers, acks_at_once=acks_at_once, order=order
                )
                for name, node in nodes.items()
            }
            kind = "in order, " if order else ""
            case = f"{kind}{workers} worker(s), {acks_at_once} acknowledgement(s) at once"
            console.log(case)
            report.add(case, interleave(sides, rounds=rounds))
        report.show(console)
        waiting = Report("1,000 pops that wait in vain", list(nodes))
        seconds = 3.0 if quick else 10.0
        idle = {
            name: lambda node=node: {IDLE: idle_cost(node, 1000, seconds)}
            for name, node in nodes.items()
        }
        waiting.add("1,000", interleave(idle, rounds=1))
        waiting.show(console)
    with sprocket_node(folder / "flying") as node:
        report = Report("messages popped and not acknowledged", ["sprocket"])
        total = 100_000 if quick else 1_000_000
        fill(node, "BenchFlying", total)
        report.add(f"{total:,} stored", {"sprocket": [memory(node)]})
        line = PopLine(
            node.broker_port, "BenchFlying", group="bench_flying", broker="broker-a",
            acks_at_once=0, order=False,
        )  # fmt: skip
        line.pop_all()
        report.add(f"{line.popped:,} in flight", {"sprocket": [memory(node)]})
        report.show(console)


def memory(node: Node) -> Sample:
    """What the broker's process has in memory, without its mapped files."""
    found = resident_mib(node.pid)
    return {MEMORY: found["anonymous"]}


def cases() -> list[tuple[int, int, bool]]:
    """(workers, acknowledgements at once, in order)."""
    return [(1, 1, False), (1, 32, False), (2, 32, False), (8, 1, True), (8, 32, True)]
