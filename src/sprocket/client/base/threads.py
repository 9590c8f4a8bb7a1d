"""Threads for users' functions, which do not keep a process from ending.

The threads of `concurrent.futures` are joined when Python ends, so one function that never returns
would keep the process for ever, also after its consumer was closed.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any

from sprocket.client.base.user_code import call_contained

_Call = tuple["Future[Any]", Callable[[], Any]]


class DaemonThreads(Executor):
    """Calls functions in daemon threads, which are made when they are needed.

    Args:
        count_max: how many threads there may be.
        name: what their names begin with.
    """

    def __init__(self, count_max: int, name: str) -> None:
        self._count_max = count_max
        self._name = name
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0
        self._is_shut = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Has a function called; the future carries what it returns or raises.

        Raises:
            RuntimeError: it was shut down, or Python is ending.
        """
        with self._lock:
            if self._is_shut:
                raise RuntimeError("the threads were shut down")
            future: Future[Any] = Future()
            if not self._idle.acquire(blocking=False) and self._count < self._count_max:
                thread = threading.Thread(
                    target=self._work, name=f"{self._name}_{self._count}", daemon=True
                )
                thread.start()
                self._count += 1
            self._calls.put((future, lambda: fn(*args, **named)))
            return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """Ends the threads after their calls, and never waits for them.

        Args:
            wait: must be False.
            cancel_futures: whether calls that did not begin are cancelled.
        """
        assert not wait
        with self._lock:
            self._is_shut = True
            while cancel_futures:
                try:
                    call = self._calls.get_nowait()
                except Empty:
                    break
                if call is not None:
                    call[0].cancel()
            for _ in range(self._count):
                self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as error:  # whoever awaits the future gets it
                    future.set_exception(error)
            del call, future, function
            self._idle.release()


async def call_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a user's function in a thread of its own, as `asyncio.to_thread` does in a shared one.

    Raises:
        Exception: what the function raises; see `call_contained`.
    """
    threads = DaemonThreads(1, "sprocket-call")
    run = contextvars.copy_context().run
    loop = asyncio.get_running_loop()
    try:
        return await loop.run_in_executor(threads, run, call_contained, function, *arguments)
    finally:
        threads.shutdown()
