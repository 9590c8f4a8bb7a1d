"""The store: synchronous flush, what the key index costs, recovery, a long history, its tools."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from bench import cold, readpath
from bench.brokers import Node, create_topic, java_missing, java_node, sprocket_node
from bench.figures import Figure, Report, Sample, interleave
from bench.footprint import accepted
from bench.load import frame, send_fields
from bench.send import QUEUES, TOPIC, measurement, send_run
from sprocket.message.hosts import pack
from sprocket.message.record import BLANK_MAGIC, Draft, Encoder, topic_part
from sprocket.runtime.clock import SystemClock
from sprocket.runtime.disk import SystemDisk
from sprocket.store.config import GIB, StoreConfig
from sprocket.store.store import Store
from sprocket.store.views.tag_codes import TAGS_ONLY

_RECORDS = Figure("records", "/s", True)
_BYTES = Figure("of the log", "MiB/s", True)
_CPU = Figure("CPU", "µs/record", False)
_SECONDS = Figure("time", "s", False)
_HOST = pack("127.0.0.1:10911")
_HISTORY_FILES = 20


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the tables."""
    flushing(console, folder, quick=quick, rounds=rounds)
    indexing(console, folder, quick=quick, rounds=rounds)
    recovering(console, folder, quick=quick, rounds=rounds)
    history(console, folder, rounds=rounds)
    readpath.main(console, folder, quick=quick, rounds=rounds)
    cold.main(console, folder, quick=quick, rounds=rounds)


def flushing(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Sends that are answered once they are on the disk, beside Java's."""
    with contextlib.ExitStack() as stack:
        node = sprocket_node(folder / "flush", "--set", "store.flush=SYNC_FLUSH")
        nodes = {"sprocket": stack.enter_context(node)}
        if java_missing() is None:
            nodes["java"] = stack.enter_context(java_node(folder, flushDiskType="SYNC_FLUSH"))
        report = Report("sends of 128 B, synchronous flush", list(nodes))
        for node in nodes.values():
            create_topic(node, TOPIC, QUEUES)
            send_run(node, size=128, total=5_000, connections=8, in_flight=64)
        for in_flight, connections, total in ((1, 1, 1_000), (64, 8, 20_000), (256, 8, 40_000)):
            sides = {
                name: measurement(
                    node,
                    total // (4 if quick else 1),
                    size=128,
                    connections=connections,
                    in_flight=in_flight,
                )
                for name, node in nodes.items()
            }
            report.add(f"{in_flight} in flight", interleave(sides, rounds=rounds))
        report.show(console)


def indexing(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """The same sends with the key index and without."""
    with (
        sprocket_node(folder / "keys") as with_keys,
        sprocket_node(folder / "plain", "--set", "store.index_keys=false") as without,
    ):
        sides: dict[str, Callable[[], Sample]] = {}
        for name, node in (("with keys", with_keys), ("without", without)):
            create_topic(node, TOPIC, QUEUES)
            total = 10_000 if quick else 40_000
            sides[name] = measurement(node, total, size=128, connections=8, in_flight=64)
        report = Report("what the key index costs", list(sides))
        report.add("sends of 128 B, 64 in flight", interleave(sides, rounds=rounds))
        report.show(console)


def recovering(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """How fast a log is folded anew, and how fast `sprocket store verify` goes through it."""
    report = Report("reading a log again, one core", ["sprocket"])
    for size, count in ((128, 400_000), (1024, 200_000)):
        place = folder / f"log{size}"
        count //= 4 if quick else 1
        log_bytes = asyncio.run(_fill(place, size, count))

        def measured(
            read: Callable[[], object], count: int = count, log_bytes: int = log_bytes
        ) -> Sample:
            began, cpu_before = time.perf_counter(), _cpu_seconds()
            read()
            seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu_before
            return {
                _RECORDS: count / seconds,
                _BYTES: log_bytes / seconds / 2**20,
                _CPU: cpu / count * 1e6,
            }

        def replay(place: Path = place) -> Sample:
            for view in ("consumequeue", "index"):
                shutil.rmtree(place / view)
            (place / "abort").touch()
            return measured(lambda: asyncio.run(_opening(place)))

        def verify(place: Path = place) -> Sample:
            command = [sys.executable, "-m", "sprocket", "store", "verify", str(place)]
            return measured(lambda: subprocess.run(command, check=True, capture_output=True))

        for name, measure in (("recovery, all views", replay), ("store verify", verify)):
            report.add(f"{name}, {size} B", interleave({"sprocket": measure}, rounds=rounds))
    report.show(console)


def _cpu_seconds() -> float:
    """Time that this process and those it waited for have had so far."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


async def _fill(place: Path, size: int, count: int) -> int:
    """A store that was closed; returns the bytes of its log."""
    store = await _opened(place)
    for number in range(count):
        store.append(_draft(b"x" * size, number))
        if number % 1000 == 999:
            await asyncio.sleep(0)
    log_bytes = store.log_end
    await store.close()
    return log_bytes


def _draft(body: bytes, number: int) -> Draft:
    key = f"7F00000100002A9F0000{number:012X}"
    return Draft(
        topic=TOPIC, queue_number=number % QUEUES, body=body, tag_code=97, flag=0, sys_flag=0,
        properties=f"UNIQ_KEY\x01{key}\x02TAGS\x01a\x02".encode(), born_ms=1, born_host=_HOST,
        unique_key=key,
    )  # fmt: skip


async def _opened(place: Path) -> Store:
    return await Store.open(
        disk=SystemDisk(),
        clock=SystemClock(),
        root=str(place),
        config=StoreConfig(),
        store_host=_HOST,
        tag_codes=TAGS_ONLY,
    )


async def _opening(place: Path) -> None:
    """Opens and closes a store."""
    await (await _opened(place)).close()


def history(console: Console, folder: Path, *, rounds: int) -> None:
    """From start to first accepted send: of nothing, and of 20 GiB that were closed."""
    old = folder / "history"
    _make_history(old)
    asyncio.run(_opening(old))
    sides = {
        "empty": lambda: _start(None),
        f"{_HISTORY_FILES} GiB": lambda: _start(old),
    }
    report = Report("start to first accepted send, clean checkpoint", list(sides))
    report.add("one node", interleave(sides, rounds=rounds))
    report.show(console)


def _start(store: Path | None) -> Sample:
    with tempfile.TemporaryDirectory() as empty:
        place = Path(empty)
        if store is not None:
            (place / "sprocket").symlink_to(store)
        began = time.perf_counter()
        with sprocket_node(place) as node:
            return {_SECONDS: _until_accepted(node) - began}


def _until_accepted(node: Node) -> float:
    request = frame(310, send_fields("BenchStart", 0), b"x")
    while not accepted(node, request):
        time.sleep(0.02)
    return time.perf_counter()


def _make_history(place: Path) -> None:
    """Files of 1 GiB, each with one message and, as where a file is full, a blank to its end."""
    folder = place / "commitlog"
    folder.mkdir(parents=True)
    encoder = Encoder(_HOST)
    for number in range(_HISTORY_FILES):
        start = number * GIB
        stored_ms = int(time.time() * 1000)
        record = encoder.encode(
            _draft(b"x" * 128, 0), topic_part(TOPIC.encode()),
            log_offset=start, queue_offset=number, stored_ms=stored_ms,
        )  # fmt: skip
        with (folder / f"{start:020d}").open("wb") as file:
            file.write(record)
            if number < _HISTORY_FILES - 1:
                file.write((GIB - len(record)).to_bytes(4, "big"))
                file.write(BLANK_MAGIC.to_bytes(4, "big", signed=True))
            file.truncate(GIB)
