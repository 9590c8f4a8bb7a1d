"""Transactions a second, from the half message to its commit, beside the Java broker.

Each round stores half messages and then ends them as clients do: by a request that says where the
half lies. Java's clients send it one-way; here its answer is awaited, so that what is counted has
been carried out.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench.brokers import Node, both, create_topic
from bench.figures import CPU, P50, P99, RATE, Report, Sample, cpu_seconds, interleave
from bench.load import FIRST_OPAQUE, drive, frame, send_fields

TOPIC = "BenchTransactions"
GROUP = "bench_producer"
QUEUES = 4
COMMIT = 8
_PREFIX = struct.Struct(">ii")


def half(number: int, size: int) -> bytes:
    """A half message, as a whole frame."""
    fields = send_fields(TOPIC, number % QUEUES, number)
    fields["i"] += f"TRAN_MSG\x01true\x02PGROUP\x01{GROUP}\x02"
    fields["f"] = "4"
    head, tail = frame(310, fields, b"x" * size)
    return head + b"%d" % (FIRST_OPAQUE + number) + tail


def stored_halves(node: Node, first: int, count: int, *, in_flight: int, size: int) -> list[
    tuple[int, int]
]:  # fmt: skip
    """Sends halves; their log offsets and offsets in the half queue."""
    found: list[tuple[int, int]] = []
    with socket.create_connection(("127.0.0.1", node.broker_port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent, rest = 0, b""
        while len(found) < count:
            upto = min(count, len(found) + in_flight)
            if sent < upto:
                line.sendall(b"".join(half(first + n, size) for n in range(sent, upto)))
                sent = upto
            rest += line.recv(1 << 20)
            rest = _take(rest, found)
    return found


def _take(rest: bytes, found: list[tuple[int, int]]) -> bytes:
    while len(rest) >= _PREFIX.size:
        size, header_size = _PREFIX.unpack_from(rest)
        if len(rest) < 4 + size:
            break
        header = json.loads(rest[8 : 8 + (header_size & 0xFFFFFF)])
        if header["code"]:
            raise RuntimeError(f"a half message was refused: {header}")
        fields = header["extFields"]
        found.append((int(fields["msgId"][16:], 16), int(fields["queueOffset"])))
        rest = rest[4 + size :]
    return rest


def ends(places: list[tuple[int, int]]) -> list[tuple[bytes, bytes]]:
    """The requests that commit halves."""
    return [
        frame(37, {
            "producerGroup": GROUP, "tranStateTableOffset": str(offset),
            "commitLogOffset": str(log_offset), "commitOrRollback": str(COMMIT),
            "fromTransactionCheck": "false", "topic": TOPIC,
        })
        for log_offset, offset in places
    ]  # fmt: skip


def measurement(node: Node, count: int, in_flight: int, size: int) -> Callable[[], Sample]:
    first = 0

    def measure() -> Sample:
        nonlocal first
        before, began = cpu_seconds(node.pid), time.perf_counter()
        places = stored_halves(node, first, count, in_flight=in_flight, size=size)
        first += count
        halves_seconds = time.perf_counter() - began
        requests = ends(places)
        seen = drive(node.broker_port, requests, total=count, in_flight=in_flight)
        if seen.refused:
            raise RuntimeError(f"{node.name} refused a commit: {seen.first_refusal!r}")
        return {
            RATE: count / (halves_seconds + seen.seconds),
            CPU: (cpu_seconds(node.pid) - before) / count * 1e6,
            P50: seen.quantile_ms(0.5),
            P99: seen.quantile_ms(0.99),
        }

    return measure


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table of transactions."""
    count = 2_000 if quick else 10_000
    with both(folder) as nodes:
        report = Report("transactions: half, then commit (p50, p99 of the commit)", list(nodes))
        for node in nodes.values():
            create_topic(node, TOPIC, QUEUES)
        for in_flight in (1, 64):
            total = count // 5 if in_flight == 1 else count
            sides = {name: measurement(node, total, in_flight, 128) for name, node in nodes.items()}
            case = f"128 B, {in_flight} in flight"
            console.log(case)
            report.add(case, interleave(sides, rounds=rounds))
        report.show(console)
