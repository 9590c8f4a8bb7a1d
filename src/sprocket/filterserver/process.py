"""One process that runs one filter: the broker's side.

The process is a fresh interpreter without installed packages, with an empty environment, and with
two pipes as its only open descriptors. A process that exceeds the CPU time for a batch, or sends an
invalid reply, is killed. Nothing here blocks the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Self

from sprocket.base.errors import SprocketError
from sprocket.filterserver import exchange
from sprocket.filterserver.confine import KERNEL
from sprocket.filterserver.exchange import Fault, FrameInvalid, Verdicts

#: Where an interpreter without installed packages finds this one.
_SOURCES = str(Path(__file__).resolve().parents[2])
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from sprocket.filterserver.worker import main; main(*map(int, sys.argv[2:5]))"
)
#: The time limit of a start, s; on a busy machine an interpreter needs long.
_START_SECONDS = 20.0
#: A process that gets little CPU time may take this many times the limit on the clock.
_PATIENCE = 20
#: The longest pause between two looks at a process, s; and how many times it may be found asleep,
#: without having used CPU time, before it is ended. Looks are counted and not seconds, because a
#: loop that stands still does not feed it.
_LOOK_SECONDS = 0.25
_ASLEEP_MAX = 5
#: The most CPU time of a process's life; the broker replaces it long before, see `is_worn`.
_LIFE_SECONDS = 600
_WORN_SECONDS = 300.0
#: Variables that an interpreter in an unusual place may need to find its libraries.
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class ProcessLost(SprocketError):
    """A process ended before its reply. The text describes how."""


class NotConfined(SprocketError):
    """The system cannot confine a process as the settings require."""


class ProcessLimits(NamedTuple):
    """The limits of a process.

    Attributes:
        memory_bytes: the largest total address space.
        cpu_ms: CPU time for a batch, and for loading the source.
        must_be_confined: whether rlimits alone do not suffice.
    """

    memory_bytes: int = 128 << 20
    cpu_ms: int = 1_000
    must_be_confined: bool = True


class FilterProcess:
    """A filter's process; `start` creates one.

    Attributes:
        level: what confines it, see `confine`.
        batches: the number of judged batches.
    """

    def __init__(self, bounds: ProcessLimits) -> None:
        self._bounds = bounds
        self._number = 0
        self.level = ""
        self.batches = 0

    @classmethod
    async def start(cls, bounds: ProcessLimits) -> Self:
        """Starts a process, which is confined when this returns.

        Raises:
            NotConfined: the system cannot confine it.
            Lost: it ended or took too long before that.
        """
        if os.name != "posix":
            raise NotConfined("filters in Python need Linux or another Unix")
        process = cls(bounds)
        try:
            await process._open()
            kind, rest = await process._reply(0, _START_SECONDS * 1000, is_start=True)
        except BaseException:  # any error is raised again once the process is killed
            await process.kill()
            raise
        process.level = str(rest, "ascii", "replace") if kind == exchange.READY else ""
        if process.level != KERNEL and bounds.must_be_confined:
            await process.kill()
            raise NotConfined(
                "filters in Python need Linux on x86_64 or arm64 with seccomp; elsewhere only "
                "limits hold: filter_isolation=limits lets them run so"
            )
        return process

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        try:
            self._child = self._spawned(theirs_in, theirs_out)
        except OSError as error:
            os.close(ours_out)
            os.close(ours_in)
            raise ProcessLost(f"no process for a filter can be started: {error}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._reader = asyncio.StreamReader()
        self._in, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._reader), os.fdopen(ours_in, "rb", 0)
        )
        self._out, _ = await loop.connect_write_pipe(
            asyncio.BaseProtocol, os.fdopen(ours_out, "wb", 0)
        )

    def _spawned(self, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
        """Starts the process, which blocks the loop for a millisecond or two."""
        return subprocess.Popen(
            [
                sys.executable, "-I", "-S", "-B", "-c", _START, _SOURCES,
                str(self._bounds.memory_bytes), str(_LIFE_SECONDS), str(os.getpid()),
            ],
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            close_fds=True,
            cwd="/",
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            start_new_session=True,
        )  # fmt: skip

    @property
    def is_worn(self) -> bool:
        """Whether it has used so much CPU time that a new one should replace it."""
        return (self._cpu_seconds() or 0.0) > _WORN_SECONDS

    async def load(self, name: str, source: bytes) -> Fault | None:
        """Loads the source; returns its fault, or None.

        Raises:
            Lost: the process ended, or was killed.
        """
        rest = exchange.load(name, source)
        answer = await self._ask(exchange.LOAD, exchange.LOAD, rest)
        return None if not answer else self._read(answer, 0).fault

    async def judge(self, batch: bytes, count: int) -> Verdicts:
        """Judges a batch of `count` messages.

        Raises:
            Lost: the process ended, or was killed.
        """
        answer = await self._ask(exchange.JUDGE, exchange.VERDICTS, batch)
        verdicts = self._read(answer, count)
        self.batches += 1
        return verdicts

    def _read(self, answer: memoryview, count: int) -> Verdicts:
        try:
            return exchange.verdicts_of(answer, count)
        except FrameInvalid as error:
            raise ProcessLost(f"the filter wrote into its pipe: {error}") from error

    async def _ask(self, kind: bytes, expected: bytes, rest: bytes) -> memoryview:
        self._number += 1
        self._out.write(exchange.frame(self._number, kind, rest))
        answered, answer = await self._reply(self._number, self._bounds.cpu_ms)
        if answered != expected:
            raise ProcessLost("the filter wrote into its pipe: an answer of another kind")
        return answer

    async def _reply(
        self, number: int, cpu_ms: float, *, is_start: bool = False
    ) -> tuple[bytes, memoryview]:
        reading = asyncio.ensure_future(self._frame())
        try:
            await self._await(reading, cpu_ms / 1000, is_start=is_start)
            body = reading.result()
        except asyncio.IncompleteReadError:
            raise ProcessLost(await self._end()) from None
        finally:
            reading.cancel()
        try:
            answered, kind, rest = exchange.opened(body)
        except FrameInvalid as error:
            raise ProcessLost(f"the filter wrote into its pipe: {error}") from error
        if answered != number:
            raise ProcessLost("the filter wrote into its pipe: an answer to another question")
        return kind, rest

    async def _await(
        self, reading: asyncio.Future[bytes], seconds: float, *, is_start: bool
    ) -> None:
        """Waits for a frame; kills the process when its time is used up.

        Raises:
            Lost: the time is used up.
        """
        # The limit is on CPU time, so that a busy machine does not end honest filters. The loop
        # sleeps for at least as long as the process needs to use up its rest, then measures again.
        # A process that sleeps, on a lock say, would keep other filters waiting without using any:
        # a filter has nothing to wait for. A limit on the clock, `_PATIENCE` times as long, ends
        # what is left.
        loop = asyncio.get_running_loop()
        began, used = loop.time(), self._cpu_seconds()
        last = began + seconds * (1 if is_start or used is None else _PATIENCE)
        left, was_used, times_asleep = min(seconds, _LOOK_SECONDS), used, 0
        while not (await asyncio.wait([reading], timeout=left))[0]:
            now_used = self._cpu_seconds()
            left = last - loop.time()
            if used is not None and now_used is not None and not is_start:
                left = min(seconds - (now_used - used), left)
                is_idle = now_used == was_used and self._is_asleep()
                was_used, times_asleep = now_used, times_asleep + 1 if is_idle else 0
            if left <= 0.0 or times_asleep >= _ASLEEP_MAX:
                await self.kill()
                what = "did not start" if is_start else "was not done"
                used_up = f"after {seconds:g} s of CPU time"
                if times_asleep >= _ASLEEP_MAX:
                    used_up = "and waited for something"
                raise ProcessLost(f"the filter {what} {used_up}, and was ended")
            left = min(max(left, 0.01), _LOOK_SECONDS)

    async def _frame(self) -> bytes:
        (size,) = exchange.LENGTH.unpack(await self._reader.readexactly(exchange.LENGTH.size))
        if size > exchange.ANSWERED_BYTES_MAX:
            raise ProcessLost(f"the filter wrote into its pipe: a frame of {size} bytes")
        return await self._reader.readexactly(size)

    def _cpu_seconds(self) -> float | None:
        """The CPU time that it has used, or None if the system does not report it."""
        if sys.platform != "linux":
            return None
        try:  # A process's number determines its clock. Source: clock_getcpuclockid(3).
            return time.clock_gettime(~self._child.pid << 3 | 2)
        except OSError:
            return None

    def _is_asleep(self) -> bool:
        """Whether it waits for something else than a CPU. Source: proc_pid_stat(5)."""
        try:
            stat = Path(f"/proc/{self._child.pid}/stat").read_bytes()
        except OSError:
            return False
        return stat.rpartition(b") ")[2][:1] == b"S"

    async def _end(self) -> str:
        """Ends a process that has closed its pipe; returns how it ended."""
        if self._child.poll() is None:  # it may still be ending; if not, it is killed
            await asyncio.sleep(0.05)
        await self.kill()
        code = self._child.returncode
        if code < 0:
            with contextlib.suppress(ValueError):
                return f"the filter ended its process: {signal.Signals(-code).name}"
        return f"the filter ended its process: exit code {code}"

    async def kill(self) -> None:
        """Kills the process and closes its pipes. It may be called more than once."""
        child = getattr(self, "_child", None)
        if child is None:
            return
        if child.poll() is None:
            child.kill()
            await asyncio.shield(asyncio.to_thread(child.wait))
        for pipe in (getattr(self, "_in", None), getattr(self, "_out", None)):
            if pipe is not None:
                pipe.close()
