from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import CancelledError

import pytest

from sprocket.client.base.threads import DaemonThreads, call_in_thread
from tests.support import run

NAME = contextvars.ContextVar("NAME", default="nobody")


def test_calls_share_threads_up_to_a_limit() -> None:
    threads = DaemonThreads(2, "t")
    gate = threading.Event()
    calls = [threads.submit(gate.wait) for _ in range(5)]
    assert not any(call.done() for call in calls)
    gate.set()
    assert all(call.result(10) for call in calls)
    names = {threads.submit(lambda: threading.current_thread().name).result(10) for _ in range(9)}
    assert names <= {"t_0", "t_1"}
    threads.shutdown()


def test_an_idle_thread_is_used_again() -> None:
    threads = DaemonThreads(8, "t")
    for _ in range(20):
        assert threads.submit(threading.get_ident).result(10)
        threads._idle.acquire(timeout=10)  # until it is idle
        threads._idle.release()
    assert threads._count == 1
    threads.shutdown()


def test_after_the_end_nothing_is_called() -> None:
    threads = DaemonThreads(1, "t")
    began, gate = threading.Event(), threading.Event()
    running = threads.submit(lambda: began.set() or gate.wait())
    began.wait(10)
    waiting = threads.submit(gate.wait)
    threads.shutdown(cancel_futures=True)
    with pytest.raises(RuntimeError, match="shut down"):
        threads.submit(gate.wait)
    gate.set()
    assert running.result(10)
    with pytest.raises(CancelledError):
        waiting.result(10)


def test_a_single_call_has_its_callers_context_and_raises_what_the_function_raises() -> None:
    def fail() -> None:
        raise ValueError("a user's")

    async def main() -> None:
        NAME.set("caller")
        assert await call_in_thread(NAME.get) == "caller"
        with pytest.raises(ValueError, match="a user's"):
            await call_in_thread(fail)
        await asyncio.gather(*(call_in_thread(divmod, n, 2) for n in range(50)))

    run(main())
