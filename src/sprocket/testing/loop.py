"""An asyncio loop with virtual time and a network in memory.

It never waits: when no callback is ready, time jumps to the next timer. The order of callbacks, and
so the whole history, depends only on the seed: futures and tasks hash by number, not by address, so
that sets of them are iterated in the same order in every run.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import heapq
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

from sprocket.testing.network import Network
from sprocket.testing.process import current_process, process_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Most iterations of the loop without a change of time; more are taken for an endless loop.
_TURNS_MAX = 200_000


class Stuck(AssertionError):
    """Nothing can happen any more, or callbacks run endlessly while time does not change."""


class _NumberedFuture(asyncio.Future[Any]):
    def __init__(self, *, loop: SimulatedLoop) -> None:
        self._number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class _NumberedTask(asyncio.Task[Any]):
    def __init__(self, coroutine: Any, *, loop: SimulatedLoop, **settings: Any) -> None:
        self._number = loop.next_number()
        super().__init__(coroutine, loop=loop, **settings)

    def __hash__(self) -> int:
        return self._number


class _Handle(asyncio.Handle):
    """A callback that is held while its process is stopped."""

    __slots__ = ()

    def _run(self) -> None:
        process = process_of(self._context)  # type: ignore[attr-defined]
        if process is not None and process.is_stopped:
            process.hold(self)
        else:
            super()._run()


class _Timer(asyncio.TimerHandle):
    """The same for a timer."""

    __slots__ = ()

    def _run(self) -> None:
        process = process_of(self._context)  # type: ignore[attr-defined]
        if process is not None and process.is_stopped:
            process.hold(self)
        else:
            super()._run()


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop. `simulate` makes one, runs a coroutine on it and closes it.

    Args:
        network: the simulated network; it has the seed.

    Attributes:
        faults: errors of callbacks and tasks that nobody retrieved.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._selector = _Jump(self)
        self._clock_resolution = 1e-9
        self._now = 0.0
        self._turns = 0
        self._number = 0
        self.network = network
        network.loop = self
        self.faults: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, fault: self.faults.append(fault))
        self.set_task_factory(_make_task)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def advance(self, seconds: float | None) -> None:
        """Moves time; called when no callback is ready. None: there is no timer either."""
        if seconds is None:
            raise Stuck("nothing can happen any more: all tasks wait, and there is no timer")
        if seconds > 0:
            self._now += seconds
            self._turns = 0
            return
        self._turns += 1
        if self._turns > _TURNS_MAX:
            raise Stuck(f"time stands still at {self._now:.6f}")

    def next_number(self) -> int:
        """A number for a future or a task."""
        self._number += 1
        return self._number

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return _NumberedFuture(loop=self)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Runs a callback at a time; later if its process is stopped then."""
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def _call_soon(
        self, callback: Callable[..., Any], args: tuple[Any, ...], context: Context | None
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Runs the function at once, since a simulation has no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:  # it is the caller's, as with a real executor
            with contextlib.suppress(TypeError):  # StopIteration, which leaves a real one pending
                future.set_exception(error)
        return future

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int = 0,
        **settings: Any,
    ) -> Any:
        """Listens on the simulated network, at the host of the current process."""
        return self.network.listen(protocol_factory, host, port)

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int = 0,
        **settings: Any,
    ) -> tuple[asyncio.Transport, Any]:
        """Connects over the simulated network, from the host of the current process."""
        return await self.network.connect(protocol_factory, host or "localhost", port)

    async def getaddrinfo(  # type: ignore[override]
        self, host: str, port: int, **settings: Any
    ) -> list[tuple[Any, ...]]:
        """The address of a name in the simulated network."""
        found = self.network.address_of(host)
        return [(2, 1, 6, "", (found, port))]

    # Methods that asyncio's base class requires.

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class _Jump:
    """Replaces the selector of a real loop: it moves time instead of waiting."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        self._loop.advance(timeout)
        return []


def _make_task(
    loop: asyncio.AbstractEventLoop,
    coroutine: Any,
    context: Context | None = None,
    **settings: Any,
) -> asyncio.Task[Any]:
    assert isinstance(loop, SimulatedLoop)
    if context is not None:
        settings["context"] = context
    task = _NumberedTask(coroutine, loop=loop, **settings)
    process = current_process() if context is None else context.run(current_process)
    if process is not None:
        process.own(task)
    return task


def simulate(
    main: Callable[[Network], Coroutine[Any, Any, T]],
    *,
    seed: int = 0,
    network: Network | None = None,
) -> T:
    """Runs `main(network)` to its end on a loop of its own.

    Returns:
        What `main` returned.

    Raises:
        Stuck: nothing could happen any more, or callbacks ran endlessly.
        AssertionError: a task or callback failed, and nobody retrieved the error.
    """
    # Tasks that `main` left are cancelled in the order of their numbers, so that even the end of a
    # history is the same in every run.
    network = network or Network(seed)
    loop = SimulatedLoop(network)
    has_gc = gc.isenabled()
    gc.disable()  # it would run at times that no seed decides, and may close generators
    try:
        try:
            result = loop.run_until_complete(main(network))
        except Stuck:
            raise  # a stuck loop cannot end the other tasks either
        except BaseException:  # errors of tasks that are left would only hide this one
            with contextlib.suppress(Stuck):
                loop.run_until_complete(_cancel_the_rest())
            raise
        loop.run_until_complete(_cancel_the_rest())
    finally:
        loop.close()
        if has_gc:
            gc.enable()
    if loop.faults:
        first = loop.faults[0]
        raise AssertionError(f"nobody retrieved: {first.get('message')}") from first.get(
            "exception"
        )
    return result


async def _cancel_the_rest() -> None:
    rest = sorted(asyncio.all_tasks() - {asyncio.current_task()}, key=hash)
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
