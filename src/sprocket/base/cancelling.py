"""Ending tasks, and the coroutines that they were given before they began.

A task that is cancelled before its first step never runs. A coroutine that it was to await is then
dropped: what it had to undo is not undone, and Python warns that it "was never awaited". Closing it
helps the outermost only, since a coroutine that has not begun does not close the one that it holds:
either all of them begin before they are cancelled, or all of them are closed.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any


def cancel_begun(task: asyncio.Future[Any]) -> None:
    """Cancels a task once it has made its first step.

    It has to await first what it was given, and so does each coroutine inside of that: then all of
    them have begun.
    """
    task.get_loop().call_soon(task.cancel)


def close_unbegun(work: object) -> None:
    """Closes a coroutine that has not begun, and the coroutines among its arguments: none of them
    runs. One that has begun stays as it is, and so does anything else."""
    if inspect.iscoroutine(work) and inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
        given = list(inspect.getcoroutinelocals(work).values())
        work.close()
        for each in given:
            close_unbegun(each)


async def end_all(tasks: list[asyncio.Task[None]]) -> None:
    """Cancels tasks, and forgets them once they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()
