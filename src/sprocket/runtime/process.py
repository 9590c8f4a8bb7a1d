"""Running a main coroutine as a process: the fast loop where there is one, signals, exit codes.

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
    try:
        allow_many_files()
        # What is loaded by now stays for good. A full collection that looked at it, too, would
        # hold up the loop for 10 to 30 ms.
        gc.freeze()
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(_until_signal(main))
    finally:
        main.close()  # Ctrl-C may have come before it began


def allow_many_files() -> None:
    """Lets the process have as many files and connections open as it may ask for by itself."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _loop_factory() -> Any:
    """uvloop's loop where it is installed; None means asyncio's own."""
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
    """While inside, the first signal cancels `task`, the second ends the process."""
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if seen:
            os._exit(128 + number)
        seen.append(number)
        loop.call_soon_threadsafe(task.cancel)

    before: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):  # not the main thread: whoever owns it has them
            before[number] = signal.signal(number, on_signal)
    try:
        yield seen
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
