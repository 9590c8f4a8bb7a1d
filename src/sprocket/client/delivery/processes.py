"""Processes for CPU-bound listeners: a call is sent to another process with its messages.

Each process has one call at a time and a pipe of its own. So a process that dies fails its own call
only: the messages of this call are redelivered, and the next call starts a new process. A process
ends when its parent ends, even if the parent is killed.

Processes are started by "spawn", because this process has threads. So a program that starts a
consumer when its main module is imported must do so under `if __name__ == "__main__":`.
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
#: Seconds to wait for the end of a process that was killed or has died.
_END_SECONDS = 5.0


class ListenerFailed(Exception):
    """A listener failed in another process, or the process died; the text is its traceback."""


def check_portable(function: Callable[..., Any]) -> None:
    """Checks that another process can import a listener.

    Raises:
        UsageError: it cannot be imported; the message contains the reason.
    """
    try:
        pickle.dumps(function)
    except Exception as error:  # whatever a user's object does when it is pickled
        name = getattr(function, "__qualname__", repr(function))
        raise UsageError(
            f"a listener that runs in processes is a function that its module has by name, so that"
            f" it can be imported there; {name} is not: {error}"
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
        """Sends a call to the process, and blocks until it returns its result or dies.

        Raises:
            ListenerFailed: the listener raised something, or the process died.
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
        """Kills the process; its running call fails."""
        self._process.kill()
        self._process.join(_END_SECONDS)

    def close(self) -> None:
        """Ends the process, which has no running call."""
        self.kill()
        self._pipe.close()


class ListenerProcesses:
    """A pool of processes: one for each concurrent call, started when it is needed."""

    def __init__(self) -> None:
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []
        self._is_ended = False

    def call(self, function: Callable[[Any], Any], payload: Any) -> Any:
        """Calls a function in one of the processes; blocks until it returns its result.

        Raises:
            ListenerFailed: the function raised something, its process died, or the pool is closed.
            Exception: the function or the messages cannot be pickled.
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
        with contextlib.suppress(IndexError):  # other threads may take the last one
            while True:
                worker = self._idle.pop()
                if worker.is_alive:
                    return worker
                self._workers.discard(worker)
        worker = _Worker()
        self._workers.add(worker)
        if self._is_ended:  # the loop's thread has closed the pool meanwhile
            worker.kill()
        return worker

    def end(self) -> None:
        """Kills all processes; running calls fail."""
        self._is_ended = True
        for worker in list(self._workers):
            worker.kill()
        while self._idle:
            self._idle.pop().close()


def _serve(pipe: Connection) -> None:
    """The main function of a process: runs calls one by one until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C too and decides
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
    """Exits with the parent, because a killed parent cannot end its children."""
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
