"""Cancelling tasks: many, or those that await a coroutine which was made before them.

A task that is cancelled before its first step never runs. A coroutine that it was to await is then
dropped: what it had to undo is not undone, and Python warns that it "was never awaited". Closing it
helps the outermost only, since a coroutine that has not begun does not close the one that it holds.
"""

from __future__ import annotations

import asyncio
from typing import Any


def cancel_begun(task: asyncio.Future[Any]) -> None:
    """Cancels a task once it has made its first step.

    It has to await first what it was given, and so does each coroutine inside of that: then all of
    them have begun.
    """
    task.get_loop().call_soon(task.cancel)


async def end_all(tasks: list[asyncio.Task[None]]) -> None:
    """Cancels tasks, and forgets them once they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()
