"""Calls of users' functions, in threads and on the loop, and the exceptions that they may raise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


def call_contained(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function in a thread; what it raises is raised in a form that a future can carry.

    An asyncio future refuses StopIteration, and its awaiter would wait for ever. SystemExit and
    KeyboardInterrupt would end the event loop. So these are raised as a RuntimeError.
    """
    try:
        return function(*arguments)
    except Exception as error:  # a user's function
        if isinstance(error, StopIteration):
            raise RuntimeError(f"the function raised {error!r}") from error
        raise
    except BaseException as error:  # a user's function
        raise RuntimeError(f"the function raised {error!r}") from error


def call_on_loop(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a plain function on the loop; whatever it raises is an `Exception`, but for Ctrl-C."""
    try:
        return call_contained(function, *arguments)
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise


def is_from_outside(error: BaseException) -> bool:
    """Whether an error raised by an `await` of a user's coroutine is meant for the awaiting code.

    Such errors are Ctrl-C, the end of the awaiting coroutine, and the cancellation of its task, but
    not the cancellation of something that the user's function itself was waiting for.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, KeyboardInterrupt | GeneratorExit)
