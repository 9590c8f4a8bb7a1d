"""Processes of this machine: each runs the command `sprocket`, and its parent has its log.

A process is told by its standard input that the parent is gone: the parent holds the other end of
that pipe, which closes however the parent ends. It is out of the terminal's process group, so that
Ctrl-C reaches the parent alone, which then stops all in their order.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable, Mapping

from sprocket.container.children import CHILD, ChildFailed, ChildSpec

#: Variables that are not for the processes: they set an option of the command itself, which would
#: win over the settings, or are for the one process that systemd has started.
_NOT_PASSED = ("SPROCKET_NAMESERVERS", "NAMESRV_ADDR", "NOTIFY_SOCKET")
#: A longer line of a log is broken.
_LINE_BYTES_MAX = 1 << 20
_READ_BYTES = 1 << 16
#: What a command's own complaints and notes begin with; the parent has made the notes itself.
_COMPLAINT, _NOTE = b"sprocket: ", b"sprocket: note: "
_LINES_KEPT = 8
#: How long the rest of the log of a process that ended is read, s: whoever it started may hold it.
_LOG_SECONDS = 1.0


def _to_stderr(line: bytes) -> None:
    sys.stderr.buffer.write(line + b"\n")
    sys.stderr.buffer.flush()


class ProcessLauncher:
    """Starts processes.

    Args:
        log: takes each line of their logs.
    """

    def __init__(self, log: Callable[[bytes], None] = _to_stderr) -> None:
        self._log = log

    async def launch(self, spec: ChildSpec) -> _RunningProcess:
        """Starts a process and returns it when it is ready.

        Raises:
            ChildFailed: it ended before.
            OSError: the system starts no process.
        """
        environment = {k: v for k, v in os.environ.items() if k not in _NOT_PASSED}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sprocket", *spec.arguments, CHILD,
            stdin=PIPE, stdout=PIPE, stderr=PIPE,
            env={**environment, **spec.settings}, start_new_session=True,
        )  # fmt: skip
        running = _RunningProcess(process, spec.name, self._log)
        try:
            _pin(process.pid, spec.core)
            return await running.when_ready()
        except BaseException:  # whatever it was: an unready process does not stay
            running.kill()
            raise


class _RunningProcess:
    """A process that was started; its log is read until it ends."""

    def __init__(self, process: Process, name: str, log: Callable[[bytes], None]) -> None:
        self._process = process
        self._name, self._log = name, log
        self._complaints: deque[str] = deque(maxlen=_LINES_KEPT)
        self._reading = asyncio.ensure_future(self._read())
        self.about: Mapping[str, str] = {}

    async def when_ready(self) -> _RunningProcess:
        """Waits for the line that the process prints when it is ready.

        Raises:
            ChildFailed: it ended before.
        """
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        try:
            self.about = json.loads(line)
        except ValueError:
            code = await self.wait()
            raise ChildFailed("; ".join(self._complaints) or f"exit code {code}") from None
        return self

    async def wait(self) -> int:
        """Returns when it has ended and its log is read: its exit code."""
        code = await self._process.wait()
        await asyncio.wait([self._reading], timeout=_LOG_SECONDS)
        return code

    def terminate(self) -> None:
        """Asks it to end in order."""
        if self._process.returncode is None:
            self._process.terminate()

    def kill(self) -> None:
        """Ends it at once."""
        if self._process.returncode is None:
            self._process.kill()

    async def _read(self) -> None:
        """Passes on each line of the log, with the name of the process."""
        assert self._process.stderr is not None
        rest = b""
        while data := await self._process.stderr.read(_READ_BYTES):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(line)
            if len(rest) > _LINE_BYTES_MAX:
                self._take(rest)
                rest = b""
        if rest:
            self._take(rest)

    def _take(self, line: bytes) -> None:
        if line.startswith(_NOTE):
            return
        if line.startswith(_COMPLAINT):
            self._complaints.append(line.removeprefix(_COMPLAINT).decode("utf-8", "replace"))
            if not self.about:
                return  # why it does not start: the supervisor logs that, once
        self._log(named(self._name, line))


def named(name: str, line: bytes) -> bytes:
    """A line of a process's log with the name of the process; in JSON, as a field."""
    if line.startswith(b'{"'):
        return b'{"process": ' + json.dumps(name).encode() + b", " + line[1:]
    return f"[{name}] ".encode() + line


def _pin(process: int, core: int | None) -> None:
    """Keeps a process on one core, where the system can."""
    if core is None or sys.platform != "linux":
        return
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(process, {cores[core % len(cores)]})
