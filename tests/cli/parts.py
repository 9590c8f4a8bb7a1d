"""Running the command line inside the test's process."""

from __future__ import annotations

import asyncio
import io
import os
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import pytest

from sprocket import Standalone
from sprocket.cli.main import main
from sprocket.standalone import Config
from tests.support import LONGEST


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def sprocket(*arguments: str, standard_input: bytes = b"", **environment: str) -> Outcome:
    """Runs `sprocket` with arguments, in an environment without settings of its own."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(out),
        redirect_stderr(err),
        _input(standard_input),
    ):
        for name in list(os.environ):
            if name.startswith("SPROCKET_") or name == "NAMESRV_ADDR":
                patch.delenv(name)
        for name, value in {"TERM": "dumb", "COLUMNS": "200", **environment}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["sprocket", *arguments])
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    return Outcome(code, out.getvalue(), err.getvalue())


def commands(node: Any, *, leaves: bool = True) -> list[str]:
    """Names of all commands below a group, or of the groups below it."""
    names = []
    for name, below in getattr(node, "commands", {}).items():
        is_group = hasattr(below, "commands")
        if is_group != leaves:
            names.append(name)
        names += [f"{name} {each}" for each in commands(below, leaves=leaves)]
    return names


@contextmanager
def _input(content: bytes) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(content))
    try:
        yield
    finally:
        sys.stdin = before


@contextmanager
def running_node(store: str, *configs: Config) -> Iterator[str]:
    """A node in a thread of its own; gives its name server's address."""
    ready: queue.Queue[str] = queue.Queue()
    ending: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        end = asyncio.Event()
        ending.append((asyncio.get_running_loop(), end))
        async with Standalone(store=store, configs=configs) as node:
            ready.put(node.nameserver_address)
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    try:
        yield ready.get(timeout=LONGEST)
    finally:
        loop, end = ending[0]
        loop.call_soon_threadsafe(end.set)
        thread.join()


def eventually(condition: Callable[[], bool], seconds: float = LONGEST) -> None:
    """Waits until something is so."""
    for _ in range(int(seconds * 20)):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"still not so after {seconds} s")
