"""Clients of other languages for the tests: each does one task and tells what it sees.

A task is one JSON object; see `go/main.go` and `node/driver.js`. Consumers run until they are
stopped or killed::

    with go.start("consume", names=node.names, group="g", topic="T", expression="*") as consumer:
        wait_until(lambda: consumer.bodies() == ["a", "b"])
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from sprocket import Message, RouteNotFound, StoredMessage
from sprocket.client import blocking
from tests.cli.parts import sprocket
from tests.compat.javaland import wait_until
from tests.compat.sprocketland import SprocketNode

Json = dict[str, Any]

_HERE = Path(__file__).parent
_GO, _NODE = _HERE / "go", _HERE / "node"
_TASK_S = 120.0


class Task:
    """A running client."""

    def __init__(self, command: Sequence[str], task: Json) -> None:
        #: What it told, line by line.
        self.told: list[Json] = []
        self._process = subprocess.Popen(
            [*command, json.dumps(task)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._complaints = b""
        #: Lines that are no JSON.
        self._strange: list[bytes] = []
        self._readers = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._read_complaints, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                self.told.append(json.loads(line))
            except ValueError:
                self._strange.append(line)

    def _read_complaints(self) -> None:
        assert self._process.stderr is not None
        self._complaints = self._process.stderr.read()

    @property
    def messages(self) -> list[Json]:
        """What it told of messages."""
        assert not self._strange, self._strange
        assert self._process.poll() in (None, 0), self._complaints.decode()
        return [line for line in list(self.told) if "body" in line]

    def bodies(self) -> list[str]:
        """The bodies of the messages that it got, sorted."""
        return sorted(message["body"] for message in self.messages)

    def is_ready(self) -> bool:
        """Whether it has started."""
        assert self._process.poll() is None, self.end()
        return {"ready": True} in self.told

    def say(self, line: str) -> None:
        """Give it a line of input."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def end(self) -> list[Json]:
        """Have it end, and return what it told."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(_TASK_S)
        for reader in self._readers:
            reader.join()
        assert code == 0, self._complaints.decode()
        return self.told

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join()

    def __enter__(self) -> Self:
        """Wait until it has started."""
        wait_until(self.is_ready)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Have it end in order, if nothing has failed."""
        if kind is not None or self._process.poll() is not None:
            self.kill()
        else:
            self.end()


class Foreign:
    """A client of another language."""

    def __init__(self, *command: str) -> None:
        self._command = command

    def start(self, do: str, **task: Any) -> Task:
        """Start a task."""
        return Task(self._command, {"do": do, **task})

    def run(self, do: str, **task: Any) -> list[Json]:
        """Have a task done, and return what was told."""
        return self.start(do, **task).end()


def go() -> Foreign:
    """RocketMQ's client for Go; the test is skipped where it cannot be had."""
    _require("go")
    target = _target(_GO)
    with (target / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _fetch(["go", "mod", "download"], _GO)
        built = _made(["go", "build", "-o", str(target / "driver"), "."], _GO, CGO_ENABLED="0")
        assert built.returncode == 0, built.stderr.decode()
    return Foreign(str(target / "driver"))


def node() -> Foreign:
    """A client for Node in plain JavaScript; the test is skipped where it cannot be had."""
    for tool in ("node", "npm"):
        _require(tool)
    target = _target(_NODE)
    with (target / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for file in ("package.json", "driver.js"):
            shutil.copy(_NODE / file, target)
        _fetch(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], target)
    return Foreign("node", str(target / "driver.js"))


def cli(node: SprocketNode, *words: str) -> str:
    """What a command prints."""
    done = sprocket(*words, "--nameserver", node.names)
    assert done.code == 0, done.err
    return done.out


def make_topic(node: SprocketNode, name: str, *, queues: int) -> str:
    """Make a topic with nearly that name, and return the name."""
    name = "".join(c if c.isalnum() else "_" for c in name)
    cli(node, "topic", "create", name, "--queues", str(queues))
    return name


def send(node: SprocketNode, topic: str, *messages: Message) -> None:
    """Send messages with our own client, to each queue in turn."""
    with blocking.Producer("ours", nameservers=node.names) as producer:
        queues = sorted(producer.queues(topic))
        for queue, message in zip(itertools.cycle(queues), messages, strict=False):
            producer.send(message, queue=queue)


def stored(node: SprocketNode, topic: str) -> list[StoredMessage]:
    """All messages of a topic, up to 32 of each queue."""
    with blocking.PullConsumer("looker", nameservers=node.names) as reader:
        return [m for queue in reader.queues(topic) for m in reader.pull(queue, 0).messages]


def dead(node: SprocketNode, group: str) -> list[StoredMessage]:
    """The dead letters of a group."""
    try:
        return stored(node, f"%DLQ%{group}")
    except RouteNotFound:
        return []


def _target(folder: Path) -> Path:
    target = folder / "target"
    target.mkdir(exist_ok=True)
    return target


def _require(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}, which is not there")


def _fetch(command: Sequence[str], folder: Path) -> None:
    fetched = _made(command, folder)
    if fetched.returncode != 0:
        pytest.skip(f"{' '.join(command)} failed: {fetched.stderr.decode()[-500:]}")


def _made(
    command: Sequence[str], folder: Path, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, check=False
    )
