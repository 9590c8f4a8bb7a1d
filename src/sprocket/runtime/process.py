"""Runs a main coroutine as a process, with uvloop if it is installed, signals and exit codes.

SIGTERM and Ctrl-C cancel the main coroutine, so its `async with` blocks drain and close what they
opened. A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Coroutine, Iterator
from types import FrameType
from typing import Any

INTERRUPTED = 130


def run(main: Coroutine[Any, Any, int | None]) -> int:
    """Runs `main` to its end, or until a signal stops it.

    Returns:
        The exit code: what `main` returned (None counts as 0), 0 after SIGTERM, 130 after Ctrl-C.
    """
    work = _until_signal(main)
    try:
        allow_many_files()
        # All that is loaded now lives as long as the process. A full collection that scanned it
        # too would block the loop for 10 to 30 ms.
        gc.freeze()
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(work)
    finally:  # Ctrl-C may have come before they were started
        work.close()
        main.close()


def end_with_parent(seconds: int) -> None:
    """Ends this process as SIGTERM does when its standard input closes, as it does with whoever
    started it and holds the other end; at the latest so many seconds after that.

    The event loop must run in the main thread.
    """

    def check() -> None:
        try:
            if os.read(0, 4096):
                return
        except BlockingIOError:
            return
        except OSError:  # a connection that was reset is at its end too
            pass
        loop.remove_reader(0)
        if hasattr(signal, "alarm"):
            signal.alarm(seconds)  # ends a process that hangs
        os.kill(os.getpid(), signal.SIGTERM)

    loop = asyncio.get_running_loop()
    os.set_blocking(0, False)
    loop.add_reader(0, check)


def allow_many_files() -> None:
    """Raises the process's limit of open files and connections as far as the system allows."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems allow less than they report
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _loop_factory() -> Any:
    """uvloop's loop if it is installed; None for asyncio's own."""
    if sys.platform == "win32":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _until_signal(main: Coroutine[Any, Any, int | None]) -> int:
    task = asyncio.ensure_future(main)
    with _signals_cancel(task) as seen:
        try:
            return await task or 0
        except asyncio.CancelledError:
            if not seen:
                raise
            return INTERRUPTED if seen[0] == signal.SIGINT else 0


@contextlib.contextmanager
def _signals_cancel(task: asyncio.Task[Any]) -> Iterator[list[int]]:
    """Inside the block, the first signal cancels `task`, the second ends the process."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if seen:
            os._exit(128 + number)
        seen.append(number)
        loop.call_soon_threadsafe(task.cancel)

    before: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # only the main thread may set signal handlers
            before[number] = signal.signal(number, on_signal)
    try:
        yield seen
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
