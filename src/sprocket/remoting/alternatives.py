"""Asks servers of which any can answer, without waiting long for one that is silent.

The next one is asked when the last one fails, or is silent for a quarter of a second. The first
answer counts, and the other questions are given up. So a server that accepts nothing, or accepts
everything and never answers, costs a quarter of a second and not the whole deadline. Source of the
idea: RFC 8305.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from sprocket.base.errors import SprocketError

P = TypeVar("P")
T = TypeVar("T")

#: Seconds of silence after which the next one is asked.
STAGGER_SECONDS = 0.25
#: Seconds that the others have once one has answered that it does not know.
PATIENCE_SECONDS = 0.5


async def first_answer(
    places: Iterable[P],
    ask: Callable[[P], Awaitable[T]],
    *,
    failures: list[SprocketError],
    unknown: type[SprocketError] | tuple[type[SprocketError], ...] = (),
) -> tuple[P, T] | None:
    """The first answer and who gave it; None if nobody gave one.

    Args:
        places: whom to ask, the likeliest first.
        ask: asks one; raises a `SprocketError` if it fails.
        failures: takes the errors of those that failed, in the order of their failing.
        unknown: errors that mean that one answers and does not know. Another one may know, but is
            waited for only half a second longer.
    """
    loop = asyncio.get_running_loop()
    waiting = list(places)
    asked: dict[asyncio.Future[T], P] = {}
    until: float | None = None
    try:
        while waiting or asked:
            if waiting:
                place = waiting.pop(0)
                asked[asyncio.ensure_future(ask(place))] = place
            pause = STAGGER_SECONDS if waiting else None
            if until is not None:
                pause = min(STAGGER_SECONDS if waiting else PATIENCE_SECONDS, until - loop.time())
                if pause <= 0:
                    return None
            done, _ = await asyncio.wait(asked, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in [each for each in asked if each in done]:
                place = asked.pop(task)
                try:
                    return place, task.result()
                except SprocketError as error:
                    failures.append(error)
                    if isinstance(error, unknown) and until is None:
                        until = loop.time() + PATIENCE_SECONDS
        return None
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
