"""Processes for listeners that are busy with the processor: a call goes there with its messages.

Each process has one call at a time and a pipe of its own, so one that dies takes its own call with
it and no other; that call fails, so its messages come again, and the next call starts a new
process. A process ends when its parent does, whatever became of that.

They are started afresh ("spawn"), since this process has threads; so a program that starts a
consumer at once must do so under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from sprocket.base.errors import UsageError

_spawning = multiprocessing.get_context("spawn")
#: Seconds that a process has to end after it was told to.
_END_SECONDS = 5.0


class ListenerFailed(Exception):
    """A listener failed in another process, whose words these are; or the process itself died."""


def check_portable(function: Callable[..., Any]) -> None:
    """Whether another process can find a listener.

    Raises:
        UsageError: it cannot; the text says why.
    """
    try:
        pickle.dumps(function)
    except Exception as error:  # whatever a user's object does when it is pickled
        name = getattr(function, "__qualname__", repr(function))
        raise UsageError(
            f"a listener that runs in processes is a function that its module has by name, so that"
            f" they can import it; {name} is not: {error}"
        ) from None


class _Worker:
    """One process and our end of its pipe."""

    def __init__(self) -> None:
        self._pipe, theirs = _spawning.Pipe()
        self._process = _spawning.Process(
            target=_serve, args=(theirs,), name="sprocket-listener", daemon=True
        )
        self._process.start()
        theirs.close()

    def call(self, request: bytes) -> Any:
        """Blocks until the process has answered, or has died.

        Raises:
            ListenerFailed: see there.
        """
        try:
            self._pipe.send_bytes(request)
            result, failure = pickle.loads(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._process.join(_END_SECONDS)
            raise ListenerFailed(
                f"the process of the listener died (exit code {self._process.exitcode})"
            ) from None
        if failure is not None:
            raise ListenerFailed(failure)
        return result

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """Ends the process at once, whatever it is at; a call under way fails."""
        self._process.kill()
        self._process.join(_END_SECONDS)

    def close(self) -> None:
        """Ends the process, which has no call."""
        self.kill()
        self._pipe.close()


class ListenerProcesses:
    """As many processes as there are calls at once, made when they are needed."""

    def __init__(self) -> None:
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._is_ended = False

    def call(self, function: Callable[[Any], Any], payload: Any) -> Any:
        """What the function returns in one of the processes; blocks until then.

        Raises:
            ListenerFailed: the function raised something, or its process died.
            Exception: function or messages cannot be pickled.
        """
        request = pickle.dumps((function, payload), pickle.HIGHEST_PROTOCOL)
        worker = self._taken()
        is_done = False
        try:
            result = worker.call(request)
            is_done = True
            return result
        except ListenerFailed:
            is_done = worker.is_alive
            raise
        finally:
            if is_done and not self._is_ended:
                self._idle.append(worker)
            else:
                self._workers.discard(worker)
                worker.close()

    def _taken(self) -> _Worker:
        if self._is_ended:
            raise ListenerFailed("the consumer is closed")
        with contextlib.suppress(IndexError):  # other threads take some too
            while True:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                self._workers.discard(worker)
        worker = _Worker()
        self._workers.add(worker)
        if self._is_ended:  # meanwhile, by the loop's thread
            worker.kill()
        return worker

    def end(self) -> None:
        """Ends all of them at once; calls under way fail."""
        self._is_ended = True
        for worker in list(self._workers):
            worker.kill()
        while self._idle:
            self._idle.pop().close()


def _serve(pipe: Connection) -> None:
    """The life of a process: calls one after the other, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            request = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        answer = _answer(request)
        try:
            pipe.send_bytes(answer)
        except OSError:
            return


def _end_with_parent() -> None:
    """A killed parent cannot tell its children."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(request: bytes) -> bytes:
    try:
        function, payload = pickle.loads(request)
        return pickle.dumps((function(payload), None), pickle.HIGHEST_PROTOCOL)
    except Exception:  # a user's listener, its import, its result
        return pickle.dumps((None, traceback.format_exc()))
