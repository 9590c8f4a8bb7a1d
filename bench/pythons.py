"""The broker on each Python that the project names: CPU a message of sends, batches and pulls.

Each Python has an environment of its own with Sprocket and what it needs, in `.bench`, made once;
one that is neither on the path nor among pyenv's versions is left out. Without the native kernel.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

from bench import pull, send
from bench.brokers import Node, create_topic, sprocket_node
from bench.figures import CPU, Figure, Report, Sample, interleave, resident_mib
from tests.packaging.matrix import pythons

ROOT = Path(__file__).parent.parent
PULLED = "BenchPythons"
MEMORY = Figure("memory of its own", "MiB", False)


def environment(version: str, python: str) -> str:
    """The Python of an environment with Sprocket in it, made if it is not there."""
    place = ROOT / ".bench" / f"python-{version}"
    own, stamp, project = place / "bin" / "python", place / "stamp", ROOT / "pyproject.toml"
    if not stamp.exists() or stamp.stat().st_mtime < project.stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        pip = [str(own), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, "-e", str(ROOT)], check=True)
        stamp.touch()
    return str(own)


def main(console: Console, folder: Path, *, quick: bool, rounds: int) -> None:
    """Prints the table; the sides are interleaved."""
    stored = 32_000 if quick else 160_000
    with contextlib.ExitStack() as stack:
        nodes = {}
        for version, python in pythons():
            if python is None:
                console.print(f"Python {version}: not on this machine")
                continue
            place = folder / version
            place.mkdir()
            node = sprocket_node(
                place, "--set", "broker.kernel=false", python=environment(version, python)
            )
            nodes[version] = stack.enter_context(node)
        for node in nodes.values():
            create_topic(node, send.TOPIC, send.QUEUES)
            pull.fill(node, PULLED, 128, stored)
            send.send_run(node, size=128, total=20_000, connections=1, in_flight=64)
        report = Report("sends and pulls on each Python", list(nodes))
        for case, side in _cases(20_000 if quick else 60_000, stored).items():
            console.log(case)
            sides = {version: _only_cpu(side(node)) for version, node in nodes.items()}
            report.add(case, interleave(sides, rounds=rounds))
        memory: dict[str, list[Sample]] = {
            version: [{MEMORY: resident_mib(node.pid)["anonymous"]}]
            for version, node in nodes.items()
        }
        report.add("afterwards", memory)
        report.show(console)


def _cases(total: int, stored: int) -> Mapping[str, Callable[[Node], Callable[[], Sample]]]:
    return {
        "send of 128 B, 8 connections, 64 in flight": lambda node: send.measurement(
            node, total, size=128, connections=8, in_flight=64
        ),
        "send of 128 B, 1 connection, 256 in flight": lambda node: send.measurement(
            node, total, size=128, connections=1, in_flight=256
        ),
        "send of 128 B, 1 connection, 1 in flight": lambda node: send.measurement(
            node, total // 10, size=128, connections=1, in_flight=1
        ),
        "batches of 100 x 100 B, 1 connection, 8 in flight": lambda node: send.measurement(
            node, total // 10, batch=send.BATCH, size=100, connections=1, in_flight=8
        ),
        "pulls of 32 x 128 B, 8 in flight": lambda node: pull.measurement(
            node, PULLED, stored, in_flight=8
        ),
    }


def _only_cpu(measure: Callable[[], Sample]) -> Callable[[], Sample]:
    """What else is measured tells of the machine, which does other things too."""
    return lambda: {CPU: measure()[CPU]}
