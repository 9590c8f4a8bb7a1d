"""An event loop in a background thread, and clients that run on it, for programs without a loop.

A process has one such loop. It is created on first use, and again after a fork. Each method of a
blocking client waits for the asynchronous method of the same name; methods that do not wait run on
the loop too. Clients that are still open when Python exits are closed before the interpreter stops
its threads, because listeners run in threads.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - its exit function must run after ours
import contextlib
import inspect
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Generic, NoReturn, ParamSpec, Protocol, Self, TypeVar

from sprocket.base.errors import ClosedError, UsageError

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound="AsyncClient")


class AsyncClient(Protocol):
    """The methods that all asynchronous clients have."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...


class _LoopThread:
    """The event loop and its thread."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="sprocket", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for its result.

        If the wait is interrupted, the coroutine is cancelled.

        Raises:
            UsageError: the caller runs on the loop itself, which would deadlock.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("an async listener must not wait for a blocking client")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:  # also Ctrl-C: nobody waits for the result any more
            future.cancel()
            raise


_background: _LoopThread | None = None
_starting = threading.Lock()
#: Clients that are started and not closed.
_open: set[BlockingClient[Any]] = set()
#: How long closing them may delay the exit of Python, all together.
_END_SECONDS = 10.0
#: Held by the thread that creates a client again in a child; other users of the client wait.
_following = threading.Lock()


def _loop_of_this_process() -> _LoopThread:
    """Returns the background loop, created on first use; a forked child has its own."""
    global _background
    found = _background
    if found is not None:
        return found
    with _starting:
        if _background is None:
            _background = _LoopThread()
        return _background


def _forget_parent() -> None:
    """Resets a forked child: it lacks the parent's threads, one of which may hold a lock."""
    global _background, _starting, _following
    _background = None
    _starting, _following = threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_forget_parent)


def _close_all() -> None:
    """Closes the open clients of this process, as far as `_END_SECONDS` permit."""
    clients = [face._client for face in _open if face._process == os.getpid()]
    _open.clear()
    if not clients or _background is None:
        return

    async def close() -> None:
        await asyncio.wait([asyncio.ensure_future(each.close()) for each in clients])

    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
        asyncio.run_coroutine_threadsafe(close(), _background.loop).result(_END_SECONDS)


# Exit functions run in reverse order, so this one, registered after that of `concurrent.futures`,
# runs while listener threads still work. On a Python without this private function `atexit` serves:
# then the threads are gone, listeners get no more messages, and this does not count as a failure.
getattr(threading, "_register_atexit", atexit.register)(_close_all)


class BlockingClient(Generic[C]):
    """A blocking client: it owns an asynchronous client that runs on the background loop."""

    #: Whether a forked child may continue to use it.
    _survives_fork = True

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._client = make()
        self._process = os.getpid()
        self._is_started = False
        self._closing: asyncio.Future[None] | None = None

    def _run(self, method: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any) -> T:
        background = _loop_of_this_process()
        if self._process != background.process:
            self._begin_in_child(background)
        return background.run(method(self._client, *args, **named))

    def _post(self, do: Callable[[C], None]) -> None:
        """Has the loop call a function with the client, and does not wait for that."""
        background = _loop_of_this_process()
        if self._process != background.process:
            self._begin_in_child(background)
        background.loop.call_soon_threadsafe(do, self._client)

    def _begin_in_child(self, background: _LoopThread) -> None:
        self._check_survives()
        with _following:
            if self._process == background.process:
                return
            client = self._make()
            if self._is_started:
                background.run(client.start())
            self._client, self._process = client, background.process

    def _check_survives(self) -> None:
        if not self._survives_fork and self._process != os.getpid():
            raise ClosedError("this consumer belongs to the process that started it")

    @property
    def _here(self) -> C:
        """The client, for reading its state. A child must not read the stale copy of its parent."""
        self._check_survives()
        return self._client

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} stays in its process: make one in the other")

    def start(self) -> None:
        """Starts the client, as the asynchronous `start`."""
        self._run(_start)
        self._is_started = True
        _open.add(self)

    def close(self) -> None:
        """Closes the client, as the asynchronous `close`."""
        self._is_started = False
        _open.discard(self)
        if self._process == os.getpid():
            self._run(_close)

    def _begin_close(self) -> None:
        """Has the client closed and does not wait for that: finalizers run in any thread."""

        def close(client: C) -> None:
            self._closing = asyncio.ensure_future(client.close())
            self._closing.add_done_callback(lambda _: _open.discard(self))

        self._is_started = False
        if self._process == os.getpid():
            self._post(close)
        else:
            _open.discard(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


async def _start(client: AsyncClient) -> None:
    await client.start()


async def _close(client: AsyncClient) -> None:
    await client.close()


def opened_by(
    make: Callable[P, C],
) -> Callable[[Callable[..., None]], Callable[Concatenate[BlockingClient[C], P], None]]:
    """Replaces an `__init__` by one that takes an asynchronous client's arguments and creates it.

    It is a decorator because type checkers accept nothing else for an `__init__`.
    """

    def instead(empty: Callable[..., None]) -> Callable[Concatenate[BlockingClient[C], P], None]:
        def __init__(self: BlockingClient[C], /, *args: P.args, **named: P.kwargs) -> None:
            BlockingClient.__init__(self, lambda: make(*args, **named))

        signature = inspect.signature(make)
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        update_wrapper(__init__, empty)
        __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[own, *signature.parameters.values()], return_annotation=None
        )
        return __init__

    return instead


def waiting(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[BlockingClient[C], P], T]:
    """Returns a method that waits for an asynchronous one and has its signature and docstring."""

    def call(self: BlockingClient[C], /, *args: P.args, **named: P.kwargs) -> T:
        return self._run(method, *args, **named)

    update_wrapper(call, method)
    return call


def on_the_loop(
    method: Callable[Concatenate[C, P], T],
) -> Callable[Concatenate[BlockingClient[C], P], T]:
    """Returns a method that runs a plain one on the loop, because its state belongs to the loop."""

    async def do(client: C, /, *args: P.args, **named: P.kwargs) -> T:
        return method(client, *args, **named)

    update_wrapper(do, method)
    return waiting(do)
