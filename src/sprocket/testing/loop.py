"""An asyncio loop with virtual time and a network in memory.

It never waits: when no callback is ready, time jumps to the next timer. The order of callbacks, and
so the whole history, depends only on the seed: futures and tasks hash by number, not by address, so
that sets of them are iterated in the same order in every run.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

from sprocket.testing.network import Network
from sprocket.testing.process import CURRENT, current_process

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: Most iterations of the loop without a change of time; more are taken for an endless loop.
_TURNS_MAX = 200_000
#: Time jumps by a day at most, as a real loop waits.
_JUMP_SECONDS_MAX = 86_400.0
#: With more timers than these, cancelled ones are removed once they are the majority.
_TIMERS_SWEPT = 100


class Stuck(AssertionError):
    """Nothing can happen any more, or callbacks run endlessly while time does not change."""


class _NumberedFuture(asyncio.Future[Any]):
    __slots__ = ("number",)

    #: Set right after it is made: an `__init__` in Python would cost more than all else here.
    number: int

    def __hash__(self) -> int:
        return self.number


class _NumberedTask(asyncio.Task[Any]):
    def __init__(self, coroutine: Any, *, loop: SimulatedLoop, **settings: Any) -> None:
        self._number = loop.next_number()
        super().__init__(coroutine, loop=loop, **settings)

    def __hash__(self) -> int:
        return self._number


class _Due(float):
    """When a timer is due. Numbers are compared far faster than asyncio's timers."""

    __slots__ = ("timer",)

    timer: asyncio.TimerHandle


class SimulatedLoop(asyncio.BaseEventLoop):
    """The loop. `simulate` makes one, runs a coroutine on it and closes it.

    Args:
        network: the simulated network; it has the seed.

    Attributes:
        now: virtual seconds since the loop was made.
        faults: errors of callbacks and tasks that nobody retrieved.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self._ready: deque[Any]
        self._cancelled = 0
        self.now = 0.0
        #: A heap.
        self._timers: list[_Due] = []
        self._turns = 0
        self._number = 0
        self.network = network
        network.loop = self
        self.faults: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, fault: self.faults.append(fault))
        self.set_task_factory(_make_task)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Moves time on."""
        if seconds > 0:
            self.now += seconds
            self._turns = 0

    def _run_once(self) -> None:
        # asyncio's own turn takes a third of the time of a history. This one does the same in the
        # same order, without a selector, and without a call for each callback.
        timers, ready = self._timers, self._ready
        if len(timers) > _TIMERS_SWEPT and self._cancelled / len(timers) > 0.5:
            self._sweep()
        while timers and timers[0].timer._cancelled:
            heappop(timers).timer._scheduled = False  # type: ignore[attr-defined]
            self._cancelled -= 1
        self._turns += 1
        if self._turns > _TURNS_MAX:
            raise Stuck(f"time stands still at {self.now:.6f}")
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            if not timers:
                raise Stuck("nothing can happen any more: all tasks wait, and there is no timer")
            self.advance(min(timers[0] - self.now, _JUMP_SECONDS_MAX))
        soon = self.now + 1e-9
        while timers and timers[0] < soon:
            timer = heappop(timers).timer
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            process = handle._context.get(CURRENT)
            if process is not None and process.is_stopped:
                process.hold(handle)
                continue
            try:
                handle._context.run(handle._callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # asyncio, too, reports whatever a callback raises
                words = f"exception in callback {handle._callback!r}"
                self.call_exception_handler({"message": words, "exception": error})

    def _sweep(self) -> None:
        """Forgets timers that were cancelled."""
        for due in self._timers:
            due.timer._scheduled = not due.timer._cancelled  # type: ignore[attr-defined]
        self._timers[:] = [due for due in self._timers if due.timer._scheduled]  # type: ignore[attr-defined]
        heapify(self._timers)
        self._cancelled = 0

    def next_number(self) -> int:
        """A number for a future or a task."""
        self._number += 1
        return self._number

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        future = _NumberedFuture(loop=self)
        self._number = future.number = self._number + 1
        return future

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., Any],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Runs a callback after some seconds; later if its process is stopped then."""
        return self.call_at(self.now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Runs a callback at a time; later if its process is stopped then."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        timer._scheduled = True  # type: ignore[attr-defined]
        due = _Due(when)
        due.timer = timer
        heappush(self._timers, due)
        return timer

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Runs a callback in the next turn; later if its process is stopped then."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if handle._scheduled:  # type: ignore[attr-defined]
            self._cancelled += 1

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
