"""Asks servers of which any can answer, side by side: `remoting.alternatives` without a loop.

The next one is asked when the last one fails, or is silent for a quarter of a second. Each is asked
in a thread; one that is given up ends by itself at the time limit of its connection.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from sprocket.base.errors import SprocketError

P = TypeVar("P")
T = TypeVar("T")

#: Seconds of silence after which the next one is asked.
STAGGER_SECONDS = 0.25


def first_answer(
    places: Iterable[P], ask: Callable[[P], T], *, failures: list[SprocketError]
) -> tuple[P, T] | None:
    """The first answer and who gave it; None if nobody gave one.

    Args:
        places: whom to ask, the likeliest first.
        ask: asks one; raises a `SprocketError` if it fails.
        failures: takes the errors of those that failed, in the order of their failing.
    """
    waiting = list(places)
    if len(waiting) == 1:  # nothing to choose from, so no thread is needed
        try:
            return waiting[0], ask(waiting[0])
        except SprocketError as error:
            failures.append(error)
            return None
    outcomes: queue.SimpleQueue[tuple[P, T | BaseException]] = queue.SimpleQueue()

    def answer(place: P) -> None:
        try:
            outcomes.put((place, ask(place)))
        except BaseException as error:  # it is raised, or kept, in the thread of the caller
            outcomes.put((place, error))

    asked = 0
    while waiting or asked:
        if waiting:
            threading.Thread(target=answer, args=(waiting.pop(0),), daemon=True).start()
            asked += 1
        try:
            place, outcome = outcomes.get(timeout=STAGGER_SECONDS if waiting else None)
        except queue.Empty:
            continue
        asked -= 1
        if isinstance(outcome, SprocketError):
            failures.append(outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            return place, outcome
    return None
