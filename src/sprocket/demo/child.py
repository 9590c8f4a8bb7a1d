"""A child process that ends, with all its own children, at the end of an `async with` block.

It runs in a process group of its own, so that Ctrl-C reaches only the parent. The parent writes
lines to its standard input and reads lines from its standard output. The child must end at the end
of its input; otherwise it is killed. Process groups are POSIX only; on other systems only the
process itself is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_GRACE_S = 3.0
_LOOK_AGAIN_S = 0.02
#: Longest line that the child may write.
_LINE_BYTES_MAX = 1024 * 1024


class Child:
    """Use it with `async with`.

    Args:
        arguments: the command.
        log: file for its standard error.
    """

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self._arguments = arguments
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=_LINE_BYTES_MAX,
                start_new_session=sys.platform != "win32",
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Returns when no process of its group runs any more."""
        process = self._running()
        if process.stdin is not None:
            process.stdin.close()
        if kind is not None:
            self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_GRACE_S):
                await process.wait()
                await self._group_gone()
        except TimeoutError:
            pass
        finally:
            self._kill()
            await process.wait()

    def tell(self, line: bytes) -> None:
        """Writes a line to its standard input. Does nothing if it has ended."""
        stdin = self._running().stdin
        assert stdin is not None
        # The exception of a closed pipe depends on the event loop: uvloop raises RuntimeError.
        with contextlib.suppress(ConnectionError, RuntimeError):
            stdin.write(line + b"\n")

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines of its standard output, until it ends."""
        stdout = self._running().stdout
        assert stdout is not None
        async for line in stdout:
            yield line

    def _running(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "not started"
        return self._process

    async def _group_gone(self) -> None:
        while self._signal(0):  # noqa: ASYNC110 - the end of a grandchild gives no notice
            await asyncio.sleep(_LOOK_AGAIN_S)

    def _kill(self) -> None:
        if sys.platform == "win32":
            self._signal(signal.SIGTERM)
        else:
            self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> bool:
        """Signals the whole group; False if no process is left in it."""
        process = self._running()
        try:
            if sys.platform != "win32":
                os.killpg(process.pid, number)
            elif number and process.returncode is None:
                process.send_signal(number)
            else:
                return process.returncode is None
        except (ProcessLookupError, PermissionError):
            return False
        return True
