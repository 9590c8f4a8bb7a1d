"""The event loop in a background thread, and clients that run on it, for programs without a loop.

There is one such loop in a process, made on first use and again after a fork. A client of it waits
for each asynchronous method; what does not wait is done on the loop all the same. Clients that are
still open when Python ends are closed then: while there are threads that listeners can run in.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - its end must come after ours
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
    """What the asynchronous clients have in common."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...


class _LoopThread:
    """The event loop in its thread."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="sprocket", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the loop and waits for its end; whatever stops the wait stops it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError("an async listener must not wait for a blocking client")
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:  # also Ctrl-C: nobody waits any more
            future.cancel()
            raise


_background: _LoopThread | None = None
_starting = threading.Lock()
#: Clients that were started and not closed.
_open: set[BlockingClient[Any]] = set()
#: How long Python's end may wait for all of them.
_END_SECONDS = 10.0
#: Held by the thread that makes a client anew in a child; others that use it then wait.
_following = threading.Lock()


def _loop_of_this_process() -> _LoopThread:
    """The background loop, made on first use; a forked child makes its own."""
    global _background
    found = _background
    if found is not None:
        return found
    with _starting:
        if _background is None:
            _background = _LoopThread()
        return _background


def _forget_parent() -> None:
    """In a forked child: the parent's threads, which may have held a lock, are not there."""
    global _background, _starting, _following
    _background = None
    _starting, _following = threading.Lock(), threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_forget_parent)


def _close_all() -> None:
    """Closes the clients that this process has open, as well as can be within a few seconds."""
    clients = [face._client for face in _open if face._process == os.getpid()]
    _open.clear()
    if not clients or _background is None:
        return

    async def close() -> None:
        await asyncio.wait([asyncio.ensure_future(each.close()) for each in clients])

    with contextlib.suppress(TimeoutError, asyncio.CancelledError):
        asyncio.run_coroutine_threadsafe(close(), _background.loop).result(_END_SECONDS)


# After that of `concurrent.futures` is registered, hence called before it. Where Python has no such
# place any more, at the usual one: listeners get nothing then, and nobody takes that for a failure.
getattr(threading, "_register_atexit", atexit.register)(_close_all)


class BlockingClient(Generic[C]):
    """A client without a loop: an asynchronous one, and where it runs."""

    #: Whether a forked child may go on with it.
    _survives_fork = True

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._client = make()
        self._process = os.getpid()
        self._is_started = False

    def _run(self, method: Callable[..., Coroutine[Any, Any, T]], *args: Any, **named: Any) -> T:
        background = _loop_of_this_process()
        if self._process != background.process:
            self._begin_in_child(background)
        return background.run(method(self._client, *args, **named))

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
        """The client, to look at: not the parent's, which tells nothing of its whereabouts now."""
        self._check_survives()
        return self._client

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} stays in its process: make one in the other")

    def start(self) -> None:
        """As the asynchronous client's `start`."""
        self._run(_start)
        self._is_started = True
        _open.add(self)

    def close(self) -> None:
        """As the asynchronous client's `close`."""
        self._is_started = False
        _open.discard(self)
        if self._process == os.getpid():
            self._run(_close)

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
    """Gives an `__init__` the arguments of an asynchronous client, and the client that they make.

    A decorator, since checkers of types take nothing else for an `__init__`.
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
    """A method that waits for an asynchronous one; signature and words are its."""

    def call(self: BlockingClient[C], /, *args: P.args, **named: P.kwargs) -> T:
        return self._run(method, *args, **named)

    update_wrapper(call, method)
    return call


def on_the_loop(
    method: Callable[Concatenate[C, P], T],
) -> Callable[Concatenate[BlockingClient[C], P], T]:
    """A method that does not wait, done on the loop all the same: what it touches lives there."""

    async def do(client: C, /, *args: P.args, **named: P.kwargs) -> T:
        return method(client, *args, **named)

    update_wrapper(do, method)
    return waiting(do)
