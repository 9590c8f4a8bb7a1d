"""Hot traffic while a reader goes through old messages that are not in memory (Linux, root).

The broker runs in a memory group of its own, half as large as what it stores; before each run the
system's file cache is emptied, so that the reader's messages come from the disk. Beside it stands
the same reader going through messages that are in memory.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.brokers import Node, create_topic, sprocket_node
from bench.figures import P50, P99, RATE, Figure, Report, Sample, interleave
from bench.load import drive, frame, pull_fields
from bench.pull import BATCH, fill
from bench.send import QUEUES, messages

_GROUPS = Path("/sys/fs/cgroup/memory")
_GROUPS_V2 = Path("/sys/fs/cgroup")
_DROP = Path("/proc/sys/vm/drop_caches")
_MIB = 1 << 20
_BODY = 4096
_READ = Figure("reader, messages", "/s", True)


def missing() -> str | None:
    """Why this cannot be measured here, or None if it can."""
    if not os.access(_DROP, os.W_OK) or not os.access(_group_root(), os.W_OK):
        return "it takes root on Linux, to limit memory and to empty the file cache"
    return None


def _group_root() -> Path:
    return _GROUPS if _GROUPS.is_dir() else _GROUPS_V2


@contextlib.contextmanager
def limited(pid: int, limit_bytes: int) -> Iterator[None]:
    """Keeps a process, with the files it maps, below so many bytes of memory."""
    root = _group_root()
    group = root / f"sprocket-bench-{pid}"
    group.mkdir()
    name = "memory.limit_in_bytes" if root == _GROUPS else "memory.max"
    try:
        (group / name).write_text(str(limit_bytes))
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        (root / "cgroup.procs").write_text(str(pid))
        group.rmdir()


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table."""
    reason = missing()
    if reason:
        console.print(f"the cold reader is not measured: {reason}")
        return
    stored = 65_536 if quick else 524_288
    with sprocket_node(folder) as node, limited(node.pid, stored * _BODY // 2):
        fill(node, "BenchOld", _BODY, stored)
        fill(node, "BenchNew", _BODY, 4096)
        create_topic(node, "BenchHot", QUEUES)
        sends = 5_000 if quick else 20_000
        sides: dict[str, Callable[[], Sample]] = {
            "alone": lambda: _hot(node, sends),
            "reader in memory": lambda: _beside(node, sends, "BenchNew", 4096),
            "reader from disk": lambda: _beside(node, sends, "BenchOld", stored),
        }
        report = Report(
            f"sends of 128 B beside a reader, {stored * _BODY // _MIB} MiB", list(sides)
        )
        report.add("1 in flight", interleave(sides, rounds=rounds))
        report.show(console)


def _hot(node: Node, total: int) -> Sample:
    seen = drive(node.broker_port, messages("BenchHot", QUEUES, 128), total=total)
    return {
        RATE: seen.per_second,
        P50: seen.quantile_ms(0.5),
        P99: seen.quantile_ms(0.99),
        _READ: 0,
    }


def _beside(node: Node, total: int, topic: str, stored: int) -> Sample:
    """The same while a process of its own reads a topic from its beginning, over and over."""
    os.sync()
    _DROP.write_text("3")
    context = multiprocessing.get_context("spawn")
    read = context.Value("q", 0)
    reader = context.Process(target=_read, args=(node.broker_port, topic, stored, read))
    reader.start()
    try:
        while not read.value:
            reader.join(0.01)
        before = read.value
        hot = _hot(node, total)
        per_second = (read.value - before) / (total / hot[RATE])
    finally:
        reader.kill()
        reader.join()
    return {**hot, _READ: per_second}


def _read(port: int, topic: str, stored: int, read: Any) -> None:
    """Pulls in portions, so that the count of what was read rises."""
    pulls = [
        frame(11, pull_fields(topic, 0, number * BATCH, BATCH)) for number in range(stored // BATCH)
    ]
    portion = 16
    while True:
        for first in range(0, len(pulls), portion):
            some = pulls[first : first + portion]
            if drive(port, some, total=len(some)).refused:
                raise RuntimeError(f"a pull of {topic} was refused")
            read.value += len(some) * BATCH
