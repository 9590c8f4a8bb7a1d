"""What tests of every package share."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds after which a test that waits for something is taken for hung. No test takes nearly so
#: long on a quiet machine; one on which everything takes ten times as long is no reason to fail.
LONGEST = 240.0

#: How long a client waits for a server that has the machine to share with much else.
PATIENT_MS = 60_000

#: Makes the loop of `run`; the fixture `either_loop` puts another one in its place.
new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop


def run(coroutine: Coroutine[Any, Any, T], *, seconds: float = LONGEST) -> T:
    """Runs a coroutine on a real loop of its own to its end, within some seconds.

    For tests that need real sockets. Tests that need time to pass use
    `sprocket.testing.loop.simulate`, where it passes at once.
    """

    async def bounded() -> T:
        async with asyncio.timeout(seconds):
            return await coroutine

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(bounded())


def calls_of(do: Callable[[], object]) -> int:
    """How many functions, of Python or of C, `do` calls: what it costs, on any machine."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        do()
    finally:
        sys.setprofile(before)
    return calls


def code_of_child(child: int, *, seconds: float = LONGEST) -> int:
    """Waits until a forked child has ended, and returns its exit code.

    A fork of a process with threads may hang, whatever the child does; so it is killed in the end.
    """
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError(f"the child did not end within {seconds:.0f} s")
