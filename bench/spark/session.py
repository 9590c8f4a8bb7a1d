"""A worker as seen from the bench: commands out, answers and processor time back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from bench.figures import cpu_seconds
from bench.spark.ground import ROOT, Ground


class Session:
    """Starts a worker with a Spark session. Leaving ends it and its JVM.

    Args:
        ground: which interpreter and jars.
        master: Spark's, such as `local[1]`.
        log: file for what it prints.
    """

    def __init__(self, ground: Ground, master: str, log: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        self._log = log.open("w")
        self._process = subprocess.Popen(
            [str(ground.python), "-m", "bench.spark.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            text=True, cwd=ROOT, env=environment, start_new_session=True,
        )  # fmt: skip
        jars = sorted(map(str, ground.connector.glob("*.jar"))) if ground.connector else []
        self.started = self.call("start", master=master, jars=",".join(jars))

    def call(self, command: str, /, **args: Any) -> dict[str, Any]:
        """Runs one command to its end; the answer, with `cpu`: seconds of Spark's processes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = tree_cpu_seconds(self._process.pid)
        self._process.stdin.write(json.dumps({"command": command, "args": args}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line or '{"error": "it has ended"}')
        if "error" in answer:
            raise RuntimeError(f"Spark, {command} ({self._log.name}): {answer['error']}")
        answer["cpu"] = tree_cpu_seconds(self._process.pid) - before
        return answer

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._log.close()


def tree_cpu_seconds(root: int) -> float:
    """Processor time so far of a process, all below it, and those of them that have ended."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    waiting, seconds = [root], 0.0
    while waiting:
        pid = waiting.pop()
        try:
            seconds += cpu_seconds(pid) + _ended_seconds(pid)
        except OSError:
            continue
        waiting += children.get(pid, [])
    return seconds


def _ended_seconds(pid: int) -> float:
    """User and system time of a process's children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
