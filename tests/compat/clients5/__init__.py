"""RocketMQ's own gRPC clients, one program for each language, which the tests drive.

A program takes tasks as lines of JSON and tells what it sees in lines of JSON; `README.md` lists
the words. One process serves a whole run of tests::

    go = clients5.start("go", work)
    lines = go.run("send", endpoint=proxy, topic="T", messages=[{"body": "hello"}])
    with go.start("receive", endpoint=proxy, topic="T", group="G", …) as consumer:
        wait_until(lambda: consumer.bodies() == ["hello"])
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from tests.compat.javaland import available, require_java, wait_until

Json = dict[str, Any]

_HERE = Path(__file__).parent
_JAVA = _HERE / "java"
_TASK_S = 120.0

#: The package of each language, as its registry names it.
PACKAGES = {
    "go": "github.com/apache/rocketmq-clients/golang/v5 v5.1.4",
    "java": "org.apache.rocketmq:rocketmq-client-java 5.2.0",
    "node": "rocketmq-client-nodejs 1.0.8",
    "python": "rocketmq-python-client 5.1.2",
    "rust": "rocketmq 5.0.0",
}


class Task:
    """A task that a program does."""

    def __init__(self, program: Program, number: int) -> None:
        #: What it told, line by line.
        self.told: list[Json] = []
        self._program = program
        self._number = number
        self._is_ended = False

    @property
    def messages(self) -> list[Json]:
        """What it told of messages."""
        return [line for line in list(self.told) if "body" in line]

    @property
    def refusals(self) -> list[Json]:
        """What it told of errors."""
        return [line for line in list(self.told) if "refused" in line]

    def bodies(self) -> list[str]:
        """The bodies of the messages that it got, sorted."""
        return sorted(message["body"] for message in self.messages)

    def until(self, seen: Callable[[], object]) -> None:
        """Wait until something can be seen; if it cannot, complain with what was told."""
        try:
            wait_until(seen)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.told}") from None

    def is_ready(self) -> bool:
        """Whether it has started."""
        self._program.check()
        assert not self._failures(), self.told
        return any(line.get("ready") for line in list(self.told))

    def is_done(self) -> bool:
        """Whether it has ended."""
        self._program.check()
        return any("done" in line or "failed" in line for line in list(self.told))

    def end(self) -> list[Json]:
        """Have it end, and return what it told."""
        if not self._is_ended:
            self._is_ended = True
            self._program.write({"end": self._number})
        wait_until(self.is_done, _TASK_S)
        return self.told

    def __enter__(self) -> Self:
        """Wait until it has started."""
        self.until(self.is_ready)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Have it end, and complain if it cannot."""
        if kind is None:
            self.end()
            assert not self._failures(), self.told
        else:
            self._program.write({"end": self._number})

    def _failures(self) -> list[Json]:
        return [line for line in list(self.told) if "failed" in line and "body" not in line]


class Program:
    """A running program over the client of one language."""

    def __init__(
        self, language: str, command: Sequence[str], work: Path, environment: dict[str, str]
    ) -> None:
        """Start it; its home, where clients write logs, is a folder in ``work``."""
        self.language = language
        home = work / f"home-{language}"
        home.mkdir()
        self.log = home / "complaints.log"
        self._numbers = itertools.count(1)
        self._tasks: dict[int, Task] = {}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "HOME": str(home), **environment},
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, do: str, **words: Any) -> Task:
        """Start a task."""
        number = next(self._numbers)
        task = self._tasks[number] = Task(self, number)
        self.write({"id": number, "do": do, **words})
        return task

    def run(self, do: str, **words: Any) -> list[Json]:
        """Have a task done that ends by itself, and return what was told."""
        task = self.start(do, **words)
        wait_until(task.is_done, _TASK_S)
        return task.told

    def write(self, words: Json) -> None:
        """Write one line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()

    def check(self) -> None:
        """Complain if it has ended."""
        assert self._process.poll() is None, self.log.read_text(errors="replace")[-4000:]

    def stop(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if not line.startswith(b'{"'):
                    continue  # a client's own words
                told = json.loads(line)
                self._tasks[told.pop("id")].told.append(told)


def start(language: str, work: Path) -> Program:
    """Start the program of a language; the test is skipped where it cannot be had."""
    command, environment = _LANGUAGES[language]()
    return Program(language, command, work, environment)


def java_classpath(module: str) -> str:
    """The libraries of a module of `java/pom.xml`, which is built if it is not yet."""
    require_java()
    with _locked(_JAVA) as target:
        stamp = target / "built"
        if _is_older(stamp, *_JAVA.glob("**/pom.xml"), *_JAVA.glob("src/**/*.java")):
            _fetch(["mvn", "-B", "-q", "-f", "pom.xml", "process-classes"], _JAVA)
            stamp.touch()
    return (_JAVA / "target" / module / "classpath").read_text().strip()


def _java() -> tuple[list[str], dict[str, str]]:
    if available() is not None:
        pytest.skip(str(available()))
    libraries = java_classpath("client")
    classes = _JAVA / "target" / "client" / "classes"
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return ["java", *options, "-cp", f"{classes}{os.pathsep}{libraries}", "driver.Driver"], {}


def _go() -> tuple[list[str], dict[str, str]]:
    _require("go")
    folder = _HERE / "go"
    with _locked(folder) as target:
        program = target / "driver"
        if _is_older(program, folder / "main.go", folder / "go.mod"):
            _fetch(["go", "mod", "download"], folder)
            _fetch(["go", "build", "-o", str(program), "."], folder)
    return [str(program)], {}


def _node() -> tuple[list[str], dict[str, str]]:
    _require("node")
    _require("npm")
    folder = _HERE / "node"
    with _locked(folder) as target:
        stamp = target / "built"
        shutil.copy(folder / "driver.js", target)
        if _is_older(stamp, folder / "package.json"):
            shutil.copy(folder / "package.json", target)
            _fetch(["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"], target)
            stamp.touch()
    return ["node", str(target / "driver.js")], {}


def _python() -> tuple[list[str], dict[str, str]]:
    return python_program("driver.py")


def python_program(name: str) -> tuple[list[str], dict[str, str]]:
    """A program of `python/` and its environment; it has a folder of libraries to itself."""
    folder = _HERE / "python"
    with _locked(folder) as target:
        stamp = target / "built"
        if _is_older(stamp, folder / "requirements.txt"):
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
            _fetch([*pip, "--target", str(target / "site"), "-r", "requirements.txt"], folder)
            stamp.touch()
    return [sys.executable, str(folder / name)], {"PYTHONPATH": str(target / "site")}


def _rust() -> tuple[list[str], dict[str, str]]:
    _require("cargo")
    folder = _HERE / "rust"
    with _locked(folder) as target:
        program = target / "debug" / "driver"
        if _is_older(program, folder / "src" / "main.rs", folder / "Cargo.toml"):
            _fetch(["cargo", "build", "-q"], folder)
    return [str(program)], {}


_LANGUAGES: dict[str, Callable[[], tuple[list[str], dict[str, str]]]] = {
    "go": _go,
    "java": _java,
    "node": _node,
    "python": _python,
    "rust": _rust,
}


class _locked:
    """The folder for what is built, held by one process at a time."""

    def __init__(self, folder: Path) -> None:
        self._target = folder / "target"

    def __enter__(self) -> Path:
        self._target.mkdir(exist_ok=True)
        self._file = (self._target / "lock").open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self._target

    def __exit__(self, *error: object) -> None:
        self._file.close()


def _is_older(made: Path, *sources: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < max(s.stat().st_mtime for s in sources)


def _require(tool: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}, which is not there")


def _fetch(command: Sequence[str], folder: Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0"}
    made = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if made.returncode != 0:
        said = (made.stdout + made.stderr).decode()[-1500:]
        pytest.skip(f"{' '.join(command)} failed: {said}")
